"""The scheduler's decisions, one at a time (paper 2, sections 4.1-4.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pytest

from sash.errors import IsolationError, OptionError
from sash.window_store.scheduling.levels import LatestWindowSerializable
from sash.window_store.scheduling.reader import Read, Reader, Request
from sash.window_store.scheduling.scheduler import Scheduler, Update


class Scripted(LatestWindowSerializable):
    """Algorithm 1 with a given order of the sub-windows."""

    def __init__(self, order: list[int]) -> None:
        self.order = order

    def pick(self, unread: Collection[int], n: int) -> int:
        return min(unread, key=lambda version: self.order.index(version % n))


def full(n: int = 5, **options: object) -> Scheduler:
    """A window that updates 0 to n-1 have filled."""
    return Scheduler(n, n - 1, **options)  # type: ignore[arg-type]


def begun(scheduler: Scheduler, request: Request | None = None, level: str | None = None) -> Reader:
    reader = scheduler.begin(request or Request(scheduler.n), level)
    assert reader is not None
    return reader


def updated(scheduler: Scheduler) -> Update:
    update = scheduler.update()
    assert update is not None
    return update


def step(scheduler: Scheduler, reader: Reader) -> int:
    """Read the next sub-window; returns its number."""
    read = scheduler.claim(reader)
    assert read is not None
    assert scheduler.finish(reader, read)
    return read.sub_window


def drain(scheduler: Scheduler, reader: Reader) -> list[int]:
    order = []
    while (read := scheduler.claim(reader)) is not None:
        scheduler.finish(reader, read)
        order.append(read.version)
    return order


def test_ttu_reads_in_the_order_of_the_papers_example() -> None:
    scheduler = full(isolation="ttu")
    reader = begun(scheduler)
    order = [step(scheduler, reader)]
    scheduler.update()
    order += [step(scheduler, reader) for _ in range(3)]
    scheduler.update()
    order.append(step(scheduler, reader))
    assert order == [4, 0, 3, 2, 1]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.as_of == 6
    assert [read.version for read in commit.reads] == [2, 3, 4, 5, 6]
    assert reader.restarts == 0


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4], [0, 4, 3, 2, 1]])
def test_algorithm_1_aborts_right_after_update_5_in_ha_and_hb(order: list[int]) -> None:
    scheduler = full(isolation=Scripted(order))
    reader = begun(scheduler)
    assert step(scheduler, reader) == 0
    update = scheduler.update()
    assert update is not None
    assert update.number == 5
    assert update.restarted == (reader,)


def test_algorithm_1_aborts_after_update_6_in_hc() -> None:
    scheduler = full(isolation=Scripted([4, 3, 2, 1, 0]))
    reader = begun(scheduler)
    assert step(scheduler, reader) == 4
    assert updated(scheduler).restarted == ()
    assert [step(scheduler, reader) for _ in range(3)] == [3, 2, 1]
    assert updated(scheduler).restarted == (reader,)
    assert reader.restarts == 1


def test_an_aborted_query_reads_everything_anew() -> None:
    scheduler = full(isolation="latest-window-serializable")
    reader = begun(scheduler)
    assert step(scheduler, reader) == 0
    scheduler.update()
    assert drain(scheduler, reader) == [5, 1, 2, 3, 4]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.as_of == 5


def test_with_old_copies_only_the_stale_read_is_undone() -> None:
    scheduler = full(isolation="latest-window-serializable", retain=1)
    reader = begun(scheduler)
    assert [step(scheduler, reader) for _ in range(4)] == [0, 1, 2, 3]
    assert updated(scheduler).restarted == ()
    assert reader.rescans == 1
    assert drain(scheduler, reader) == [5, 4]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert {read.version for read in commit.reads} == {1, 2, 3, 4, 5}
    assert (reader.restarts, reader.rescans) == (0, 1)


def test_a_read_under_way_when_its_sub_window_is_replaced_counts_for_nothing() -> None:
    scheduler = full(isolation="latest-window-serializable")
    reader = begun(scheduler)
    read = scheduler.claim(reader)
    assert read == Read(0, 0, 4)
    assert updated(scheduler).restarted == ()
    assert not scheduler.finish(reader, read)
    assert drain(scheduler, reader) == [5, 1, 2, 3, 4]
    assert reader.restarts == 0


def test_no_commit_while_a_read_is_under_way() -> None:
    scheduler = full(2)
    reader = begun(scheduler)
    step(scheduler, reader)
    read = scheduler.claim(reader)
    assert read is not None
    assert scheduler.commit(reader) is None
    scheduler.finish(reader, read)
    assert scheduler.commit(reader) is not None


def test_window_serializable_keeps_to_the_state_it_began_with() -> None:
    scheduler = full(isolation="window-serializable", retain=2)
    reader = begun(scheduler)
    scheduler.update()
    assert step(scheduler, reader) == 0
    scheduler.update()
    assert drain(scheduler, reader) == [1, 2, 3, 4]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.as_of == 4


def test_window_serializable_starts_again_when_an_unread_copy_is_gone() -> None:
    scheduler = full(isolation="window-serializable")
    reader = begun(scheduler)
    step(scheduler, reader)
    assert updated(scheduler).restarted == ()  # what was replaced had been read
    assert updated(scheduler).restarted == (reader,)
    assert drain(scheduler, reader) == [2, 3, 4, 5, 6]


def test_serial_queries_hold_updates_back_and_one_another() -> None:
    scheduler = full(isolation="serial")
    reader = begun(scheduler)
    assert scheduler.begin(Request(5)) is None
    step(scheduler, reader)
    assert scheduler.update(wait=False) is None
    drain(scheduler, reader)
    assert scheduler.commit(reader) is not None
    assert scheduler.begin(Request(5)) is None  # the update that waits comes first
    assert updated(scheduler).number == 5
    assert begun(scheduler).state == 5


def test_a_shorter_window_moves_with_the_updates() -> None:
    scheduler = full()
    reader = begun(scheduler, Request(2))
    assert step(scheduler, reader) == 4
    scheduler.update()
    assert drain(scheduler, reader) == [5]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert [read.version for read in commit.reads] == [4, 5]


def test_a_shorter_window_is_in_conflict_when_what_it_read_leaves_it() -> None:
    scheduler = full()
    reader = begun(scheduler, Request(1))
    step(scheduler, reader)
    assert updated(scheduler).restarted == (reader,)


def test_incremental_scans_read_added_and_expired_versions_and_never_conflict() -> None:
    scheduler = full(isolation="ttu")
    reader = begun(scheduler, Request(3, since=3))
    assert drain(scheduler, reader) == [4, 1]
    assert updated(scheduler).restarted == ()
    assert drain(scheduler, reader) == [5, 2]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert [read.version for read in commit.reads] == [1, 2, 4, 5]
    assert reader.request.incremental(commit.as_of)


def test_an_answer_too_old_to_build_on_is_made_anew() -> None:
    scheduler = full()
    reader = begun(scheduler, Request(3, since=1))
    assert drain(scheduler, reader) == [4, 3, 2]


def test_nothing_new_is_answered_without_reading() -> None:
    scheduler = full()
    reader = begun(scheduler, Request(3, since=4))
    assert scheduler.claim(reader) is None
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.reads == ()


def test_a_window_that_is_not_yet_full() -> None:
    scheduler = Scheduler(5)
    reader = begun(scheduler)
    assert scheduler.claim(reader) is None
    scheduler.update()
    scheduler.update()
    assert drain(scheduler, reader) == [1, 0]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.as_of == 1


def test_inserts_into_sub_windows_already_read_are_passed_on() -> None:
    scheduler = full(isolation="ttu")
    reader = begun(scheduler)
    assert [step(scheduler, reader) for _ in range(2)] == [4, 3]
    under_way = scheduler.claim(reader)
    assert under_way == Read(2, 2, 4)
    scheduler.update(inserts={4: "rows for 4", 2: "rows for 2", 1: "rows for 1"})
    assert scheduler.finish(reader, under_way)
    assert scheduler.claim(reader) == Read(0, 5, 5)
    later = scheduler.claim(reader)
    assert later == Read(1, 1, 5)  # as of update 5: the reader finds the rows for 1 there
    for version in (0, 1):
        scheduler.finish(reader, reader.claimed[[5, 1][version]])
    commit = scheduler.commit(reader)
    assert commit is not None
    assert [(row.version, row.rows) for row in commit.passed] == [(4, "rows for 4"), (2, "rows for 2")]


def test_inserts_do_not_reach_a_query_that_keeps_to_its_state() -> None:
    scheduler = full(isolation="window-serializable", retain=1)
    reader = begun(scheduler)
    drain(scheduler, reader)
    scheduler.update(inserts={4: "rows"})
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.passed == ()


def test_levels_may_differ_between_queries_of_one_window() -> None:
    scheduler = full(retain=5)
    followed, kept = begun(scheduler), begun(scheduler, level="window-serializable")
    scheduler.update()
    assert (drain(scheduler, followed)[0], drain(scheduler, kept)[0]) == (5, 0)


def test_a_swap_that_fails_leaves_everything_as_it_was() -> None:
    def swap() -> None:
        raise OSError("disk full")

    scheduler = full()
    reader = begun(scheduler)
    with pytest.raises(OSError, match="disk full"):
        scheduler.update(swap)
    assert (scheduler.latest, reader.state) == (4, 4)


def test_an_ended_query_hands_out_no_more_reads() -> None:
    scheduler = full()
    reader = begun(scheduler)
    read = scheduler.claim(reader)
    assert read is not None
    scheduler.abort(reader)
    scheduler.abort(reader)
    assert not scheduler.finish(reader, read)
    assert scheduler.claim(reader) is None
    assert scheduler.commit(reader) is None
    assert scheduler.readers == ()


def test_commits_see_the_updates_of_other_processes() -> None:
    elsewhere: list[dict[int, object]] = []
    scheduler = full(2, isolation="ttu", observe=lambda latest: elsewhere[latest - 1 :])
    reader = begun(scheduler)
    assert drain(scheduler, reader) == [1, 0]
    elsewhere.append({})
    assert scheduler.commit(reader) is None  # it had read the replaced sub-window: it starts again
    assert drain(scheduler, reader) == [2, 1]
    commit = scheduler.commit(reader)
    assert commit is not None
    assert commit.as_of == 2


def test_a_serial_query_holds_the_shared_lock_from_begin_to_end() -> None:
    lock = CountedLock()
    scheduler = full(2, isolation="serial", lock=lock)
    reader = begun(scheduler)
    assert lock.held == 1
    drain(scheduler, reader)
    scheduler.commit(reader)
    assert lock.held == 0
    scheduler.update()
    assert lock.log == ["shared", "shared", "exclusive"]


@pytest.mark.parametrize("request_", [Request(0), Request(6)])
def test_requests_that_do_not_fit_raise_errors(request_: Request) -> None:
    with pytest.raises(IsolationError):
        full().begin(request_)


def test_invalid_settings_raise_errors() -> None:
    for wrong in ({"n": 0}, {"n": 5, "retain": -1}):
        with pytest.raises(IsolationError):
            Scheduler(**wrong)
    with pytest.raises(OptionError, match="no isolation level 'snapshot'; use one of latest, ttu"):
        Scheduler(5, isolation="snapshot")


class CountedLock:
    def __init__(self) -> None:
        self.held = 0
        self.log: list[str] = []

    @contextmanager
    def shared(self) -> Iterator[None]:
        self.log.append("shared")
        self.held += 1
        yield
        self.held -= 1

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        assert self.held == 0
        self.log.append("exclusive")
        yield
