"""What the history knows of a query: its columns and mode, and up to where its changes are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import pyarrow as pa

from sash.plan.options import Mode

Position = tuple[int, int]
"""The place of a change: the number of its batch, and its index in it."""

START: Position = (-1, 0)


@dataclass(frozen=True)
class KeptQuery:
    """A query whose changes are kept; the columns have their types as SQL writes them, and `time` is the type of `_ts`."""

    name: str
    mode: Mode
    key: tuple[int, ...] | None
    columns: tuple[tuple[str, str], ...]
    time: str

    def to_json(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {"mode": self.mode, "key": self.key, "columns": self.columns, "time": self.time}

    @staticmethod
    def of(name: str, given: dict[str, Any]) -> KeptQuery:
        """The query from what `to_json` returned."""
        key = None if given["key"] is None else tuple(given["key"])
        return KeptQuery(name, given["mode"], key, tuple((n, t) for n, t in given["columns"]), given["time"])


class Kept(IntEnum):
    """What is kept of the changes of a batch: all of them; nothing, so that the answer is unknown; or their net effect on it."""

    ALL = 0
    NOTHING = 1
    NET = 2


@dataclass(frozen=True)
class Part:
    """The changes of a query in one batch, and where in a segment they are."""

    number: int
    rows: int = 0
    clock: int | None = None
    first: int | None = None
    last: int | None = None
    place: tuple[int, int] | None = None
    kept: Kept = Kept.ALL

    @property
    def end(self) -> Position:
        """The position after the last change."""
        return self.number, self.rows

    def to_json(self) -> list[Any]:
        """As JSON holds it, without its number; the place is relative to the record's bytes."""
        return [self.rows, self.clock, self.first, self.last, self.place, int(self.kept)]

    @staticmethod
    def of(number: int, given: list[Any], payload: int) -> Part:
        """The part from what `to_json` returned, in a record whose bytes begin at `payload`."""
        rows, clock, first, last, place, kept = given
        return Part(
            number, rows, clock, first, last, None if place is None else (payload + place[0], place[1]), Kept(kept)
        )


@dataclass
class QueryState:
    """A query in one segment: its answer at the segment's start, if it is known, and its parts since then."""

    query: KeptQuery
    known: bool
    start: Position = START
    """The position after which its parts follow."""
    start_clock: int | None = None
    base: tuple[int, int] | None = None
    """Where its answer at the start is; None if it is empty."""
    parts: list[Part] = field(default_factory=list)

    @property
    def position(self) -> Position:
        """The position after its last change."""
        return self.parts[-1].end if self.parts else self.start

    @property
    def clock(self) -> int | None:
        """The instant before which its answer is final."""
        return next((part.clock for part in reversed(self.parts) if part.clock is not None), self.start_clock)

    @property
    def awaits_clock(self) -> bool:
        """Whether the clock after its last changes is still to come, so that no segment can begin there."""
        return bool(self.parts) and self.parts[-1].place is not None and self.parts[-1].clock is None

    @property
    def answered(self) -> bool:
        """Whether its answer is known at the end of the segment."""
        return self.known and not any(part.kept is Kept.NOTHING for part in self.parts)

    def add(self, part: Part) -> None:
        """Add a part, unless a part of its batch is there: sinks may get a batch again."""
        if part.number > self.position[0]:
            self.parts.append(part)

    def pass_clock(self, number: int, clock: int) -> None:
        """Learn the clock that the query had after a batch, where that is known only after the batch was written."""
        for place in range(len(self.parts) - 1, -1, -1):
            if self.parts[place].number == number and self.parts[place].clock is None:
                self.parts[place] = replace(self.parts[place], clock=clock)
            if self.parts[place].number <= number:
                return

    def to_json(self, base: tuple[int, int] | None) -> dict[str, Any]:
        """What the first record of the next segment says of it."""
        facts = {"known": self.answered, "start": self.position, "clock": self.clock, "base": base}
        return {**self.query.to_json(), **facts}

    @staticmethod
    def of(name: str, given: dict[str, Any], payload: int) -> QueryState:
        """The state at the start of a segment."""
        base = None if given["base"] is None else (payload + given["base"][0], given["base"][1])
        start = given["start"]
        return QueryState(KeptQuery.of(name, given), given["known"], (start[0], start[1]), given["clock"], base)


def part_of(number: int, table: pa.Table, clock: int | None, kept: Kept = Kept.ALL) -> Part:
    """The part of a batch's changes, which are sorted by time, without its place; net changes have no positions."""
    if not table.num_rows:
        return Part(number, 0, clock, kept=kept)
    ts = table.column(1).cast(pa.int64())
    rows = table.num_rows if kept is Kept.ALL else 0
    return Part(number, rows, clock, ts[0].as_py(), ts[-1].as_py(), kept=kept)
