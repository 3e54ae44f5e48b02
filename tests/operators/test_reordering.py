"""Orders that follow the streams: a change that pays, one that must not happen, and none that shows in the answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sash.operators import reordering
from sash.operators.reordering import Choice, JoinStatistics, Orders, Reordering
from sash.state.memory import HeapMemory
from sash.testing import Result, replay

QUERY = (
    "SELECT a.ts AS x, b.ts AS y, c.ts AS z FROM s [RANGE 40 MILLISECONDS] AS a, r [RANGE 40 MILLISECONDS] AS b, "
    "q [RANGE 40 MILLISECONDS] AS c WHERE a.k = b.k AND b.k = c.k"
)
JOIN = "0.0.MultiJoin"


def streams(spans: list[tuple[int, dict[str, float]]], seed: int = 7) -> dict[str, list[dict[str, Any]]]:
    """Rows of s (few keys), r and q, for each span as many ms at so many rows a ms."""
    random = np.random.default_rng(seed)
    made: dict[str, list[dict[str, Any]]] = {"s": [], "r": [], "q": []}
    begun = 0
    for length, rates in spans:
        for name, rate in rates.items():
            times = np.sort(random.integers(begun, begun + length, int(length * rate)))
            keys = random.integers(0, 12 if name == "s" else 60, len(times))
            made[name] += [{"ts": int(ts), "k": int(key)} for ts, key in zip(times, keys, strict=True)]
        begun += length
    return made


def run(rows: dict[str, list[dict[str, Any]]], adapt: bool, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Result:
    monkeypatch.setattr(reordering, "PATIENCE", 200 if adapt else 10**9)
    return replay(QUERY, rows, unit="ms", batch=150, shards=1, join="eager-nlj", **options)


def bag(result: Result) -> list[tuple[Any, ...]]:
    return sorted((c.ts, c.op, *c.row.values()) for c in result.changes)


def test_a_change_of_order_pays_and_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stream that was slow becomes the fast one: the order turns round, and fewer rows are looked at."""
    rows = streams([(300, {"s": 0.2, "r": 0.4, "q": 3.0}), (600, {"s": 3.0, "r": 0.4, "q": 0.2})])
    fixed, adaptive = (run(rows, adapt, monkeypatch) for adapt in (False, True))
    assert bag(fixed) == bag(adaptive)
    assert fixed.counts[JOIN].current_choice == {0: ("order s, r, q", "as planned")}
    ((order, why),) = adaptive.counts[JOIN].current_choice.values()
    assert order != "order s, r, q"
    assert "change 1" in why
    assert "times its rows" in why
    assert f"now in the only shard: {order}, {why}" in adaptive.explain()
    assert adaptive.counts[JOIN].rows_examined < 0.8 * fixed.counts[JOIN].rows_examined
    as_planned = run(rows, True, monkeypatch, reorder=False)
    assert as_planned.counts[JOIN].current_choice == fixed.counts[JOIN].current_choice
    assert as_planned.counts[JOIN].rows_examined == fixed.counts[JOIN].rows_examined


def test_rates_that_waver_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates go up and down by a fifth: whatever order is found at first stays."""
    spans = [(100, {"s": 1.0 + 0.2 * (-1) ** n, "r": 1.0 - 0.2 * (-1) ** n, "q": 1.0}) for n in range(8)]
    result = run(streams(spans), True, monkeypatch)
    ((_, why),) = result.counts[JOIN].current_choice.values()
    assert why == "as planned" or "change 1" in why


class _Chooser:
    """Other orders cost a given share of the current ones."""

    names = ("a", "b")

    def __init__(self, share: float) -> None:
        self.share = share
        self.asked = 0

    def describe(self, orders: Orders) -> str:
        return str(orders)

    def choose(self, orders: Orders, figures: JoinStatistics) -> Choice:
        self.asked += 1
        return Choice(((1, 0), (1, 0)), self.share * 100, 100, 2)


def figures(rate: float) -> JoinStatistics:
    return JoinStatistics((rate, 1.0), (100.0, 100.0), ((10.0, 10.0),), ())


@pytest.mark.parametrize(
    ("rate", "share", "asked", "changes"),
    [(1.4, 0.1, 0, 0), (2.0, 0.9, 1, 0), (2.0, 0.8, 1, 1), (0.5, 0.8, 1, 1)],
    ids=["has not moved", "is not worth it", "pays", "pays when slower"],
)
def test_orders_change_past_both_thresholds_only(rate: float, share: float, asked: int, changes: int) -> None:
    chooser = _Chooser(share)
    memory = HeapMemory()
    planned = ((0, 1), (1, 0))
    assert Reordering(memory, planned, figures(1.0), chooser).adapt(figures(rate), 5) == bool(changes)
    assert chooser.asked == asked
    again = Reordering(memory, planned, figures(1.0), chooser)
    assert again.changes == changes
    assert again.orders == (((1, 0), (1, 0)) if changes else planned)


def test_few_rows_are_not_believed() -> None:
    kept = Reordering(HeapMemory(), ((0, 1), (1, 0)), figures(1.0), _Chooser(0.1))
    assert kept.count([reordering.PATIENCE, 0], 0, 1_000_000) is None  # before the first clock: since when is not known
    assert kept.count([reordering.PATIENCE - 1, 0], 0, 2_000_000) is None
    assert kept.count([0, 1], 0, 3_000_000) == 2.0
    assert kept.rates(2.0) == ((reordering.PATIENCE - 1) / 2, 0.5)
    assert kept.count([0, 0], 10 * reordering.PATIENCE, 3_000_000) is None
