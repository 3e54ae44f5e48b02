"""The campaign of faults: its oracle sees what is wrong, orders are carried out once, and a small story on Spark."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from campaign.faults.hooks import Orders
from campaign.faults.kinds import KINDS, MOMENTS
from campaign.faults.machine import Clock
from campaign.faults.story import Story, play
from campaign.faults.world import BASE, QUERIES, SLACK, SPAN, Truth, folded, last_instant, rows_of
from sash.testing import replay
from tests.oracle.duck import bag_of
from tests.postgres import programs, someone


@pytest.mark.parametrize("name", QUERIES)
def test_the_oracle_agrees_with_replay(name: str) -> None:
    batches = 5
    instant = last_instant(batches)
    streams: dict[str, list[dict[str, Any]]] = {
        stream: sorted(
            (dict(row) for number in range(batches) for row in rows_of(3, stream, number)), key=lambda row: row["ts"]
        )
        for stream in {view.stream for _, view in QUERIES[name].views}
    }
    result = replay(QUERIES[name].sash, streams, unit="us", until=instant, unbounded="allow")
    expected = Truth(3, QUERIES[name]).at(instant)
    assert expected, "an answer without rows would show nothing"
    assert bag_of(row.values() for row in result.at(instant)) == expected


def test_rows_are_out_of_order_by_less_than_the_slack() -> None:
    latest, late = 0, 0
    for number in range(20):
        for row in rows_of(1, "s", number):
            assert row["ts"] > latest - SLACK
            late += row["ts"] < latest
            latest = max(latest, row["ts"])
        assert latest == BASE + (number + 1) * SPAN - 1
    assert late > 20


def test_an_order_is_carried_out_once_at_its_moment(tmp_path: Path) -> None:
    orders = Orders(tmp_path)
    (tmp_path / "driver").write_text(str(os.getpid()))
    orders.give("sink", "fail", skip=1)
    orders.pass_by("state")
    orders.pass_by("sink")
    assert orders.struck is None
    with pytest.raises(RuntimeError, match="a fault of the campaign"):
        orders.pass_by("sink")
    assert orders.struck is not None
    assert orders.struck["moment"] == "sink"
    orders.pass_by("sink")


def write_changes(folder: Path, batch: int, *changes: tuple[str, int, str]) -> None:
    (folder / f"batch={batch}").mkdir(parents=True)
    columns = dict(zip(("_op", "_ts", "k"), zip(*changes, strict=True), strict=True))
    pq.write_table(
        pa.table({name: list(values) for name, values in columns.items()}), folder / f"batch={batch}" / "p.parquet"
    )


def test_a_change_that_is_there_twice_is_seen(tmp_path: Path) -> None:
    write_changes(tmp_path, 0, ("+", 1, "a"), ("+", 2, "b"))
    write_changes(tmp_path, 1, ("-", 3, "a"))
    assert folded(tmp_path, ("k",), "changes", 2) == bag_of([("a",), ("b",)])
    assert folded(tmp_path, ("k",), "changes", 3) == bag_of([("b",)])
    write_changes(tmp_path, 2, ("-", 3, "a"))
    with pytest.raises(AssertionError, match="taken back without being there"):
        folded(tmp_path, ("k",), "changes", 3)


def test_the_clock_of_a_process_jumps(tmp_path: Path) -> None:
    import subprocess
    import sys

    clock = Clock(tmp_path)
    if not clock.environment:
        pytest.skip("there is no C compiler")
    text = "from time import monotonic, time; print(time(), monotonic())"
    found = []
    for ahead in (0, 3_600_000_000):
        clock.jump(ahead)
        run = subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, **clock.environment},
            capture_output=True,
            text=True,
            check=True,
        )
        found.append([float(part) for part in run.stdout.split()])
    assert 3_600 <= found[1][0] - found[0][0] < 7_000
    assert found[1][1] - found[0][1] < 3_000, "only the wall clock"


def test_every_kind_is_chosen_and_every_moment_struck() -> None:
    rnd = random.Random(1)
    kinds = Counter(rnd.choices(KINDS, [kind.weight for kind in KINDS], k=1_000))
    assert set(kinds) == set(KINDS)
    assert {moment for kind in KINDS for moment in kind.moments} == MOMENTS.keys() - {"between"}


@pytest.mark.spark
@pytest.mark.skipif(programs() is None or someone() is None, reason="PostgreSQL's programs are not installed")
def test_a_short_story_of_faults() -> None:
    """Faults that need no new driver: those that do are in the tests of recovery."""
    names = ("a file of an arena is lost", "the batch function fails", "kill a worker")
    words = play(Story(seed=2, faults=3, only=names))
    assert words["struck in all"] == 3
    assert all(words[f"fault {name}"] for name in names)
    assert words["answers compared"] == 16
