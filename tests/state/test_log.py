from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.count_window import last_rows
from sash.operators.netting import net_all
from sash.plan.nodes import Rows
from sash.state.changes import ChangeBatch
from sash.state.log import InputLog
from sash.time import FOREVER

DTYPES = [pa.int64()]


class Store(dict[int, bytes]):
    """Chunks in a dict; a chunk that is not there fails."""

    def get(self, number: int) -> bytes:  # type: ignore[override]
        return self[number]

    def put(self, number: int, data: bytes) -> None:
        assert number not in self
        self[number] = data

    def remove(self, number: int) -> None:
        del self[number]


def numbers() -> Callable[[], int]:
    return itertools.count().__next__


def changes(rows: list[tuple[int, int, int]], life: int | None = None) -> ChangeBatch:
    """From (ts, sign, value)."""
    ts = np.array([row[0] for row in rows], np.int64)
    exp = np.full(len(rows), FOREVER) if life is None else ts + life
    return ChangeBatch(
        ts, exp, np.array([row[1] for row in rows], np.int8), (pa.array([r[2] for r in rows], pa.int64()),)
    )


def listed(batch: ChangeBatch) -> list[tuple[int, int, int]]:
    return list(zip(batch.ts.tolist(), batch.sign.tolist(), batch.columns[0].to_pylist(), strict=True))


def test_a_log_read_again_from_its_directory_has_the_same_rows() -> None:
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES, horizon=100)
    log.append(changes([(1, 1, 7), (2, 1, 8)]), 2, number)
    log.append(changes([(0, 1, 9)]), 3, number)
    again = InputLog(store, DTYPES, horizon=100, directory=json.loads(json.dumps(log.directory)))
    assert listed(again.load()) == [(0, 1, 9), (1, 1, 7), (2, 1, 8)]
    assert (again.rows, again.size) == (3, sum(map(len, store.values())))


def test_a_chunk_goes_only_when_the_expiry_of_its_last_row_is_released() -> None:
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES, horizon=10)
    log.append(changes([(1, 1, 7), (5, 1, 8)]), 5, number)
    log.append(changes([]), 15, number)
    assert log.rows == 2
    log.append(changes([]), 16, number)
    assert (log.rows, len(store)) == (0, 0)


def test_rows_that_carry_their_expiration_time_go_by_it() -> None:
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES)
    log.append(changes([(1, 1, 7)], life=20), 5, number)
    log.append(changes([]), 22, number)
    assert not store


def test_many_small_chunks_become_one() -> None:
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES, horizon=10**9)
    for instant in range(200):
        log.append(changes([(instant, 1, instant)]), instant, number)
        assert len(store) <= 34
    assert listed(log.load()) == [(instant, 1, instant) for instant in range(200)]


def test_a_log_of_rows_taken_back_stays_small() -> None:
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES, netting=net_all)
    for instant in range(100):
        adding = [(instant, 1, instant * 1000 + n) for n in range(1000)]
        removing = [(instant, -1, (instant - 1) * 1000 + n) for n in range(1000)] if instant else []
        log.append(changes(removing + adding), instant + 1, number)
    assert log.rows <= 14_000
    alive = Counter()
    for _, sign, value in listed(log.load()):
        alive[value] += sign
    assert +alive == Counter(range(99_000, 100_000))


def test_rows_that_wait_for_the_clock_are_not_netted() -> None:
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES, netting=net_all)
    log.append(changes([(1, 1, n) for n in range(12_000)]), 5, number)
    log.append(changes([(9, -1, n) for n in range(12_000)]), 5, number)
    assert log.rows == 24_000
    log.append(changes([]), 10, number)
    assert log.rows == 0


def test_a_log_of_rows_pushed_out_by_later_ones_stays_small() -> None:
    store, number, keep = Store(), numbers(), partial(last_rows, Rows(1500))
    log = InputLog(store, DTYPES, netting=keep, counted=True)
    for instant in range(200):
        log.append(changes([(instant, 1, instant * 1000 + n) for n in range(1000)]), instant, number)
        assert log.rows <= 2 * 2500 + 10_000
        log = InputLog(store, DTYPES, netting=keep, directory=json.loads(json.dumps(log.directory)), counted=True)
    past, waiting = [row for row in listed(log.load()) if row[0] < 199], [r for r in listed(log.load()) if r[0] == 199]
    assert [row[2] for row in past[-1500:]] == list(range(197_500, 199_000))
    assert len(waiting) == 1000, "rows that wait for the clock push nothing out yet"


def test_a_log_of_rows_that_expire_or_are_taken_back_stays_small() -> None:
    """Half of the rows never expire, and are taken back after 5; of the others every tenth is taken back before it expires."""
    store, number = Store(), numbers()
    log = InputLog(store, DTYPES, netting=net_all, counted=True)
    for instant in range(150):
        adding = [(instant, 1, instant * 1000 + n) for n in range(1000)]
        removing = [
            (instant, -1, (instant - 5) * 1000 + n) for n in range(1000) if instant >= 5 and (n % 2 == 0 or n % 20 == 1)
        ]
        rows = changes(removing + adding)
        value = rows.columns[0].to_numpy()
        exp = np.where(value % 2 == 1, value // 1000 + 8, FOREVER)
        log.append(ChangeBatch(rows.ts, exp, rows.sign, rows.columns), instant + 1, number)
        assert log.rows <= 2 * 9_000 + 10_000
        log = InputLog(store, DTYPES, netting=net_all, directory=json.loads(json.dumps(log.directory)), counted=True)
    kept = log.load()
    kept = kept.take(np.flatnonzero(kept.exp >= 150))
    alive = Counter()
    for _, sign, value in listed(kept):
        alive[value] += sign
    expected = {
        instant * 1000 + n
        for instant in range(142, 150)
        for n in range(1000)
        if (n % 2 == 1 and not (n % 20 == 1 and instant < 145)) or (n % 2 == 0 and instant >= 145)
    }
    assert +alive == Counter(expected)
    assert not -alive, (
        "of a row that expired, the retraction alone may be in the log; it is older than the rows that are read"
    )


@settings(max_examples=60)
@given(st.lists(st.tuples(st.lists(st.integers(0, 30), max_size=5), st.integers(0, 5)), max_size=60))
def test_every_live_row_is_in_the_log(batches: list[tuple[list[int], int]]) -> None:
    store, number, clock = Store(), numbers(), 0
    log, seen = InputLog(store, DTYPES, horizon=7), []
    for offsets, step in batches:
        rows = [(clock + offset, 1, clock) for offset in offsets]
        seen += rows
        clock += step
        log.append(changes(rows), clock, number)
        log = InputLog(store, DTYPES, horizon=7, directory=log.directory)
        kept = Counter(listed(log.load()))
        assert not Counter(row for row in seen if row[0] + 7 >= clock) - kept
        assert not kept - Counter(seen)
