"""The parts of a simulated pipeline: legs and operators with a delay, and the queues between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

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
class _Delivery:
    """Rows, or a time message, that reach the reader of a queue at `due`."""

    due: int
    rows: ChangeBatch | None
    time: int = BEGINNING


class InputQueue:
    """The queue on an input edge of an operator, and the operator's source of time on that edge."""

    def __init__(self, below: LegServer | OperatorServer, node: Physical, time_source: TimeSource) -> None:
        self.below = below
        self.time_source = time_source
        self.stamped = node.expiry in ("fifo", "calendar")
        self.waiting = ChangeBatch.empty([column.dtype for column in node.schema])
        self.messages = 0
        self._deliveries: deque[_Delivery] = deque()

    def send(self, due: int, rows: ChangeBatch | None, time: int = BEGINNING) -> None:
        self._deliveries.append(_Delivery(due, rows, time))

    def deliver(self, now: int) -> None:
        """Deliver rows and time messages that are due."""
        arrived = []
        while self._deliveries and self._deliveries[0].due <= now:
            delivery = self._deliveries.popleft()
            if delivery.rows is not None:
                arrived.append(delivery.rows)
                self.time_source.receive_rows(delivery.rows, self.stamped, now)
            elif self.stamped:
                before = self.time_source.time
                self.time_source.receive_message(delivery.time, now)
                self.messages += self.time_source.time > before
        if arrived:
            self.waiting = concat([self.waiting, *arrived]).sorted()

    def tick(self, now: int) -> None:
        """Let the source of time advance with the system clock."""
        before = self.time_source.time
        self.time_source.tick(self.progress, now)
        self.messages += isinstance(self.time_source, PiggybackedTime) and self.time_source.time > before

    @property
    def progress(self) -> int:
        """The time before which all rows have been delivered."""
        times = [int(one.rows.ts[0]) for one in self._deliveries if one.rows is not None and len(one.rows)]
        return min([self.below.progress, *times])

    def next_message(self, clock: int) -> int:
        """The first time from the clock on that is not delivered yet, or waits for a row to carry it."""
        if self.time_source.wake is not None:
            return clock
        times = [one.time for one in self._deliveries if one.rows is None and one.time >= clock]
        return min(times, default=FOREVER)

    def take(self, clock: int) -> ChangeBatch:
        """Remove and return the delivered rows before the clock."""
        split = int(np.searchsorted(self.waiting.ts, clock, side="left"))
        rows, self.waiting = self.waiting.slice(0, split), self.waiting.slice(split, len(self.waiting))
        return rows

    def restamp_late(self, clock: int, now: int) -> None:
        """Give delivered rows before the clock the current time, and drop those that have expired by then."""
        late = self.waiting
        if len(late) and int(late.ts[0]) < clock:
            moved = ChangeBatch(np.where(late.ts < clock, now, late.ts), late.exp, late.sign, late.columns)
            self.waiting = moved.take(np.flatnonzero(moved.exp > moved.ts)).sorted()


class Server:
    """A part of the pipeline whose output reaches its readers after a delay."""

    def __init__(self, delay: float) -> None:
        self.delay = round(delay)
        self.outputs: list[InputQueue] = []
        self.counts = Counts()
        self.progress = BEGINNING

    def departure(self, work: int, now: int) -> int:
        """The time at which output made now, of this many rows, reaches the readers."""
        return now + self.delay

    def _send_rows(self, rows: ChangeBatch, work: int, now: int) -> int:
        due = self.departure(work, now)
        if len(rows):
            for queue in self.outputs:
                queue.send(due, rows)
        return due

    def _send_time(self, time: int, now: int) -> int:
        due = self.departure(0, now)
        for queue in self.outputs:
            queue.send(due, None, time)
        return due


class LegServer(Server):
    """A leg over its stream, whose rows arrive at their times plus the slack."""

    def __init__(self, rows: ChangeBatch, arrivals: int, slack: int, delay: float) -> None:
        super().__init__(delay)
        self.rows = rows
        self.slack = slack
        self.counts = Counts(arrivals, 0, len(rows), 0)
        self._sent = 0
        self._expirations = np.unique(rows.exp[rows.exp < FOREVER])
        self._announced = 0

    @property
    def instants(self) -> Ints:
        """The times at which rows arrive or expire."""
        return np.concatenate((self.rows.ts, self._expirations))

    def advance(self, now: int, messages: bool) -> tuple[ChangeBatch, int]:
        """Send the rows up to now and, if the strategy has time messages, the last expiration time."""
        clock = now + 1 - self.slack
        end = int(np.searchsorted(self.rows.ts, clock, side="left"))
        arrived, due = self.rows.slice(self._sent, end), now
        expired = int(np.searchsorted(self._expirations, clock, side="left"))
        if messages and expired > self._announced:
            due = self._send_time(int(self._expirations[expired - 1]), now)
        self._announced = expired
        if len(arrived):
            due = self._send_rows(arrived, len(arrived), now)
            self._sent = end
        self.progress = clock
        return arrived, due


class OperatorServer(Server):
    """An operator, which runs up to the time that its inputs have received and are complete to."""

    def __init__(
        self, node: Operation, name: str, tables: Mapping[Node, pa.Table], synchronised: bool, delay: float
    ) -> None:
        super().__init__(delay)
        self.node = node
        self.name = name
        self.inputs: list[InputQueue] = []
        self.clock = BEGINNING
        self.operator = build(node, HeapMemory(), tables)
        self._synchronised = synchronised
        self._must_expire = must_expire(node)
        self._announced = BEGINNING

    def advance(self, now: int, messages: bool, *, everything: bool = False) -> tuple[ChangeBatch | None, int]:
        """Run the operator; returns its changes, or None if it did not run, and the time at which they arrive.

        With `everything` it runs up to the progress of its inputs, whatever time it has received.
        """
        for queue in self.inputs:
            queue.deliver(now)
        for queue in self.inputs:
            queue.tick(now)
        progress = min(queue.progress for queue in self.inputs)
        received = max(queue.time_source.time for queue in self.inputs)
        if everything:
            clock = progress
        elif self._synchronised:
            clock = min(progress, received)
        else:
            clock = received
            for queue in self.inputs:
                queue.restamp_late(self.clock, now)
        clock = max(clock, self.clock)
        self.progress = max(progress, clock)
        if self._must_expire:
            # With time messages, the output is complete up to the next message that is under way.
            self.progress = (
                min([progress, *(queue.next_message(clock) for queue in self.inputs)]) if messages else clock
            )
        batches = [queue.take(clock) for queue in self.inputs]
        work = sum(len(batch) for batch in batches)
        if clock == self.clock and not work:
            return None, now
        self.clock = clock
        before = Buffer.expired
        output = self.operator.process(batches, clock)
        self.counts.count_call(batches, output, Buffer.expired - before)
        due = self._send_rows(output, work or len(output), now)
        if messages and self.node.expiry in ("fifo", "calendar") and clock - 1 > self._announced:
            last = int(output.ts[-1]) if len(output) else BEGINNING
            self._announced = clock - 1
            if last < clock - 1:
                due = self._send_time(clock - 1, now)
        return output, due
