"""The history of a job as other processes read it: changes by position, and the answer of a query at an instant."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from sash.errors import NotKeptError
from sash.history.answers import fold
from sash.history.outputs import Kept, KeptQuery, Part, Position, QueryState
from sash.history.records import segments
from sash.history.segment import Segment
from sash.time import BEGINNING, FOREVER

_MOST_ANSWERS = 16
_NOT_YET = "not yet known: the watermark has not passed this instant"


@dataclass(frozen=True)
class KeptAnswer:
    """The answer of a query at `as_of`: its rows as insertions; None with a `reason` if it is not known.

    `watermark` is the instant before which all answers are final. `position` is that after the last change in the answer;
    it is known only for the last answer.
    """

    rows: pa.Table | None
    as_of: int | None
    watermark: int | None
    reason: str | None = None
    position: Position | None = None


@dataclass(frozen=True)
class KeptChanges:
    """Changes of one batch of a query from an index on; `end` is the position after them, `whole` whether the batch ends there."""

    number: int
    index: int
    table: pa.Table
    clock: int | None
    whole: bool

    @property
    def end(self) -> Position:
        """The position after the last of these changes."""
        return self.number, self.index + self.table.num_rows


class HistoryRing:
    """Reads the history in a folder; `poll` takes in what is new. May be used from several threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._segments: list[Segment] = []
        self._lock = threading.RLock()
        self._latest: OrderedDict[tuple[str, Position, Path], pa.Table | None] = OrderedDict()
        self.version = 0
        """A number that grows with every batch or query that is new."""

    def poll(self) -> bool:
        """Take in what the job has written; return whether there was anything."""
        with self._lock:
            paths = segments(self._folder)
            known = {segment.path: segment for segment in self._segments}
            fresh = any(segment.read_on() for segment in self._segments[-1:])
            if paths != list(known):
                found = []
                for path in paths:
                    try:
                        segment = known.get(path) or Segment(path)
                    except FileNotFoundError:  # it was removed just now
                        continue
                    segment.read_on()
                    found.append(segment)
                self._segments, fresh = found, True
            self.version += fresh
            return fresh

    @property
    def queries(self) -> dict[str, KeptQuery]:
        """The queries of the job, by name."""
        with self._lock:
            last = self._segments[-1:]
            return {name: state.query for segment in last for name, state in segment.queries.items()}

    @property
    def written(self) -> float:
        """When the last batch was written, in seconds since 1970."""
        with self._lock:
            return max((segment.written for segment in self._segments[-1:]), default=0.0)

    def position(self, query: str) -> Position:
        """The position after the last change of a query."""
        with self._lock:
            return self._last(query).position

    def watermark(self, query: str) -> int | None:
        """The instant before which all answers of a query are final."""
        with self._lock:
            return _known(self._last(query).clock)

    def span(self, query: str) -> tuple[int | None, int | None]:
        """The first and the last instant at which the answer of a query is known."""
        with self._lock:
            states = [state for _, state in self._states(query)]
            last = self._last_instant(query)
            known = [state for state in states if state.known]
            if not known or last is None:
                return None, None
            first = _known(known[0].start_clock)
            if first is None:
                first = min((part.first for part in known[0].parts if part.first is not None), default=last)
            return min(first, last), last

    def changes(self, query: str, after: Position | None = None) -> Iterator[KeptChanges] | None:
        """The changes of a query after a position, batch by batch, up to now; without one, all that are kept.

        None if changes after the position are no longer there: the reader must start again from an answer.
        """
        with self._lock:
            states = self._states(query)
            parts = [(segment, part) for segment, state in states for part in state.parts]
            floor = max([states[0][1].start, *(part.end for _, part in parts if part.kept is not Kept.ALL)])
            if after is None:
                after = floor
            elif not floor <= after <= states[-1][1].position:
                return None
            wanted = [(segment, part) for segment, part in parts if part.end > after and part.kept is Kept.ALL]
        return _read(wanted, after)

    def answer(self, query: str, at: int | None = None) -> KeptAnswer:
        """The answer of a query after its last batch, or at an instant."""
        with self._lock:
            watermark = self.watermark(query)
            last = self._last_instant(query)
            if at is None:
                return self._latest_answer(query, last, watermark)
            if watermark is None or at >= watermark:
                return KeptAnswer(None, at, watermark, _NOT_YET)
            return self._answer_at(query, at, watermark)

    def _latest_answer(self, query: str, last: int | None, watermark: int | None) -> KeptAnswer:
        segment, state = self._states(query)[-1]
        if not state.answered:
            return KeptAnswer(None, last, watermark, _unknown(state), state.position)
        place = query, state.position, segment.path
        if place in self._latest:
            found = self._latest[place]
        else:
            earlier = [key for key in self._latest if key[0] == query and key[2] == segment.path]
            begin, tables = (-1, 0), segment.base(state)
            if earlier:
                begin, known = earlier[-1][1], self._latest.pop(earlier[-1])
                tables = [] if known is None else [known]
            tables += segment.tables([part for part in state.parts if part.end > begin])
            found = self._latest[place] = _folded(tables, state.query)
            while len(self._latest) > _MOST_ANSWERS:
                self._latest.popitem(last=False)
        return KeptAnswer(found, last, watermark, None, state.position)

    def _answer_at(self, query: str, at: int, watermark: int) -> KeptAnswer:
        """The answer at an instant, from the answer at the start of the last segment that is not later."""
        for segment, state in reversed(self._states(query)):
            begins = _known(state.start_clock)
            if begins is not None and begins > at:
                continue
            if begins is None and state.start[0] >= 0 and state.start_clock != BEGINNING:
                continue
            if not state.known:
                return KeptAnswer(None, at, watermark, _unknown(state))
            if state.query.mode == "changes":
                problem = _gap_at(state, at)
                if problem is not None:
                    return KeptAnswer(None, at, watermark, problem)
                parts = [part for part in state.parts if part.first is not None and part.first <= at]
                return KeptAnswer(_folded(segment.base(state) + segment.tables(parts), state.query, at), at, watermark)
            return _after_batch(segment, state, at, watermark)
        return KeptAnswer(None, at, watermark, "no longer kept: the history begins later")

    def _last_instant(self, query: str) -> int | None:
        """The last instant at which the answer is final; that of the last change, if the input has ended."""
        states = [state for _, state in self._states(query)]
        clock = states[-1].clock
        if clock is not None and BEGINNING < clock < FOREVER:
            return clock - 1
        return max((part.last for state in states for part in state.parts if part.last is not None), default=None)

    def _states(self, query: str) -> list[tuple[Segment, QueryState]]:
        """The states of a query in consecutive segments, as far back as it has been the same."""
        found: list[tuple[Segment, QueryState]] = []
        for segment in reversed(self._segments):
            state = segment.queries.get(query)
            if state is None or (found and state.query != found[-1][1].query):
                break
            if found and state.position != found[-1][1].start:
                break  # it was dropped and created again
            found.append((segment, state))
        if not found:
            raise NotKeptError(f"nothing is kept of query {query}")
        return found[::-1]

    def _last(self, query: str) -> QueryState:
        return self._states(query)[-1][1]


def _folded(tables: list[pa.Table], query: KeptQuery, until: int | None = None) -> pa.Table | None:
    return fold(tables, query.mode, query.key, until) if tables else None


def _after_batch(segment: Segment, state: QueryState, at: int, watermark: int) -> KeptAnswer:
    """The answer after the last batch that was final by an instant: in modes `net` and `upsert`, nothing finer is kept."""
    parts: list[Part] = []
    clock = state.start_clock
    for part, reached in zip(state.parts, _reached(state.parts), strict=True):
        if reached is None or reached > at + 1:
            break
        if part.kept is Kept.NOTHING:
            return KeptAnswer(None, at, watermark, _unknown(state))
        parts.append(part)
        clock = reached
    found = _folded(segment.base(state) + segment.tables(parts), state.query)
    final = _known(clock)
    return KeptAnswer(found, at if final is None else final - 1, watermark)


def _reached(parts: list[Part]) -> list[int | None]:
    """The clocks after batches; of one whose clock is not known, that of the next, which is not earlier."""
    found: list[int | None] = []
    clock: int | None = None
    for part in reversed(parts):
        clock = part.clock if part.clock is not None else clock
        found.append(clock)
    return found[::-1]


def _gap_at(state: QueryState, at: int) -> str | None:
    """Why the answer at an instant is unknown: changes up to it were lost, or those of its batch are kept as a whole only."""
    clock = state.start_clock
    for part, reached in zip(state.parts, _reached(state.parts), strict=True):
        if clock is not None and clock > at:
            break
        if part.kept is Kept.NOTHING:
            return _unknown(state)
        if part.kept is Kept.NET and (reached is None or reached > at):
            return "not known: this instant is within a batch whose changes were too many to be kept one by one"
        clock = reached if reached is not None else clock
    return None


def _unknown(state: QueryState) -> str:
    if state.known:
        return "not known: a batch changed more of the answer than is kept; a larger --history keeps more"
    return "not known: the history does not reach back to the query's start, or its answer is too large to be kept"


def _known(clock: int | None) -> int | None:
    """A clock, unless no row has come."""
    return None if clock is None or clock <= BEGINNING else clock


def _read(wanted: list[tuple[Segment, Part]], after: Position) -> Iterator[KeptChanges]:
    for segment, part in wanted:
        skipped = after[1] if part.number == after[0] else 0
        table = pa.table({}) if part.place is None else segment.table(part.place).slice(skipped)
        yield KeptChanges(part.number, skipped, table, part.clock, whole=True)
