"""Higher moments over many slides: exact at every instant, however far apart the values are."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest

from sash.testing import replay

Pair = tuple[float, float]


def pairs(seed: int, scale: float, offset: float, count: int = 60) -> list[Pair]:
    generator = random.Random(seed)
    return [(offset + scale * generator.gauss(0, 1), scale * generator.gauss(0, 1) - offset) for _ in range(count)]


def moments(values: list[float]) -> list[Fraction]:
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    return [sum(((value - mean) ** power for value in exact), Fraction(0)) for power in (2, 3, 4)]


def reference(rows: list[Pair]) -> dict[str, float]:
    xs, ys = [Fraction(x) for x, _ in rows], [Fraction(y) for _, y in rows]
    n = len(rows)
    mean_x, mean_y = sum(xs) / n, sum(ys) / n
    both = sum(((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)), Fraction(0))
    (second, third, fourth), (other, *_) = moments([x for x, _ in rows]), moments([y for _, y in rows])
    slope = both / second
    return {
        "skew": math.copysign(math.sqrt(n * third**2 / second**3), 1 if third > 0 else -1),
        "kurt": float(n * fourth / (second * second)) - 3,
        "cov": float(both / n),
        "corr": math.copysign(math.sqrt(both**2 / (second * other)), 1 if both > 0 else -1),
        "slope": float(slope),
        "icept": float(mean_y - slope * mean_x),
        "r2": float(both * both / (second * other)),
    }


SQL = (
    "SELECT SKEWNESS(x) AS skew, KURTOSIS(x) AS kurt, COVAR_POP(x, y) AS cov, CORR(x, y) AS corr, "
    "REGR_SLOPE(y, x) AS slope, REGR_INTERCEPT(y, x) AS icept, REGR_R2(y, x) AS r2 FROM s [RANGE 8 SECONDS]"
)


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (1e-6, 1e9), (1e150, 0.0), (1e-120, 0.0), (1.0, 1e12)])
def test_no_precision_is_lost_by_cancellation(scale: float, offset: float) -> None:
    data = pairs(7, scale, offset)
    rows = [{"ts": ts, "x": x, "y": y} for ts, (x, y) in enumerate(data)]
    result = replay(SQL, streams={"s": rows}, schemas={"s": "ts BIGINT, x DOUBLE, y DOUBLE"}, unit="s", batch=7)
    for ts in range(9, 60, 5):
        (answer,) = result.at(ts)
        for name, value in reference(data[ts - 7 : ts + 1]).items():
            assert answer[name] == pytest.approx(value, rel=1e-12, abs=0), (ts, name)


def test_a_retraction_repeats_its_insertion_and_an_outlier_leaves_nothing() -> None:
    data = [*pairs(3, 1.0, 0.0, 20), (1e300, -1e300), *pairs(4, 1.0, 0.0, 20)]
    rows = [{"ts": ts, "x": x, "y": y} for ts, (x, y) in enumerate(data)]
    schemas = {"s": "ts BIGINT, x DOUBLE, y DOUBLE"}
    result = replay(SQL, streams={"s": rows}, schemas=schemas, unit="s", until=60)
    alone = replay(SQL, streams={"s": rows[21:]}, schemas=schemas, unit="s", until=60)
    assert repr(result.at(35)) == repr(alone.at(35))
    assert result.at(55) == [dict.fromkeys(("skew", "kurt", "cov", "corr", "slope", "icept", "r2"))]
    current: str | None = None
    for change in result.changes:
        assert change.op == "+" or repr(change.row) == current
        current = repr(change.row) if change.op == "+" else None


def test_infinities_and_nans_give_nan_until_they_leave() -> None:
    rows = [{"ts": 1, "x": 1.0, "y": 2.0}, {"ts": 2, "x": math.inf, "y": 5.0}, {"ts": 3, "x": 3.0, "y": math.nan}]
    rows += [{"ts": 4, "x": 4.0, "y": 1.0}, {"ts": 5, "x": -4.0, "y": 1.5}]
    sql = "SELECT SKEWNESS(x) AS a, REGR_SYY(y, x) AS b, CORR(x, y) AS c FROM s [RANGE 3 SECONDS]"
    result = replay(sql, streams={"s": rows}, schemas={"s": "ts BIGINT, x DOUBLE, y DOUBLE"}, unit="s", until=9)
    (odd,) = result.at(3)
    assert all(math.isnan(value) for value in odd.values())
    assert result.at(4)[0]["a"] is not None
    assert math.isnan(result.at(4)[0]["a"])
    assert result.at(6) == [{"a": 0.0, "b": 0.125, "c": -1.0}]
