"""Query groups: queries submitted one by one that differ only in window length or m read each sub-window once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from sash.errors import OptionError
from sash.testing.histories import classify
from sash.window_store.execute import SnapshotExecution
from sash.window_store.options import MemoryLimits, SnapshotOptions
from sash.window_store.scheduling.levels import LEVELS
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.store.manifest import Slice
from sash.window_store.sub_windows import scan_locally
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core
from tests.window_store.feeding import Fed, counted, layout

PATIENCE = 600.0  # seconds until a test that hangs fails
SQL = "SELECT k, COUNT(*) AS n, SUM(x) AS t, MAX(v) AS m FROM s [RANGE {} MICROSECONDS] GROUP BY k"


class Scans:
    """Counts scans. The first one waits until it is let go; `after` has what to do after the n-th."""

    def __init__(self, fed: Fed, after: dict[int, Callable[[], object]] | None = None, *, waits: bool = False) -> None:
        self.count = 0
        self.began, self.go = threading.Event(), threading.Event()
        self._after = after or {}
        if not waits:
            self.go.set()
        fed.queries.scans["local"] = lambda _: self._scan

    def _scan(self, root: Path, parts: Sequence[Slice], core: Core) -> Tables:
        self.began.set()
        assert self.go.wait(PATIENCE)
        self.count += 1
        self._after.get(self.count, lambda: None)()
        return scan_locally(root, parts, core)


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    found = Fed(tmp_path, layout(10, 6))
    found.feed(60, 60)
    yield found
    found.close()


def submit(fed: Fed, length: int, **options: Any) -> SnapshotExecution:
    return fed.queries.submit(SQL.format(length), SnapshotOptions(access="WS", **options))


def test_snapshots_of_different_callers_are_one_scan(fed: Fed) -> None:
    scans = Scans(fed, waits=True)
    first = submit(fed, 20)
    assert scans.began.wait(PATIENCE)
    others = [submit(fed, length) for length in (40, 60, 20, 35)]
    scans.go.set()
    answers = [execution.result()[0] for execution in (first, *others)]
    assert scans.count == 6, "the longest window, once"
    for length, answer in zip((20, 40, 60, 20, 35), answers, strict=True):
        assert counted(answer.to_pylist()) == fed.truth(SQL.format(length), answer.as_of)
    assert [answer.reads_shared for answer in answers] == [0, 2, 4, 2, 4]
    assert [answer.sub_windows_read for answer in answers] == [2, 2, 2, 0, 0]
    assert "merged with 4 other queries of these summaries: one scan of a sub-window serves all" in answers[0].explain()
    assert "2 reads were scans of other queries" in answers[1].explain()
    (group,) = fed.queries.groups("s")
    assert (group["scans"], group["reads_shared"], group["queries"], group["bytes"]) == (6, 12, 0, 0)


def test_queries_with_other_filters_or_groups_are_not_merged(fed: Fed) -> None:
    scans = Scans(fed, waits=True)
    first = submit(fed, 60)
    assert scans.began.wait(PATIENCE)
    other = fed.queries.submit("SELECT COUNT(*) AS n FROM s WHERE v > 2", SnapshotOptions(access="WS"))
    assert "merged with" not in other.plan.explain()
    scans.go.set()
    assert first.result()[0].reads_shared == other.result()[0].reads_shared == 0
    assert scans.count == 12


def test_a_later_snapshot_scans_again(fed: Fed) -> None:
    scans = Scans(fed)
    for _ in range(2):
        assert submit(fed, 60).result()[0].reads_shared == 0
    assert scans.count == 12


def test_periodic_queries_with_other_lengths_and_m_share_each_update(fed: Fed) -> None:
    with (
        fed.periodic(SQL.format(20), every=1, access="WS") as short,
        fed.periodic(SQL.format(60), every=2, access="WS") as rare,
        fed.periodic(SQL.format(40), every=1, access="WS") as often,
    ):
        for periodic in (short, rare, often):
            next(periodic)
        scans = Scans(fed)
        # The plans have the scans that they were made with.
        made = [group["scans"] for group in fed.queries.groups()]
        for update in range(1, 7):
            fed.feed(fed.clock + 10)
            due = [(20, short), (40, often), *([(60, rare)] if update % 2 == 0 else [])]
            for length, periodic in due:
                (answer,) = next(periodic)
                assert counted(answer.to_pylist()) == fed.truth(SQL.format(length), answer.as_of)
                assert "merged with 2 other queries" in answer.explain()
            now = [group["scans"] for group in fed.queries.groups()]
            assert now[0] - made[0] == (6 if update % 2 == 0 else 4), "that of the longest window that is due"
            made = now
        assert not scans.count
        short.stop()
        assert "merged with another query" in often.explain()


def test_a_snapshot_shares_the_scan_of_a_periodic_query(fed: Fed) -> None:
    scans = Scans(fed, waits=True)
    with fed.periodic(SQL.format(60), every=1, access="WS") as periodic:
        assert scans.began.wait(PATIENCE)
        snapshot = submit(fed, 40, priority=10)
        scans.go.set()
        (answer,) = snapshot.result()
        (other,) = next(periodic)
        assert scans.count == 6
        assert answer.reads_shared + other.reads_shared == 4
        assert counted(answer.to_pylist()) == fed.truth(SQL.format(40), answer.as_of)
        assert counted(other.to_pylist()) == fed.truth(SQL.format(60), other.as_of)


def test_a_scan_that_fails_fails_one_query(fed: Fed) -> None:
    def fail() -> None:
        raise ValueError("a broken disk")

    scans = Scans(fed, {1: fail}, waits=True)
    first = submit(fed, 60)
    assert scans.began.wait(PATIENCE)
    other = submit(fed, 60)
    scans.go.set()
    with pytest.raises(ValueError, match="a broken disk"):
        first.result()
    (answer,) = other.result()
    assert counted(answer.to_pylist()) == fed.truth(SQL.format(60), answer.as_of)


def test_no_more_scans_are_kept_for_others_than_the_limit(fed: Fed) -> None:
    fed.queries.limits = MemoryLimits(shared=0)
    scans = Scans(fed, waits=True)
    first = submit(fed, 60)
    assert scans.began.wait(PATIENCE)
    other = submit(fed, 60)
    scans.go.set()
    assert first.result()[0].to_pylist()
    assert other.result()[0].reads_shared == 0
    assert scans.count == 12
    assert fed.queries.groups()[0]["bytes"] == 0


@pytest.mark.parametrize("isolation", list(LEVELS))
@pytest.mark.parametrize("retain", [0, 2])
@pytest.mark.parametrize("moves", [{2: 1}, {1: 1, 3: 1, 6: 1}, {4: 3}, {3: 7}])
def test_every_query_of_a_group_reads_one_state(
    tmp_path: Path, isolation: str, retain: int, moves: dict[int, int]
) -> None:
    """The window is updated while the group scans: each query keeps its level, by the recorded history."""
    recorder = Recorder()
    fed = Fed(tmp_path, layout(10, 6, retain=retain), recorder)
    fed.feed(60, 60)
    updates: list[threading.Thread] = []

    def move(by: int) -> Callable[[], object]:
        def update() -> None:
            fed.feed(fed.clock + 10 * by)

        if isolation != "serial":
            return update

        def later() -> None:  # an update waits for a serial query, which must not wait for the update
            before = updates[-1] if updates else None
            updates.append(threading.Thread(target=lambda: (before and before.join(), update())))
            updates[-1].start()

        return later

    scans = Scans(fed, {read: move(by) for read, by in moves.items()}, waits=True)
    first = submit(fed, 60, isolation=isolation)
    assert scans.began.wait(PATIENCE)
    lengths = (60, 30, 50, 25)
    executions = [first, *(submit(fed, length, isolation=isolation) for length in lengths[1:])]
    scans.go.set()
    answers = [execution.result()[0] for execution in executions]
    for thread in updates:
        thread.join()
    for length, answer in zip(lengths, answers, strict=True):
        assert counted(answer.to_pylist()) == fed.truth(SQL.format(length), answer.as_of)
    assert sum(answer.reads_shared for answer in answers) > 0
    assert LEVELS[isolation].reaches in classify(recorder.history, 6, recorder.lengths)
    fed.close()


@pytest.mark.parametrize("isolation", ["latest", "latest-window-serializable", "window-serializable"])
@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_suspended_query_gives_up_its_state_where_memory_is_short(tmp_path: Path, isolation: str, moves: int) -> None:
    """A query of a higher priority comes after three reads; what they gave does not fit, so they are made again."""
    found: dict[int, tuple[int, int]] = {}
    for limit in (1 << 30, 0):
        recorder = Recorder()
        fed = Fed(tmp_path / str(limit), layout(10, 6, retain=2), recorder)
        fed.feed(60, 60)
        fed.queries.limits = MemoryLimits(suspended=limit, shared=0)
        urgent: list[SnapshotExecution] = []

        def interrupt(fed: Fed = fed, urgent: list[SnapshotExecution] = urgent) -> None:
            urgent.append(fed.queries.submit("SELECT COUNT(*) AS n FROM s", SnapshotOptions(access="WS", priority=20)))
            for _ in range(moves):
                fed.feed(fed.clock + 10)

        Scans(fed, {3: interrupt})
        (answer,) = submit(fed, 60, isolation=isolation, priority=1).result()
        (soon,) = urgent[0].result()
        assert counted(answer.to_pylist()) == fed.truth(SQL.format(60), answer.as_of)
        assert counted(soon.to_pylist()) == fed.truth("SELECT COUNT(*) AS n FROM s [RANGE 60 MICROSECONDS]", soon.as_of)
        assert LEVELS[answer.isolation].reaches in classify(recorder.history, 6, recorder.lengths)
        found[limit] = answer.reads_given_up, answer.sub_windows_read
        fed.close()
    kept, short = found[1 << 30], found[0]
    assert kept[0] == 0
    assert short[0] > 0
    assert short[1] > kept[1]


def test_m_is_less_than_n(fed: Fed) -> None:
    with pytest.raises(OptionError, match=r"every must be less than the number of sub-windows of s, 6, and is 6"):
        fed.periodic(SQL.format(20), every=6)
    fed.periodic(SQL.format(20), every=5).stop()


def test_the_access_path_depends_on_the_memory_for_summaries(fed: Fed) -> None:
    sums = "SELECT k, SUM(v) AS t FROM s [RANGE 60 MICROSECONDS] GROUP BY k"
    largest = "SELECT k, MAX(v) AS t FROM s [RANGE 60 MICROSECONDS] GROUP BY k"

    def path(sql: str, limit: int, every: int | None = 1) -> str:
        fed.queries.limits = MemoryLimits(summaries=limit)
        return fed.queries.plan(sql, SnapshotOptions(every=every)).access.path

    rows = sum(int(part.own.read(fed.root).nbytes) for part in fed.writer.manifest.live)
    assert path(largest, 100) == path(sums, 100) == "WS"
    assert path(largest, 2 * rows) == "SS"
    fed.snapshot(sums, access="SS")
    stored = sum(file.stat().st_size for file in fed.root.glob("summaries/*/*.arrow"))
    assert path(sums, 3 * stored) == "ISS", "summaries and the state of the query"
    assert path(sums, stored + 1) == "IS", "the state of the query alone"
    assert path(sums, stored // 2) == "WS"
    assert path(sums, 100, None) == "SS", "they are stored already"
    text = fed.queries.plan(largest, SnapshotOptions()).explain()
    assert "more than the limit of 100 B" in text
