"""Window DISTINCT over stamped rows (paper 5, 5.3.1; paper 1, Algorithm 4.1)."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.distinct import Distinct
from sash.operators.set_operation import SetOperation
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import Life, check, clocks, drive, edge, lives, rows_of, stamped


def make(memory: Memory, edges: tuple[Edge, ...]) -> Distinct:
    return Distinct(memory, (edges[0],))


def make_spoken(memory: Memory, edges: tuple[Edge, ...]) -> Distinct:
    return Distinct(memory, (edges[0],), retracting=True)


@settings(max_examples=150)
@given(data=st.data())
def test_oracle_distinct(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["fifo", "calendar"]))
    inputs = [data.draw(lives(kind))]
    output = drive(make, [edge(kind)], inputs, data.draw(clocks()), stamped_output=True)
    check(output, inputs, lambda live: Counter(set(live)))


@settings(max_examples=150)
@given(data=st.data())
def test_oracle_spoken_distinct(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(["fifo", "calendar"]))
    inputs = [data.draw(lives(kind))]
    output = drive(make_spoken, [edge(kind)], inputs, data.draw(clocks()))
    check(output, inputs, lambda live: Counter(set(live)))


def run(rows: list[Life], clock: int = 100) -> list[Life]:
    output = Distinct(HeapMemory(), (edge("calendar"),)).process([stamped(rows)], clock)
    return [Life(*life) for life in zip(output.ts.tolist(), output.exp.tolist(), rows_of(output), strict=True)]


def test_the_duplicate_that_expires_last_replaces_the_reported_row() -> None:
    """Paper 1's example, |w| = 6: a@2, d@4, a@6, d@7, a@8: at 8 a is the one of 8, at 10 d is the one of 7."""
    a, d = (1, "a"), (2, "d")
    rows = [Life(2, 8, a), Life(4, 10, d), Life(6, 12, a), Life(7, 13, d), Life(8, 14, a)]
    assert run(rows) == [Life(2, 8, a), Life(4, 10, d), Life(8, 14, a), Life(10, 13, d)]


def test_an_older_duplicate_that_lives_longer_is_not_lost() -> None:
    """Erratum 5: on input that expires out of order the youngest duplicate is not the one to keep."""
    a = (1, "a")
    assert run([Life(0, 3, a), Life(1, 9, a), Life(2, 4, a)]) == [Life(0, 3, a), Life(3, 9, a)]


def test_spoken_a_replacement_is_no_change() -> None:
    """The same rows with retractions: a value that is replaced stays."""
    a, d = (1, "a"), (2, "d")
    rows = [Life(2, 8, a), Life(4, 10, d), Life(6, 12, a), Life(7, 13, d), Life(12, 18, a)]
    operator = Distinct(HeapMemory(), (edge("fifo"),), retracting=True)
    output = operator.process([stamped(rows)], 18)
    found = list(zip(output.ts.tolist(), output.sign.tolist(), rows_of(output), strict=True))
    assert found == [(2, 1, a), (4, 1, d), (13, -1, d)]
    assert operator.state_rows == 1, "a ends at 18, which is not over"
    assert operator.process([stamped([])], 19).ts.tolist() == [18]
    assert operator.state_rows == 0


def test_distinct_regulates() -> None:
    """At most one output row per value and window, whatever the input rate."""
    rows = [Life(ts, ts + 10, (key, None)) for ts in range(50) for key in range(3) for _ in range(4)]
    assert len(run(rows, 50)) == 3 * 5


def test_dead_values_leave_no_state() -> None:
    operator = Distinct(HeapMemory(), (edge("fifo"),))
    operator.process([stamped([Life(0, 5, (key, "x")) for key in (1, 1, 2, None)])], 5)
    assert operator.state_rows == 3
    operator.process([stamped([])], 6)
    assert operator.state_rows == 0


def test_paper5_state_is_at_most_twice_the_output() -> None:
    """Delta-star keeps a value's reported row and when its last duplicate expires; the two-buffer form every live row."""
    rng = np.random.default_rng(1)
    ts = np.sort(rng.integers(0, 20_000, 50_000))
    rows = [
        Life(int(t), int(t) + 10_000, (int(key), None)) for t, key in zip(ts, rng.integers(0, 500, 50_000), strict=True)
    ]
    kept, plain = HeapMemory(), HeapMemory()
    star, two_buffers = Distinct(kept, (edge("fifo"),)), SetOperation(plain, (edge("fifo"),), "distinct")
    for clock in range(1_000, 20_001, 1_000):
        part = stamped([life for life in rows if clock - 1_000 <= life.ts < clock])
        star.process([part], clock)
        two_buffers.process([part], clock)
        live = [life for life in rows if life.ts < clock <= life.exp]
        output = len({life.row for life in live})
        assert star.state_rows <= 2 * output
        assert two_buffers.state_rows >= len(live)
    assert 10 * star.state_rows < two_buffers.state_rows
