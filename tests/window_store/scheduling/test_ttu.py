"""Theorem 4 without restarts: for given slots of reads and updates, if TTU aborts a query, every order does.

As printed the theorem counts aborts in whole histories; that fails once aborted queries start again, since a query that
survives longer before its abort also starts again later.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Collection, Sequence

import pytest

from sash.window_store.scheduling.levels import Isolation, LatestWindowSerializable, level
from sash.window_store.scheduling.reader import Request
from sash.window_store.scheduling.scheduler import Scheduler


class Ordered(LatestWindowSerializable):
    """Algorithm 1 with the reads in a given order of sub-windows."""

    def __init__(self, order: Sequence[int]) -> None:
        self.rank = {sub_window: at for at, sub_window in enumerate(order)}

    def pick(self, unread: Collection[int], n: int) -> int:
        return min(unread, key=lambda version: self.rank[version % n])


def aborts(n: int, slots: Sequence[int], isolation: Isolation, length: int | None = None) -> bool:
    """Whether a query is aborted if each of its reads is followed by that many updates."""
    scheduler = Scheduler(n, n - 1, isolation=isolation)
    reader = scheduler.begin(Request(length or n))
    assert reader is not None
    for updates in slots:
        read = scheduler.claim(reader)
        if read is None:
            break
        scheduler.finish(reader, read)
        if scheduler.commit(reader) is not None:
            return False
        for _ in range(updates):
            scheduler.update()
            if reader.restarts:
                return True
    assert scheduler.commit(reader) is not None
    return False


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_theorem_4_for_every_order_and_every_sequence_of_slots(n: int) -> None:
    for slots in itertools.product(range(n + 1), repeat=n):
        if aborts(n, slots, level("ttu")):
            for order in itertools.permutations(range(n)):
                assert aborts(n, slots, Ordered(order)), (slots, order)


def test_theorem_4_for_larger_windows() -> None:
    rng, saved = random.Random(4), 0
    for _ in range(2_000):
        n = rng.randint(5, 30)
        slots = [rng.choice((0, 0, 0, 0, 1, 1, 2)) if rng.random() < 0.3 else 0 for _ in range(n)]
        other = aborts(n, slots, Ordered(rng.sample(range(n), n)))
        if aborts(n, slots, level("ttu")):
            assert other, slots
        else:
            saved += other
    assert saved > 1_000  # and the order does matter


def restarts(n: int, slots: Sequence[int], isolation: Isolation) -> int:
    """The number of restarts of a query within the slots."""
    scheduler = Scheduler(n, n - 1, isolation=isolation)
    reader = scheduler.begin(Request(n))
    assert reader is not None
    for updates in slots:
        read = scheduler.claim(reader)
        assert read is not None
        scheduler.finish(reader, read)
        if scheduler.commit(reader) is not None:
            break
        for _ in range(updates):
            scheduler.update()
    return reader.restarts


def test_theorem_4_fails_once_aborted_queries_start_again() -> None:
    # In the order of the array the query is aborted at once, starts again early and gets through.
    assert restarts(3, (1, 2, 0, 2), Ordered([0, 1, 2])) == 1
    assert restarts(3, (1, 2, 0, 2), level("ttu")) == 2
