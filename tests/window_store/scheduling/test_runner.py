"""The runner with real threads, which are controlled by events and never sleep."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from sash.errors import CancelledError, IsolationError, OverloadedError, QueryTimeoutError, StarvedError
from sash.testing.histories import Recorder, classify
from sash.window_store.scheduling.levels import LEVELS
from sash.window_store.scheduling.reader import Read, Request
from sash.window_store.scheduling.runner import Runner
from sash.window_store.scheduling.scheduler import Scheduler

PATIENCE = 600.0  # seconds until a test that hangs fails


class Gate:
    """A read function that blocks in each read until it is released."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.allowed = threading.Semaphore(0)
        self.order: list[int] = []

    def __call__(self, read: Read) -> int:
        self.order.append(read.version)
        self.entered.release()
        assert self.allowed.acquire(timeout=PATIENCE)
        return read.version

    def await_read(self) -> None:
        assert self.entered.acquire(timeout=PATIENCE)

    def let(self, reads: int) -> None:
        self.allowed.release(reads)


@pytest.fixture
def runners() -> Iterator[Callable[..., Runner]]:
    made: list[Runner] = []

    def make(**options: object) -> Runner:
        made.append(Runner(**options))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def test_an_answer_is_made_of_the_reads_of_one_state(runners: Callable[..., Runner]) -> None:
    scheduler = Scheduler(5, 4)
    answer = runners().submit(scheduler, Request(5), lambda read: read.version).result()
    assert answer.partials == (0, 1, 2, 3, 4)
    assert answer.commit.as_of == 4
    assert answer.submitted <= answer.began <= answer.committed


def test_a_query_of_higher_priority_suspends_and_the_other_resumes(runners: Callable[..., Runner]) -> None:
    runner, scheduler = runners(parallel=1), Scheduler(3, 2)
    low, high = Gate(), Gate()
    first = runner.submit(scheduler, Request(3), low)
    low.await_read()
    second = runner.submit(scheduler, Request(3), high, priority=10)
    low.let(1)
    high.await_read()
    assert low.order == [2]  # suspended after the read that was under way
    high.let(3)
    ended = second.result().committed
    low.let(2)
    assert first.result().partials == (0, 1, 2)
    assert ended <= first.result().committed


def test_serial_execution_suspends_nothing(runners: Callable[..., Runner]) -> None:
    runner, scheduler = runners(parallel=2), Scheduler(2, 1, isolation="serial")
    low, high = Gate(), Gate()
    first = runner.submit(scheduler, Request(2), low)
    low.await_read()
    low.await_read()
    second = runner.submit(scheduler, Request(2), high, priority=10)
    assert high.order == []
    low.let(2)
    high.let(2)
    first.result()
    second.result()


def test_a_serial_query_holds_the_update_back(runners: Callable[..., Runner]) -> None:
    runner, scheduler, gate = runners(), Scheduler(2, 1, isolation="serial"), Gate()
    running = runner.submit(scheduler, Request(2), gate)
    gate.await_read()
    swapped: list[int] = []
    writer = threading.Thread(target=lambda: scheduler.update(lambda: swapped.append(running.ended)))
    writer.start()
    gate.let(2)
    assert running.result().commit.as_of == 1
    writer.join(PATIENCE)
    assert len(swapped) == 1
    assert scheduler.latest == 2


def test_several_reads_at_a_time_follow_an_update(runners: Callable[..., Runner]) -> None:
    runner, recorder, gate = runners(parallel=3), Recorder(), Gate()
    scheduler = Scheduler(3, 2, recorder=recorder)
    running = runner.submit(scheduler, Request(3), gate)
    for _ in range(3):
        gate.await_read()
    scheduler.update()  # replaces sub-window 0, whose read is under way: it will be read again
    gate.let(4)
    answer = running.result()
    assert answer.partials == (1, 2, 3)
    assert answer.restarts == 0
    assert "latest-window-serializable" in classify(recorder.history, 3, recorder.lengths)


def test_an_aborted_query_goes_behind_its_equals(runners: Callable[..., Runner]) -> None:
    runner, scheduler = runners(parallel=1), Scheduler(3, 2, isolation="latest-window-serializable")
    first, second = Gate(), Gate()
    aborted = runner.submit(scheduler, Request(3), first)
    first.await_read()
    other = runner.submit(scheduler, Request(3), second)
    first.let(1)
    first.await_read()
    scheduler.update()  # the first query has read sub-window 0
    first.let(1)
    second.await_read()
    assert first.order == [0, 1]
    second.let(3)
    other.result()
    first.let(3)
    answer = aborted.result()
    assert answer.restarts == 1
    assert sorted(answer.partials) == [1, 2, 3]


@pytest.mark.parametrize(("moves_at", "counted"), [(1, "restart 4 times"), (0, "drop 4 reads")])
def test_a_query_that_never_gets_through_is_given_up(
    runners: Callable[..., Runner], moves_at: int, counted: str
) -> None:
    runner, scheduler = runners(parallel=1, restarts=3), Scheduler(2, 1, isolation="latest-window-serializable")

    def read(read: Read) -> int:
        """Update the window during the first read of every attempt, or during the second one."""
        if read.sub_window == moves_at:
            scheduler.update()
            scheduler.update()
        return read.version

    starving = runner.submit(scheduler, Request(2), read)
    with pytest.raises(StarvedError, match=rf'{counted}.*isolation="latest".*retain=1'):
        starving.result()
    assert scheduler.readers == ()
    assert runner.submit(scheduler, Request(2), lambda read: read.version).result().restarts == 0


def test_too_many_queries_are_refused_with_the_reason(runners: Callable[..., Runner]) -> None:
    runner, scheduler, gate = runners(parallel=1, capacity=2), Scheduler(1, 0), Gate()
    running = [runner.submit(scheduler, Request(1), gate) for _ in range(2)]
    with pytest.raises(OverloadedError, match="2 queries are running or waiting"):
        runner.submit(scheduler, Request(1), gate)
    gate.let(2)
    for query in running:
        query.result()
    gate.let(1)
    runner.submit(scheduler, Request(1), gate).result()  # there is room again


def test_a_cancelled_query_ends_at_once_and_frees_its_place(runners: Callable[..., Runner]) -> None:
    runner, scheduler, gate = runners(parallel=1, capacity=1), Scheduler(2, 1), Gate()
    running = runner.submit(scheduler, Request(2), gate)
    gate.await_read()
    running.cancel()
    with pytest.raises(CancelledError):
        running.result()
    assert scheduler.readers == ()
    gate.let(3)
    runner.submit(scheduler, Request(2), gate).result()


def test_a_query_out_of_time_ends_with_an_error(runners: Callable[..., Runner]) -> None:
    now = [0.0]
    runner, scheduler, gate = runners(parallel=1, clock=lambda: now[0]), Scheduler(2, 1), Gate()
    running = runner.submit(scheduler, Request(2), gate, timeout=3_600)
    waiting = runner.submit(scheduler, Request(2), gate)
    gate.await_read()
    now[0] = 3_600
    with pytest.raises(QueryTimeoutError, match="no answer within 3600 s"):
        running.result()
    gate.let(3)
    assert waiting.result().partials == (0, 1)


def test_a_failing_query_hurts_no_other(runners: Callable[..., Runner]) -> None:
    def fail(read: Read) -> int:
        raise ValueError(f"cannot read {read.version}")

    runner, scheduler = runners(), Scheduler(3, 2)
    bad = [runner.submit(scheduler, Request(3), fail, priority=5) for _ in range(3)]
    good = runner.submit(scheduler, Request(3), lambda read: read.version)
    for query in bad:
        with pytest.raises(ValueError, match="cannot read 2"):
            query.result()
    assert good.result().partials == (0, 1, 2)
    assert scheduler.readers == ()


def test_a_request_that_does_not_fit_is_the_querys_own_error(runners: Callable[..., Runner]) -> None:
    runner, scheduler = runners(), Scheduler(3, 2)
    with pytest.raises(IsolationError):
        runner.submit(scheduler, Request(4), lambda read: read.version).result()
    assert runner.submit(scheduler, Request(3), lambda read: read.version).result().commit.as_of == 2


def test_closing_cancels_what_is_left() -> None:
    runner, scheduler, gate = Runner(parallel=1), Scheduler(1, 0), Gate()
    running = [runner.submit(scheduler, Request(1), gate) for _ in range(2)]
    gate.await_read()
    closing = threading.Thread(target=runner.close)
    closing.start()
    for query in running:
        with pytest.raises(CancelledError):
            query.result()
    gate.let(1)
    closing.join(PATIENCE)
    with pytest.raises(CancelledError):
        runner.submit(scheduler, Request(1), gate)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("retain", [0, 3])
def test_threads_and_updates_in_earnest_keep_the_level(runners: Callable[..., Runner], level: str, retain: int) -> None:
    n, recorder = 4, Recorder()
    scheduler = Scheduler(n, n - 1, isolation=level, retain=retain, recorder=recorder)
    runner = runners(parallel=4)
    stop = threading.Event()
    answered = threading.Semaphore(0)

    def write() -> None:
        while not stop.is_set():
            assert answered.acquire(timeout=PATIENCE)
            scheduler.update()

    writer = threading.Thread(target=write)
    writer.start()
    queries = [
        runner.submit(
            scheduler,
            Request(1 + at % n),
            lambda read: read.version,
            priority=at % 3,
        )
        for at in range(60)
    ]
    for query in queries:
        answer = query.result()
        answered.release()
        assert answer.partials == tuple(query.request.window(answer.commit.as_of))
    stop.set()
    answered.release()
    writer.join(PATIENCE)
    assert LEVELS[level].reaches in classify(recorder.history, n, recorder.lengths)
