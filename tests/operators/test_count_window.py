"""The count window against sorting all rows so far, at every instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.count_window import CountWindow, last_rows
from sash.plan.nodes import Rows
from sash.state.memory import HeapMemory, Memory
from sash.time import FOREVER
from tests.operators.reference import Bag, Life, Row, at, clocks, drive, edge, rows_of, stamped

VALUES = st.tuples(st.sampled_from([None, -3, 0, 1]), st.sampled_from([None, "", "a", "a\0", "ab", "é"]))
WINDOWS = st.builds(Rows, st.integers(1, 5), st.sampled_from([(), (1,), (2,), (2, 1)]))
COLUMNS = (pa.int64(), pa.int64(), pa.string())
EDGE = edge("explicit", COLUMNS)


def arrivals(items: list[tuple[int, Row]]) -> list[Life]:
    """Rows from the gap to the row before and their values; their time is a column, and they never expire."""
    now, result = 0, []
    for gap, row in items:
        now += gap
        result.append(Life(now, int(FOREVER), (now, *row)))
    return result


STREAMS = st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 2]), VALUES), max_size=40).map(arrivals)


def window_at(entries: Sequence[Life], window: Rows, instant: int) -> Bag:
    """The last rows of each partition, by sorting."""
    past = [life for life in entries if life.ts <= instant]
    past.sort(key=lambda life: (life.ts, *(_plain(value) for value in life.row)))
    partitions: dict[Row, list[Row]] = {}
    for life in past:
        partitions.setdefault(tuple(life.row[column] for column in window.partition), []).append(life.row)
    return Counter(row for rows in partitions.values() for row in rows[-window.count :])


def _plain(value: object) -> tuple[bool, object]:
    return value is not None, value.encode() if isinstance(value, str) else value


TIES = arrivals([(1, (1, "b")), (0, (0, "a")), (0, (None, "c")), (1, (5, "a")), (0, (2, "z")), (3, (1, "b"))])


@settings(max_examples=300)
@example(entries=TIES, window=Rows(2), calls=[2, 200])
@example(entries=TIES, window=Rows(1, (2,)), calls=[1, 2, 200])
@given(entries=STREAMS, window=WINDOWS, calls=clocks())
def test_oracle_count_window(entries: list[Life], window: Rows, calls: list[int]) -> None:
    def make(memory: Memory, edges: tuple[Edge, ...]) -> CountWindow:
        return CountWindow(memory, (edges[0],), window)

    output = drive(make, [EDGE], [entries], calls)
    for instant in sorted({life.ts for life in entries}):
        assert at(output, instant) == window_at(entries, window, instant), f"at {instant}"


@settings(max_examples=100)
@given(entries=STREAMS, window=WINDOWS, split=st.integers(0, 40))
def test_what_is_kept_of_the_past_makes_the_same_window(entries: list[Life], window: Rows, split: int) -> None:
    before, after = entries[:split], entries[split:]
    kept = last_rows(window, stamped(before, COLUMNS))
    assert Counter(rows_of(kept)) == window_at(before, window, 10**6)
    assert kept.ts.tolist() == sorted(kept.ts.tolist())
    again = [Life(ts, int(FOREVER), row) for ts, row in zip(kept.ts.tolist(), rows_of(kept), strict=True)]
    for instant in sorted({life.ts for life in after}):
        assert window_at([*again, *after], window, instant) == window_at(entries, window, instant)


def changes(operator: CountWindow, rows: list[Life], clock: int) -> list[tuple[int, int, Row]]:
    output = operator.process([stamped(rows, COLUMNS)], clock)
    return [
        (ts, sign, row[1:])
        for ts, sign, row in zip(output.ts.tolist(), output.sign.tolist(), rows_of(output), strict=True)
    ]


def test_a_new_row_pushes_out_the_oldest_at_its_instant() -> None:
    operator = CountWindow(HeapMemory(), (EDGE,), Rows(2))
    assert changes(operator, arrivals([(1, (1, "a")), (1, (2, "b"))]), 3) == [(1, 1, (1, "a")), (2, 1, (2, "b"))]
    assert changes(operator, arrivals([(7, (3, "c")), (1, (4, "d"))]), 9) == [
        (7, -1, (1, "a")), (7, 1, (3, "c")), (8, -1, (2, "b")), (8, 1, (4, "d")),
    ]  # fmt: skip


def test_rows_that_never_are_in_the_window_say_nothing() -> None:
    operator = CountWindow(HeapMemory(), (EDGE,), Rows(2))
    burst = [(4, (3, "x")), (0, (9, "x")), (0, (None, "x")), (0, (5, "x"))]
    assert changes(operator, arrivals(burst), 5) == [(4, 1, (9, "x")), (4, 1, (5, "x"))]
    assert operator.state_rows == 2


@pytest.mark.parametrize(("window", "rows"), [(Rows(10), 10), (Rows(10, (1,)), 70), (Rows(10, (2,)), 20)])
def test_state_follows_the_rows_in_the_window(window: Rows, rows: int) -> None:
    memory = HeapMemory()
    operator = CountWindow(memory, (EDGE,), window)
    sizes = []
    for start in range(0, 8000, 1000):
        batch = [
            Life(n, int(FOREVER), (n, n % 7, f"long enough for the heap of bytes {n % 2}"))
            for n in range(start, start + 1000)
        ]
        operator.process([stamped(batch, COLUMNS)], start + 1000)
        assert operator.state_rows == rows
        sizes.append(memory.nbytes)
    assert sizes[-1] == sizes[2]
