"""The three state buffers against a dictionary of live rows (paper 5, 5.2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.state.buffer import Buffer
from sash.state.calendar import CalendarBuffer
from sash.state.fifo import FifoBuffer
from sash.state.hash import HashBuffer
from sash.state.memory import HeapMemory, Memory
from sash.time import FOREVER

STEPS = st.lists(
    st.tuples(st.integers(0, 40), st.lists(st.sampled_from([1, 2, 5, 11, 60, int(FOREVER)]), max_size=30)), max_size=12
)
MAKERS: dict[str, Callable[[Memory], Buffer]] = {
    "fifo": FifoBuffer,
    "calendar": lambda memory: CalendarBuffer(memory, partitions=4, width=3),
    "calendar of one": lambda memory: CalendarBuffer(memory, partitions=1, width=1),
    "wide calendar": lambda memory: CalendarBuffer(memory, partitions=64, width=1000),
}


@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=80)
@given(steps=STEPS)
def test_oracle_expiry(name: str, steps: list[tuple[int, list[int]]]) -> None:
    memory = HeapMemory()
    live: dict[int, int] = {}
    clock = 0
    for advance, lengths in steps:
        buffer = MAKERS[name](memory)
        exps = [min(clock + length, int(FOREVER)) for length in lengths]
        if name == "fifo":
            exps = sorted(max(exp, max(live.values(), default=0)) for exp in exps)
        slots = buffer.add(np.array(exps, np.int64)).tolist()
        assert not set(slots) & set(live)
        assert len(set(slots)) == len(slots)
        live.update(zip(slots, exps, strict=True))
        assert buffer.live == len(live)
        clock += advance
        gone, times = buffer.drain(clock)
        assert times.tolist() == sorted(exp for exp in live.values() if exp < clock)
        assert [live.pop(slot) for slot in gone.tolist()] == times.tolist()
        assert all(slot < buffer.capacity for slot in live)
        buffer.release(gone)


def test_a_fifo_of_steady_size_does_not_grow() -> None:
    memory = HeapMemory()
    buffer = FifoBuffer(memory)
    for clock in range(0, 1_000_000, 1000):
        buffer.add(np.arange(clock, clock + 1000) + 2000)
        buffer.release(buffer.drain(clock + 1000)[0])
    assert buffer.live == 2000
    assert memory.nbytes < 300_000


def test_a_calendar_drains_what_lies_many_turns_back() -> None:
    buffer = CalendarBuffer(HeapMemory(), partitions=4, width=10)
    buffer.add(np.array([5, 45, 85, 1_000_000, int(FOREVER)]))
    assert buffer.drain(50)[1].tolist() == [5, 45]
    assert buffer.drain(10_000)[1].tolist() == [85]
    buffer.add(np.array([10_000, 10_001]))
    assert buffer.drain(2_000_000)[1].tolist() == [10_000, 10_001, 1_000_000]


@settings(max_examples=100)
@given(st.lists(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=30), max_size=8))
def test_oracle_hash_buffer(steps: list[list[tuple[bool, int]]]) -> None:
    memory = HeapMemory()
    held: defaultdict[int, set[int]] = defaultdict(set)
    for wanted in steps:
        buffer = HashBuffer(memory)
        there = Counter({value: len(slots) for value, slots in held.items()})
        changes = []
        for add, value in wanted:
            there[value] += 1 if add else -1
            if there[value] < 0:
                there[value] = 0
            else:
                changes.append((1 if add else -1, value))
        signs = np.array([sign for sign, _ in changes], np.int8)
        keys = np.array([value for _, value in changes], np.uint64)
        slots = buffer.apply(signs, keys, np.zeros(len(keys), np.uint64)).tolist()
        for (sign, value), slot in zip(changes, slots, strict=True):
            if sign > 0:
                assert all(slot not in others for others in held.values())
                held[value].add(slot)
            else:
                held[value].remove(slot)
        buffer.release(np.array([slot for (sign, _), slot in zip(changes, slots, strict=True) if sign < 0], np.int64))
        assert buffer.live == sum(map(len, held.values()))


def test_taking_back_a_row_that_is_not_there_is_an_error() -> None:
    one = np.array([1], np.uint64)
    with pytest.raises(ValueError, match="does not exist"):
        HashBuffer(HeapMemory()).apply(np.array([-1], np.int8), one, one)
