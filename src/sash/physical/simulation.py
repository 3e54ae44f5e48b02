"""Simulation: a plan run event by event, on one clock, with queues between its operators.

Everything that can change an answer happens at an instant that is known beforehand: the arrival of a row, or the end of
its life. The simulated system clock goes from one such instant to the next. At each, operators take from their queues
what has reached them, in the order of the pipeline; each runs as far as it has *heard* (`strategies/`) and as its inputs
are complete, and what it puts out reaches the next operator after its delay. So when a change leaves the last operator is
exact, repeatable, and does not depend on batches. The operators are those that run everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from time import perf_counter

import numpy as np
import pyarrow as pa

from sash.errors import StrategyError
from sash.operators.window import assign
from sash.physical.legs import LegRunner
from sash.physical.nodes import Leaf, Operation, Physical, PhysicalPlan, RelationLeg, StreamLeg, UpdateLeg, walk
from sash.physical.pacing import patience
from sash.physical.registry import build
from sash.physical.shard import Counts, relation_rows
from sash.physical.strategies.base import NEVER, Ear, Settings, must_expire
from sash.physical.strategies.piggyback import Carried
from sash.physical.strategies.registry import strategy_of
from sash.plan.nodes import Node
from sash.state.buffer import Buffer
from sash.state.changes import FOREVER, ChangeBatch, concat
from sash.state.memory import HeapMemory, Ints

ALIASES = {"select": "filter", "group by": "aggregate", "minus": "setoperation", "except": "setoperation"}


@dataclass(frozen=True)
class Feed:
    """The rows of one stream, sorted by time, and how long they are held back."""

    rows: ChangeBatch
    slack: int = 0


@dataclass(frozen=True)
class Pace:
    """How slow operators are, in microseconds by name: `delays` is how long a row takes through one, whatever its load;
    `service` how long one is busy with a row, so that rows queue."""

    delays: Mapping[str, float] = field(default_factory=dict)
    service: Mapping[str, float] = field(default_factory=dict)
    probe: int | None = None
    patience: int | None = None


@dataclass(frozen=True)
class Simulated:
    """The changes in the order of their release, when each left (FOREVER: never), and what the operators did.

    `service` is how long this machine took for a row in each operator, in microseconds: what `Pace.service` is to be given
    if queues are to form as they would here.
    """

    changes: ChangeBatch
    released: Ints
    counts: dict[str, Counts]
    switches: dict[str, int]
    service: dict[str, float]


@dataclass(frozen=True)
class _Parcel:
    """What is on its way along an edge: rows, or the time alone."""

    due: int
    rows: ChangeBatch | None
    time: int = NEVER


class _Edge:
    """The queue between two operators, and the ear of the upper one."""

    def __init__(self, below: _Source | _Step, node: Physical, ear: Ear) -> None:
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
                self.ear.rows(parcel.rows, self.stamped, now)
            elif self.stamped:
                before = self.ear.time
                self.ear.message(parcel.time, now)
                self.messages += self.ear.time > before
        if came:
            self.waiting = concat([self.waiting, *came]).sorted()

    def listen(self, now: int) -> None:
        before = self.ear.time
        self.ear.tick(self.progress, now)
        self.messages += isinstance(self.ear, Carried) and self.ear.time > before

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


class _Server:
    """Something that rows pass through in its own time."""

    def __init__(self, delay: float, service: float) -> None:
        self._delay = round(delay)
        self._service = service
        self._busy = 0.0
        self.edges: list[_Edge] = []

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


class _Source(_Server):
    """A leg over its stream: rows arrive, pass it, and end."""

    def __init__(self, rows: ChangeBatch, arrivals: int, slack: int, delay: float, service: float) -> None:
        super().__init__(delay, service)
        self.rows = rows
        self.slack = slack
        self.counts = Counts(arrivals, 0, len(rows), 0)
        self.progress = NEVER
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


class _Step(_Server):
    """An operator."""

    def __init__(
        self, node: Operation, name: str, tables: Mapping[Node, pa.Table], delay: float, service: float
    ) -> None:
        super().__init__(delay, service)
        self.node = node
        self.name = name
        self.inputs: list[_Edge] = []
        self.counts = Counts()
        self.progress = NEVER
        self.clock = NEVER
        self._operator = build(node, HeapMemory(), tables)
        self._told = NEVER
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
        elif all(edge.ear.synchronised for edge in self.inputs):
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
        self.counts.note(batches, output, Buffer.expired - before)
        work = work or len(output)
        if work:
            self._seconds += perf_counter() - begun
            self._worked += work
        due = self.give(output, work, now)
        if messages and self.node.expiry in ("fifo", "calendar") and clock - 1 > self._told:
            last = int(output.ts[-1]) if len(output) else NEVER
            self._told = clock - 1
            if last < clock - 1:
                due = self.tell(clock - 1, now)
        return output, due


class Simulation:
    """A plan over its streams, ready to run."""

    def __init__(
        self, plan: PhysicalPlan, tables: Mapping[Node, pa.Table], feeds: Mapping[str, Feed], pace: Pace | None = None
    ) -> None:
        self._strategy = strategy_of(plan.strategy)
        self._pace = pace or Pace()
        self._sources: list[_Source] = []
        self._steps: list[_Step] = []
        self._names: dict[str, _Source | _Step] = {}
        self._check_names(plan)
        if any(node.operator == "Sample" for stage in plan.stages for node in _operations(stage.root)):
            raise StrategyError(
                "a sliding window that meets a non-retroactive relation cannot be simulated: leave out SLIDE, or use a "
                "strategy that needs no simulation, such as auto, without delays, probe and patience"
            )
        legs = [self._source(plan, number, tables, feeds) for number in range(len(plan.legs))]
        roots: list[_Source | _Step] = []
        for stage in plan.stages:
            made: dict[int, _Source | _Step] = {}
            for index, node in enumerate(_operations(stage.root)):
                made[id(node)] = self._step(node, f"{stage.index}.{index}.{node.operator}", tables, made, legs, roots)
            root = stage.root
            roots.append(legs[root.leg or 0] if isinstance(root, Leaf) else made[id(root)])
        self._root = roots[-1]
        self._dtypes = [column.dtype for column in plan.schema]

    def run(self, until: int) -> Simulated:
        """Everything up to `until`; then, marked as never released, what operators have not noticed by then."""
        messages = self._strategy.messages
        agenda = [time for time in self._instants() if time <= until]
        changes: list[ChangeBatch] = []
        released: list[Ints] = []
        servers: list[_Source | _Step] = [*self._sources, *self._steps]
        seen = NEVER
        while agenda:
            now = heappop(agenda)
            if now <= seen or now > until:
                continue
            seen = now
            for server in servers:
                output, due = server.advance(now, messages)
                self._plan(agenda, due, now)
                if isinstance(server, _Step):
                    for edge in server.inputs:
                        self._plan(agenda, edge.ear.wake or now, now)
                if server is self._root and output is not None and len(output):
                    changes.append(output)
                    released.append(np.full(len(output), due if due <= until else FOREVER))
        if self._strategy.name != "clock-triggered":
            rest = self._rest(min(until, int(FOREVER) - 1))
            changes.append(rest)
            released.append(np.full(len(rest), FOREVER))
        return Simulated(
            concat([ChangeBatch.empty(self._dtypes), *changes]),
            np.concatenate([np.empty(0, np.int64), *released]).astype(np.int64),
            {name: _counted(server) for name, server in self._names.items()},
            self._switches(),
            {step.name: step.measured for step in self._steps},
        )

    def _rest(self, until: int) -> ChangeBatch:
        """What would have been said, had everyone heard of the time."""
        rest = [ChangeBatch.empty(self._dtypes)]
        for source in self._sources:
            output, _ = source.advance(until + source.slack, messages=False)
            if source is self._root:
                rest.append(output)
        for step in self._steps:
            made, _ = step.advance(int(FOREVER), messages=False, everything=True)
            if step is self._root and made is not None:
                rest.append(made)
        return concat(rest)

    def _switches(self) -> dict[str, int]:
        return {
            f"{step.name}.{index}": edge.ear.switches
            for step in self._steps
            for index, edge in enumerate(step.inputs)
            if isinstance(edge.ear, Carried) and edge.stamped
        }

    @staticmethod
    def _plan(agenda: list[int], due: int, now: int) -> None:
        if due > now:
            heappush(agenda, due)

    def _instants(self) -> list[int]:
        """When something may happen: rows come and go, each held back by some stream's slack; and probes."""
        each = [source.instants for source in self._sources] or [np.zeros(1, np.int64)]
        times = np.unique(np.concatenate([*each, np.zeros(1, np.int64)]))
        slacks = {source.slack for source in self._sources} or {0}
        held = np.unique(np.concatenate([times + slack for slack in slacks]))
        period = self._pace.probe
        if period is not None:
            held = np.unique(np.concatenate((held, -(-held // period) * period)))
        return [int(time) for time in held if time < FOREVER]

    def _source(
        self, plan: PhysicalPlan, number: int, tables: Mapping[Node, pa.Table], feeds: Mapping[str, Feed]
    ) -> _Source:
        leg = plan.legs[number]
        if isinstance(leg, RelationLeg):
            source = _Source(relation_rows(tables, leg, (), 0, 1), 0, 0, 0, 0)
        elif isinstance(leg, UpdateLeg):
            updates = feeds[leg.stream].rows
            source = _Source(updates, len(updates), 0, 0, 0)
        else:
            feed = feeds[leg.stream]
            rows = assign(leg.window, LegRunner(leg.node, tables).run(feed.rows)).sorted()
            names = _leg_names(leg)
            delay = sum(self._slowness(self._pace.delays, name) for name in names)
            service = sum(self._slowness(self._pace.service, name) for name in names)
            source = _Source(rows, len(feed.rows), feed.slack, delay, service)
        self._sources.append(source)
        self._names[f"leg{number}"] = source
        return source

    def _step(
        self,
        node: Operation,
        name: str,
        tables: Mapping[Node, pa.Table],
        made: Mapping[int, _Source | _Step],
        legs: Sequence[_Source],
        roots: Sequence[_Source | _Step],
    ) -> _Step:
        delay, service = (
            self._slowness(given, name) or self._slowness(given, node.operator)
            for given in (self._pace.delays, self._pace.service)
        )
        step = _Step(node, name, tables, delay, service)
        for child in node.inputs:
            below = made.get(id(child))
            if below is None:
                assert isinstance(child, Leaf)
                below = legs[child.leg] if child.leg is not None else roots[child.stage or 0]
            waits = patience(child.horizon) if self._pace.patience is None else self._pace.patience
            ear = self._strategy.ear(HeapMemory(), Settings(self._pace.probe, waits))
            edge = _Edge(below, child, ear)
            below.edges.append(edge)
            step.inputs.append(edge)
        self._steps.append(step)
        self._names[name] = step
        return step

    @staticmethod
    def _slowness(given: Mapping[str, float], name: str) -> float:
        for key, slowness in given.items():
            if ALIASES.get(key.lower(), key.lower()) == name.lower():
                return slowness
        return 0

    def _check_names(self, plan: PhysicalPlan) -> None:
        known = {name.lower() for leg in plan.legs if isinstance(leg, StreamLeg) for name in _leg_names(leg)}
        for stage in plan.stages:
            for index, node in enumerate(_operations(stage.root)):
                known |= {node.operator.lower(), f"{stage.index}.{index}.{node.operator}".lower()}
        for key in (*self._pace.delays, *self._pace.service):
            if ALIASES.get(key.lower(), key.lower()) not in known:
                raise StrategyError(
                    f"delays: there is no operator {key!r} in this plan; there are {', '.join(sorted(known))}"
                )


def _operations(root: Physical) -> list[Operation]:
    return [node for node in walk(root) if isinstance(node, Operation)]


def _leg_names(leg: StreamLeg) -> list[str]:
    """The names by which the parts of a leg can be made slow: its stream's and its operators'."""
    names, node = [leg.stream], leg.node
    while node.children:
        names.append("Lookup" if type(node).__name__ == "Join" else type(node).__name__)
        node = node.children[0]
    return names


def _counted(server: _Source | _Step) -> Counts:
    if isinstance(server, _Step):
        server.counts.messages = sum(edge.messages for edge in server.inputs)
    return server.counts
