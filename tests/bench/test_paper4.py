from __future__ import annotations

from pathlib import Path

import pytest

from bench.paper4 import command, engine
from bench.paper4.costs import lazy_cost
from bench.paper4.experiments import PAPER, figure_2
from bench.paper4.operator import Setting, first, measure, plans
from bench.paper4.page import write
from bench.paper4.purging import BUCKETS, measure_purging
from bench.paper4.streams import TABLE_5, alike
from sash.errors import SashError
from sash.optimizer.cost import eager_cost
from sash.physical.nodes import MultiJoin, operations
from sash.testing import replay


def test_windows_hold_rate_times_length_rows() -> None:
    assert TABLE_5.unit == 15
    (_, filled), (clock, rows) = TABLE_5.batches([TABLE_5.filling, 1500], seed=0)
    assert clock == 4500
    assert sum(len(batch) for batch in filled) == 3000
    assert [len(batch) for batch in rows] == pytest.approx([1000, 100, 100, 300], rel=0.3)
    assert [max(batch.columns[0].to_pylist()) for batch in filled] == pytest.approx([499, 49, 39, 4], abs=5)


def test_best_and_worst_plan_are_those_of_the_paper() -> None:
    best, worst = plans(TABLE_5, None)
    assert best == (1, 2, 3, 4)
    assert (eager_cost(best, *TABLE_5.figures), eager_cost(worst, *TABLE_5.figures)) == (16_000, 86_850)


@pytest.mark.parametrize("tau", [None, 5])
def test_the_operator_probes_as_many_rows_as_the_model_predicts(tau: float | None) -> None:
    """The lazy join probes fewer: the model counts matches of expired rows, the operator does not."""
    for order in plans(TABLE_5, tau):
        speed = measure(TABLE_5, Setting(first(order, 4), (1,) * 4, tau), 8_000)
        cost = eager_cost(order, *TABLE_5.figures) if tau is None else lazy_cost(order, *TABLE_5.figures, tau)
        assert speed.probes * TABLE_5.unit == pytest.approx(cost, rel=0.15)


def test_buckets_divide_the_probes() -> None:
    setting = [Setting(first((1, 2, 3, 4), 4), (buckets,) * 4) for buckets in (1, 5)]
    scanned, hashed = (measure(TABLE_5, given, 4_000).probes for given in setting)
    assert scanned / hashed == pytest.approx(5, rel=0.1)


def test_the_naive_join_falls_behind_with_every_window() -> None:
    lines = {name: dict(points) for name, points in figure_2(600, 4, 1, lambda _: None).figure.series.items()}
    gaps = [lines["naive"][count] / lines["multi-way"][count] for count in (2, 3, 4)]
    assert gaps[0] == pytest.approx(1, rel=0.05)
    assert gaps[0] < gaps[1] < gaps[2]
    assert lines["naive"][4] == pytest.approx(lines["naive, model"][4], rel=0.15)


@pytest.mark.parametrize("name", PAPER)
def test_the_engine_runs_the_requested_form_and_order(name: str) -> None:
    for which, order in zip(("best", "worst"), plans(TABLE_5, engine.form_and_tau(name)[1]), strict=True):
        plan = engine.planned(name, which, 2).physical
        (join,) = [node.plan for node in operations(plan.stages[0].root) if isinstance(node, MultiJoin)]
        assert [number + 1 for number in join.order] == list(order)
        assert join.form == name.split(maxsplit=1)[0]
        assert set(join.buckets or ()) == {1 if "nlj" in name else 5}


def test_the_query_joins_what_the_operator_joins() -> None:
    (_, given), *_ = alike(4).batches([200], seed=0)
    streams = {
        f"s{number}": [{"ts": int(ts), "k": key} for ts, key in zip(part.ts, part.columns[0].to_pylist(), strict=True)]
        for number, part in enumerate(given, 1)
    }
    rows = [row for row in replay(engine.query(), streams, unit="us", until=200).changes if row.op == "+"]
    keys = [
        dict(zip((row["ts"] for row in part), (row["k"] for row in part), strict=True)) for part in streams.values()
    ]
    assert all(len({keys[j][ts] for j, ts in enumerate(change.row.values())}) == 1 for change in rows)
    pairs = sum(
        1 for a in keys[0].values() for b in keys[1].values() for c in keys[2].values() for d in keys[3].values()
        if a == b == c == d
    )  # fmt: skip
    assert len(rows) == pairs


def test_unknown_experiments_are_refused() -> None:
    with pytest.raises(SashError, match="fig9"):
        command.measure("fig9", 1000, 1)


def test_measurements_are_shown_and_written(tmp_path: Path) -> None:
    found = command.judged(command.measure("table8,engine,fig2", 1000, 2))
    assert {entry["form"] for entry in found["local"]} == set(PAPER)
    assert all(len(entry["best_per_s"]) == 2 for entry in found["table8"])
    assert [figure.name for figure in command.plots(found)] == ["paper4-fig2"]
    assert len(command.table(found).renderables) == 4
    text = write(found, tmp_path / "paper4.md").read_text(encoding="utf-8")
    assert all(claim["text"] in text for claim in found["claims"])
    assert "### The whole engine" in text


@pytest.mark.parametrize("buckets", BUCKETS)
def test_lazy_expiration_looks_at_more_rows_whatever_the_hash_size(buckets: int | None) -> None:
    """Paper 4, 4.1 and 6.4: no bucket is visited in vain here, so a longer interval has nothing to save."""
    looked = [measure_purging(4_000, buckets, interval)[1] for interval in (0, 100, 300)]
    assert looked == sorted(looked)
    assert looked[0] < looked[-1]
