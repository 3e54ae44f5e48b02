"""The pieces of a simulated pipeline: scans and operators that take their time, and the queues between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa

from sash.physical.facts import must_expire
from sash.physical.nodes import Operation, Physical
from sash.physical.strategies.base import TimeSource
from sash.physical.strategies.piggyback import PiggybackedTime
from sash.plan.nodes import Node
from sash.runtime.build import build
from sash.runtime.counts import Counts
from sash.state.buffer import Buffer
from sash.state.changes import ChangeBatch, concat
from sash.state.memory import HeapMemory, Ints
from sash.time import BEGINNING, FOREVER


@dataclass(frozen=True)
class _Parcel:
    """What is on its way along an edge: rows, or the time alone."""

    due: int
    rows: ChangeBatch | None
    time: int = BEGINNING


class Edge:
    """The queue between two operators, and the ear of the upper one."""

    def __init__(self, below: Source | Step, node: Physical, ear: TimeSource) -> None:
        self.below = below
        self.ear = ear
        self.stamped = node.expiry in ("fifo", "calendar")
        self.empty = ChangeBatch.empty([column.dtype for column in node.schema])
        self.waiting = self.empty
        self.messages = 0
        self._queue: deque[_Parcel] = deque()

    def send(self, parcel: _Parcel) -> None:
        self._queue.append(parcel)

    def deliver(self, now: int) -> None:
        """Let what is due reach the operator."""
        came = []
        while self._queue and self._queue[0].due <= now:
            parcel = self._queue.popleft()
            if parcel.rows is not None:
                came.append(parcel.rows)
                self.ear.receive_rows(parcel.rows, self.stamped, now)
            elif self.stamped:
                before = self.ear.time
                self.ear.receive_message(parcel.time, now)
                self.messages += self.ear.time > before
        if came:
            self.waiting = concat([self.waiting, *came]).sorted()

    def listen(self, now: int) -> None:
        before = self.ear.time
        self.ear.tick(self.progress, now)
        self.messages += isinstance(self.ear, PiggybackedTime) and self.ear.time > before

    @property
    def progress(self) -> int:
        """Up to where everything has reached the operator."""
        times = [int(parcel.rows.ts[0]) for parcel in self._queue if parcel.rows is not None and len(parcel.rows)]
        return min([self.below.progress, *times])

    def untold(self, clock: int) -> int:
        """The first time from the clock on that is on its way to the operator, or waits to be carried to it."""
        if self.ear.wake is not None:
            return clock
        times = [parcel.time for parcel in self._queue if parcel.rows is None and parcel.time >= clock]
        return min(times, default=int(FOREVER))

    def take(self, clock: int) -> ChangeBatch:
        """The rows before the clock."""
        split = int(np.searchsorted(self.waiting.ts, clock, side="left"))
        rows, self.waiting = self.waiting.slice(0, split), self.waiting.slice(split, len(self.waiting))
        return rows

    def hurry(self, clock: int, now: int) -> None:
        """Take rows that come after their time for rows of now."""
        late = self.waiting
        if len(late) and int(late.ts[0]) < clock:
            moved = ChangeBatch(np.where(late.ts < clock, now, late.ts), late.exp, late.sign, late.columns)
            self.waiting = moved.take(np.flatnonzero(moved.exp > moved.ts)).sorted()


class Server:
    """Something that rows pass through in its own time."""

    def __init__(self, delay: float, service: float) -> None:
        self._delay = round(delay)
        self._service = service
        self._busy = 0.0
        self.edges: list[Edge] = []

    def give(self, rows: ChangeBatch, work: int, now: int) -> int:
        """Send what was made of so much work on its way; when it arrives."""
        self._busy = max(self._busy, now) + work * self._service
        due = max(now, round(self._busy)) + self._delay
        if len(rows):
            for edge in self.edges:
                edge.send(_Parcel(due, rows))
        return due

    def tell(self, time: int, now: int) -> int:
        """Send the time alone."""
        due = max(now, round(self._busy)) + self._delay
        for edge in self.edges:
            edge.send(_Parcel(due, None, time))
        return due


class Source(Server):
    """A leg over its stream: rows arrive, pass it, and end."""

    def __init__(self, rows: ChangeBatch, arrivals: int, slack: int, delay: float, service: float) -> None:
        super().__init__(delay, service)
        self.rows = rows
        self.slack = slack
        self.counts = Counts(arrivals, 0, len(rows), 0)
        self.progress = BEGINNING
        self._given = 0
        self._ends = np.unique(rows.exp[rows.exp < FOREVER])
        self._told = 0

    @property
    def instants(self) -> Ints:
        """When something happens to its rows."""
        return np.concatenate((self.rows.ts, self._ends))

    def advance(self, now: int, messages: bool) -> tuple[ChangeBatch, int]:
        """Let the rows of up to now come, and say (where the strategy has it said) which have ended."""
        clock = now + 1 - self.slack
        end = int(np.searchsorted(self.rows.ts, clock, side="left"))
        came, due = self.rows.slice(self._given, end), now
        ended = int(np.searchsorted(self._ends, clock, side="left"))
        if messages and ended > self._told:
            due = self.tell(int(self._ends[ended - 1]), now)
        self._told = ended
        if len(came):
            due = self.give(came, len(came), now)
            self._given = end
        self.progress = clock
        return came, due


class Step(Server):
    """An operator."""

    def __init__(
        self,
        node: Operation,
        name: str,
        tables: Mapping[Node, pa.Table],
        synchronised: bool,
        delay: float,
        service: float,
    ) -> None:
        super().__init__(delay, service)
        self.node = node
        self.name = name
        self.inputs: list[Edge] = []
        self.counts = Counts()
        self.progress = BEGINNING
        self.clock = BEGINNING
        self._operator = build(node, HeapMemory(), tables)
        self._synchronised = synchronised
        self._told = BEGINNING
        self._seconds = 0.0
        self._worked = 0

    @property
    def measured(self) -> float:
        """The time that a row took here, in microseconds."""
        return 1e6 * self._seconds / max(1, self._worked)

    def advance(self, now: int, messages: bool, *, everything: bool = False) -> tuple[ChangeBatch | None, int]:
        """Run as far as it has heard; its changes, if it ran, and when they arrive."""
        for edge in self.inputs:
            edge.deliver(now)
        for edge in self.inputs:
            edge.listen(now)
        progress = min(edge.progress for edge in self.inputs)
        heard = max(edge.ear.time for edge in self.inputs)
        if everything:
            clock = progress
        elif self._synchronised:
            clock = min(progress, heard)
        else:
            clock = heard
            for edge in self.inputs:
                edge.hurry(self.clock, now)
        clock = max(clock, self.clock)
        self.progress = max(progress, clock)
        if must_expire(self.node):
            # Where times are told, no word means that nothing has ended.
            self.progress = min([progress, *(edge.untold(clock) for edge in self.inputs)]) if messages else clock
        batches = [edge.take(clock) for edge in self.inputs]
        work = sum(len(batch) for batch in batches)
        if clock == self.clock and not work:
            return None, now
        self.clock = clock
        before, begun = Buffer.expired, perf_counter()
        output = self._operator.process(batches, clock)
        self.counts.count_call(batches, output, Buffer.expired - before)
        work = work or len(output)
        if work:
            self._seconds += perf_counter() - begun
            self._worked += work
        due = self.give(output, work, now)
        if messages and self.node.expiry in ("fifo", "calendar") and clock - 1 > self._told:
            last = int(output.ts[-1]) if len(output) else BEGINNING
            self._told = clock - 1
            if last < clock - 1:
                due = self.tell(clock - 1, now)
        return output, due
