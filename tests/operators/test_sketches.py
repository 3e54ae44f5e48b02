"""Sketches: the bytes depend on the set of values alone, groups are maintained over panes, and other windows are refused."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import datasketches as ds
import pyarrow as pa
import pytest

from sash.errors import EvaluationError, SashError
from sash.operators.aggregates.kll import KllSketch
from sash.operators.scalar import kll, sketches
from sash.testing import replay

SCHEMA = "ts BIGINT, k INT, v INT, g STRING"
ROWS = [{"ts": ts, "k": ts % 2, "v": ts * 7 % 11, "g": f"g{ts % 5}"} for ts in range(1, 40)]
PANES = "s [RANGE 10 SECONDS SLIDE 5 SECONDS]"


def run(sql: str, **options: Any) -> Any:
    return replay(sql, {"s": ROWS}, schemas={"s": SCHEMA}, unit="s", until=60, **options)


@pytest.mark.parametrize(
    ("of", "merge"),
    [(sketches.hll_of, sketches.merge_hll), (sketches.theta_of, sketches.merge_theta)],
    ids=["hll", "theta"],
)
@pytest.mark.parametrize("count", [0, 5, 60, 400, 2_000])
def test_bytes_depend_on_the_values_alone(of: Callable[..., bytes], merge: Callable[..., bytes], count: int) -> None:
    rng = random.Random(count)
    values = [rng.randrange(10**9) for _ in range(count)]
    for lg_k in (5, 8, 10):
        whole = of(lg_k, values)
        for _ in range(3):
            rng.shuffle(values)
            cuts = [0, *sorted(rng.randrange(count + 1) for _ in range(3)), count]
            merged = of(lg_k, [])
            for start, stop in pairwise(cuts):
                parts = [merged, of(lg_k, values[start:stop])]
                rng.shuffle(parts)
                merged = merge(lg_k, parts)
            assert merged == whole


@pytest.mark.parametrize(
    "options", [{"shards": 1}, {"shards": 2, "batch": 3}, {"batch": 1, "strategy": "negative-tuple"}]
)
def test_sketches_over_panes_estimate_the_distinct_values(options: dict[str, Any]) -> None:
    estimates = run(
        "SELECT k, hll_sketch_estimate(hll_sketch_agg(v)) AS hv, theta_sketch_estimate(theta_sketch_agg(g, 8)) AS tg, "
        f"hll_sketch_estimate(hll_sketch_agg(g) FILTER (WHERE v > 4)) AS hg FROM {PANES} GROUP BY k",
        **options,
    )
    exact = run(
        "SELECT k, COUNT(DISTINCT v) AS hv, COUNT(DISTINCT g) AS tg, COUNT(DISTINCT g) FILTER (WHERE v > 4) AS hg "
        f"FROM {PANES} GROUP BY k",
        **options,
    )
    assert any(exact.at(instant) for instant in range(60))
    for instant in range(60):
        assert estimates.at(instant) == exact.at(instant)


@pytest.mark.parametrize("kind", ["bigint", "double"])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 500, 5_000])
def test_quantile_sketches_depend_on_the_values_alone(kind: str, count: int) -> None:
    """However the rows are cut into panes. Ranks are wrong by less than a k-th."""
    rng = random.Random(count)
    values = [rng.randrange(count) - 50 for _ in range(count)]
    whole = _kll(kind, 8, [values])
    for _ in range(3):
        rng.shuffle(values)
        cuts = [0, *sorted(rng.randrange(count + 1) for _ in range(3)), count]
        assert _kll(kind, 8, [values[start:stop] for start, stop in pairwise(cuts)]) == whole
    sketch = kll.read(kind, whole, "test")
    assert sketch.total == count
    assert list(sketch.weights) == [1] * count or count > 8 or len(set(values)) < count
    if count:
        assert sketch.extremes == (min(values), max(values))
        for value in {*values[:50], -100, count}:
            exact = sum(each <= value for each in values) / count
            assert abs(sketch.weights[sketch.values <= value].sum() / count - exact) < 1 / 8


@pytest.mark.parametrize(("kind", "library"), [("double", ds.kll_doubles_sketch), ("float", ds.kll_floats_sketch)])
@pytest.mark.parametrize("count", [0, 1, 2, 40, 41, 20_000])
def test_data_sketches_reads_quantile_sketches(kind: str, library: Any, count: int) -> None:
    """The library and Sash agree on what a sketch of either says, and the library merges them. (The library of Java, which Spark
    uses, also counts the smallest and the largest value, which this one does not.)"""
    values = [float(number * 7_919 % 10_007 - 100) for number in range(count)]
    theirs = library(40)
    for value in values:
        theirs.update(value)
    for sketch in (kll.write(kind, kll.of_values(kind, values), 40), theirs.serialize()):
        read = library.deserialize(sketch)
        assert kll.count(kind, sketch) == read.n == count
        if count:
            ranks, given = [0.1, 1 / 3, 0.5, 0.77], [-101.0, 700.0, 3_000.0, 9_999.0]
            assert kll.quantile(kind, sketch, ranks) == [read.get_quantile(rank, True) for rank in ranks]
            assert kll.rank(kind, sketch, given) == [read.get_rank(value, True) for value in given]
        theirs.merge(read)
    assert theirs.n == 3 * count
    merged = kll.merge([kll.read(kind, theirs.serialize(), "test"), kll.of_values(kind, values)])
    assert kll.count(kind, kll.write(kind, merged)) == 4 * count


def _kll(kind: str, k: int, parts: list[list[int]]) -> bytes:
    """The sketch that is made of the states of parts of the values."""
    made = KllSketch(list(kll.ITEMS).index(kind), k)
    states = [made.add(made.init(), pa.array(part, pa.int64())) for part in parts]
    return made.result(functools.reduce(made.merge, states))


@pytest.mark.parametrize(
    "options", [{"shards": 1}, {"shards": 2, "batch": 3}, {"batch": 1, "strategy": "negative-tuple"}]
)
def test_quantile_sketches_over_panes(options: dict[str, Any]) -> None:
    """Sketches with room for all values have the exact ranks and quantiles, at every instant."""
    found = run(
        "SELECT k, kll_sketch_get_n_bigint(b) AS n, kll_sketch_get_quantile_bigint(b, array(0D, 0.5D, 1D)) AS q, "
        "kll_sketch_get_rank_double(d, 5) AS r, kll_sketch_get_n_float(f) AS few FROM (SELECT k, kll_sketch_agg_bigint(v) AS b, "
        "kll_sketch_agg_double(v, 40) AS d, kll_sketch_agg_float(CAST(v AS FLOAT)) FILTER (WHERE v > 4) AS f "
        f"FROM {PANES} GROUP BY k)",
        **options,
    )
    exact = run(
        "SELECT k, COUNT(v) AS n, percentile_disc(array(0D, 0.5D, 1D)) WITHIN GROUP (ORDER BY v) AS q, "
        f"COUNT_IF(v <= 5) / COUNT(v) AS r, COUNT_IF(v > 4) AS few FROM {PANES} GROUP BY k",
        **options,
    )
    assert any(exact.at(instant) for instant in range(60))
    for instant in range(60):
        assert found.at(instant) == [{**row, "q": [int(each) for each in row["q"]]} for row in exact.at(instant)]


def test_quantile_sketches_are_merged() -> None:
    result = run(
        "SELECT kll_sketch_get_n_bigint(kll_merge_agg_bigint(b)) AS n, kll_sketch_get_n_bigint(kll_merge_agg_bigint(b, 9)) AS m, "
        "IF(COUNT(*) > 0, kll_sketch_get_quantile_bigint(kll_merge_agg_bigint(b), 0.5), NULL) AS q "
        f"FROM (SELECT k, kll_sketch_agg_bigint(v) AS b FROM {PANES} GROUP BY k)"
    )
    values = sorted(row["v"] for row in ROWS if 5 < row["ts"] <= 15)
    assert result.at(15) == [{"n": 10, "m": 10, "q": values[4]}]
    result = run(
        "SELECT CASE WHEN kll_sketch_get_n_double(a) > 0 THEN kll_sketch_get_rank_double(kll_sketch_merge_double(a, b), 10) END AS r "
        f"FROM (SELECT kll_sketch_agg_double(v) AS a, kll_sketch_agg_double(v + 100) AS b FROM {PANES})"
    )
    assert result.at(15) == [{"r": 0.5}]


def test_sketches_are_merged_and_intersected_above_operators() -> None:
    result = run(
        "SELECT hll_sketch_estimate(hll_union_agg(h)) AS v, theta_sketch_estimate(theta_union_agg(t)) AS g, "
        "theta_sketch_estimate(theta_intersection_agg(t)) AS both "
        f"FROM (SELECT k, hll_sketch_agg(v) AS h, theta_sketch_agg(g) AS t FROM {PANES} GROUP BY k)"
    )
    assert result.at(15) == [{"v": 10, "g": 5, "both": 5}]
    result = run(
        "SELECT hll_sketch_estimate(hll_union(a, b)) AS u, theta_sketch_estimate(theta_union(x, y)) AS t, "
        "theta_sketch_estimate(theta_difference(x, y)) AS d, theta_sketch_estimate(theta_intersection(x, y)) AS i "
        "FROM (SELECT hll_sketch_agg(v) AS a, hll_sketch_agg(v + 100) AS b, theta_sketch_agg(v) AS x, "
        f"theta_sketch_agg(v + 5) AS y FROM {PANES})"
    )
    values = {row["v"] for row in ROWS if 5 < row["ts"] <= 15}
    shifted = {value + 5 for value in values}
    expected = {"u": 20, "t": len(values | shifted), "d": len(values - shifted), "i": len(values & shifted)}
    assert result.at(15) == [expected]


def test_hashes_and_counters_are_those_of_spark() -> None:
    """The bytes are from Spark 4.3: coupons of HLL sketches, hashes of theta sketches, count-min sketches and bitmaps."""
    coupons = {1: "2bf2fb06", "a": "2f823b04"}
    assert {value: sketches.hll_of(12, [value])[8:].hex() for value in coupons} == coupons
    hashes = {1: "15f97dcbbd86a105", "a": "17c11d528507017b", 1.5: "114115368e63790f"}
    assert {value: sketches.theta_of(12, [value])[8:].hex() for value in hashes} == hashes
    given = [{"ts": 1, "id": each} for each in range(5)]
    text = "CAST(id AS STRING)"
    sql = (
        f"SELECT count_min_sketch(id, 0.5D, 0.5D, 1) AS n, count_min_sketch({text}, 0.5D, 0.5D, 1) AS t, "
        f"count_min_sketch(CAST({text} AS BINARY), 0.5D, 0.5D, 1) AS b, count_min_sketch(id, 0.5D, 0.5D, 1) FILTER "
        "(WHERE id > 9) AS none FROM s [RANGE 10 SECONDS]"
    )
    (row,) = replay(sql, {"s": given}, schemas={"s": "ts BIGINT, id INT"}, unit="s").at(1)
    head = "00000001{:016x}0000000100000004000000005d8d6ab9"
    counters = {"n": (2, 2, 1, 0), "t": (0, 1, 3, 1), "b": (0, 1, 3, 1), "none": (0, 0, 0, 0)}
    assert {name: value.hex() for name, value in row.items()} == {
        name: head.format(sum(table)) + "".join(f"{count:016x}" for count in table) for name, table in counters.items()
    }
    bits = [{"ts": 1, "x": b"\x10"}, {"ts": 1, "x": b"\x1f\x01"}]
    sql = "SELECT bitmap_or_agg(x) AS o, bitmap_and_agg(x) AS a FROM s [RANGE 10 SECONDS]"
    result = replay(sql, {"s": bits}, schemas={"s": "ts BIGINT, x BINARY"}, unit="s")
    assert result.at(1) == [{"o": b"\x1f\x01" + bytes(4094), "a": b"\x10" + bytes(4095)}]
    assert result.at(11) == [{"o": bytes(4096), "a": b"\xff" * 4096}]


def test_sketches_of_different_sizes_are_merged_only_with_leave() -> None:
    below = f"(SELECT hll_sketch_agg(v) AS x FROM {PANES} UNION ALL SELECT hll_sketch_agg(v, 6) FROM {PANES})"
    with pytest.raises(EvaluationError, match="different sizes, lgConfigK 6 and 12"):
        run(f"SELECT hll_union_agg(x) AS u FROM {below}")
    assert run(f"SELECT hll_sketch_estimate(hll_union_agg(x, TRUE)) AS n FROM {below}").at(15) == [{"n": 10}]


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT hll_sketch_agg(v) FROM s [RANGE 10 SECONDS]", "HLL_SKETCH_AGG needs windows with SLIDE"),
        ("SELECT theta_sketch_agg(v) FROM s [ROWS 10]", "THETA_SKETCH_AGG needs windows with SLIDE"),
        (f"SELECT hll_sketch_agg(v) OVER () FROM {PANES}", "cannot be used with OVER"),
        (f"SELECT hll_sketch_agg(v, 3) FROM {PANES}", "lgConfigK, a whole number from 4 to 21"),
        (f"SELECT hll_sketch_agg(1.5D) FROM {PANES}", "takes integers or STRING, not DOUBLE"),
        (f"SELECT hll_sketch_estimate(X'00') FROM {PANES}", "takes a HLL sketch, and these bytes are none"),
        (f"SELECT theta_union_agg(v) FROM {PANES}", "takes BINARY, not INT"),
        ("SELECT kll_sketch_agg_bigint(v) FROM s [RANGE 10 SECONDS]", "KLL_SKETCH_AGG_BIGINT needs windows with SLIDE"),
        (f"SELECT kll_sketch_agg_bigint(v + 0.5D) FROM {PANES}", "does not take DOUBLE: cast it to BIGINT"),
        (f"SELECT kll_sketch_agg_double(v, 7) FROM {PANES}", "k, a whole number from 8 to 65535"),
        (
            f"SELECT k, kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(v), 2) FROM {PANES} GROUP BY k",
            "from 0 to 1, not 2.0",
        ),
        (
            f"SELECT kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(v), 0.5) FROM {PANES}",
            "has no values; write IF",
        ),
        (
            f"SELECT kll_sketch_get_n_bigint(hll_sketch_agg(v)) FROM {PANES}",
            "takes a KLL sketch, and these bytes are none",
        ),
        (f"SELECT tuple_sketch_agg_double(v, 1.5D) FROM {PANES}", "does not run the aggregate tuple_sketch_agg_double"),
        (
            "SELECT count_min_sketch(v, 0.1D, 2, 1) FROM s [RANGE 1 SECOND]",
            "the confidence, is a number between 0 and 1",
        ),
        ("SELECT bitmap_construct_agg(v - 100) FROM s [RANGE 1 SECOND]", "is not from 0 to 32767"),
    ],
)
def test_what_is_refused(sql: str, message: str) -> None:
    with pytest.raises(SashError, match=message):
        run(sql)
