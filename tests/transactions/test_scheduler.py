"""The scheduler's decisions, one at a time (paper 2, sections 4.1-4.3)."""

from __future__ import annotations

from sash.transactions.reader import Reader, Request
from sash.transactions.scheduler import Scheduler


def full(n: int = 5, **options: object) -> Scheduler:
    """A window that updates 0 to n-1 have filled."""
    return Scheduler(n, n - 1, **options)  # type: ignore[arg-type]


def begun(scheduler: Scheduler, request: Request | None = None, level: str | None = None) -> Reader:
    reader = scheduler.begin(request or Request(scheduler.n), level)
    assert reader is not None
    return reader


def step(scheduler: Scheduler, reader: Reader) -> int:
    """Read the next sub-window and say which."""
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
