"""Rows in blocks: what ended between two clocks is found again, whatever arrived with which batch."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from sash.state import row_blocks
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.state.row_blocks import RowBlocks

DTYPES = (pa.int64(), pa.string())


def batch(rows: list[tuple[int, int]]) -> ChangeBatch:
    values = [value for _, value in rows]
    columns = (
        pa.array(values, pa.int64()),
        pa.array([None if v % 5 == 0 else "x" * (v % 7) for v in values], pa.string()),
    )
    ts = np.array([ts for ts, _ in rows], np.int64)
    return ChangeBatch.explicit(ts, np.ones(len(rows), np.int8), columns)


def listed(rows: ChangeBatch) -> list[tuple[int, int, str | None]]:
    return list(zip(rows.ts.tolist(), rows.columns[0].to_pylist(), rows.columns[1].to_pylist(), strict=True))


@pytest.mark.parametrize("block", [1, 700, 1 << 17])
@pytest.mark.parametrize("seed", range(3))
def test_rows_between_two_times_are_those_that_arrived(seed: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_blocks, "_BLOCK_BYTES", block)
    monkeypatch.setattr(row_blocks, "_SMALL_BYTES", block // 4)
    rnd = random.Random(seed)
    memory = HeapMemory()
    blocks, arrived, clock, floor = RowBlocks(memory, DTYPES), [], 0, 0
    for number in range(150):
        came = [(clock + rnd.randrange(20), number * 100 + n) for n in range(rnd.choice((0, 1, 3, 40)))]
        clock += rnd.randrange(12)
        blocks.append(batch(came), clock)
        arrived += came
        known = sorted(((ts, v) for ts, v in arrived if ts < clock), key=lambda row: row[0])
        start = rnd.randint(floor, clock)
        end = rnd.randint(start, clock)
        wanted = [row for row in known if start <= row[0] < end]
        assert listed(blocks.between(start, end)) == listed(batch(wanted))
        floor = max(floor, clock - rnd.randint(30, 90))
        blocks.drop_before(floor)
        blocks = RowBlocks(memory, DTYPES)  # the next batch attaches it anew
    if block < 1 << 17:
        assert blocks.rows < len(arrived) // 2


def test_the_arrays_do_not_grow_with_the_rows_that_pass() -> None:
    memory = HeapMemory()
    blocks = RowBlocks(memory, DTYPES)
    sizes = []
    for number in range(400):
        blocks.append(batch([(number * 10 + n % 10, n) for n in range(300)]), number * 10 + 10)
        blocks.drop_before(number * 10 - 200)
        sizes.append(memory.nbytes)
    assert sizes[-1] == sizes[60]
    assert listed(blocks.between(3_900, 3_901))[0][0] == 3_900
