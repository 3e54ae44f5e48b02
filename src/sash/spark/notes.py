"""Notes: what scatter and the shards of the stages tell of a batch, as JSON, and the notes of a batch summed up.

They travel past the stages to the end of the query, where Spark observes them: as one list, however many operators there
are, for what Spark observes it plans anew for every batch and looks for in every row.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from sash.spark.counts import EDGES, PARTS
from sash.state.memory import Ints

NOTES = "notes"
"""The name of the list, for Spark's listeners too."""

_WORD = np.dtype(">u4")

_SUMMED = (
    "rows_in", "rows_out", "late", "bad", "state_rows", "state_bytes", "rebuilt", "delay_sum", "switches",
)  # fmt: skip


@dataclass
class Note:
    """Rows of streams, rows of the output, and what else a batch did, as far as one task knows.

    `clock` is how far the output is; `operators` has their counts; `delays` is how long after its instant a change left
    the last stage, by the wall clock: a histogram with their sum and the longest, in milliseconds; `switches` how often
    edges have changed the way in which they pass times on (piggybacking); `in_force` what operators do that they may do
    otherwise, and why, by operator and shard.
    """

    rows_in: int = 0
    rows_out: int = 0
    late: int = 0
    bad: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    rebuilt: int = 0
    clock: int | None = None
    operators: dict[str, dict[str, int]] = field(default_factory=dict)
    delays: list[int] = field(default_factory=list)
    delay_sum: int = 0
    delay_longest: int = 0
    switches: int = 0
    in_force: dict[str, dict[str, tuple[str, str]]] = field(default_factory=dict)

    def to_json(self) -> str:
        """What is not nothing, as JSON."""
        return json.dumps({name: value for name, value in asdict(self).items() if value not in (0, None, [], {})})

    @property
    def delay_average(self) -> float | None:
        """In seconds; None where nothing left."""
        count = sum(self.delays)
        return round(self.delay_sum / 1000 / count, 6) if count else None


def to_words(notes: Sequence[str]) -> Ints:
    """The notes as whole numbers, four bytes each: they travel where changes have their times."""
    text = "".join(f"{note}\n" for note in notes).encode()
    return np.frombuffer(text + b" " * (-len(text) % _WORD.itemsize), _WORD).astype(np.int64)


def from_words(word: str) -> str:
    """The list of notes again, in Spark SQL: of every task that there was the words are together, and in order."""
    figures = f"transform(collect_list({word}), word -> lpad(hex(word), {2 * _WORD.itemsize}, '0'))"
    lines = f"split(decode(unhex(array_join({figures}, '')), 'UTF-8'), '\\n')"
    return f"filter(transform({lines}, line -> trim(line)), line -> line <> '')"


def total(notes: Sequence[str], operators: Sequence[str] = ()) -> Note:
    """All notes of a batch as one, with these operators in it and all that it tells of."""
    read = [Note(**json.loads(note)) for note in notes]
    names = dict.fromkeys([*operators, *(name for note in read for name in note.operators)])
    clocks = [note.clock for note in read if note.clock is not None]
    delays = np.array([note.delays for note in read if note.delays], np.int64).reshape(-1, len(EDGES) + 1)
    return Note(
        **{name: sum(getattr(note, name) for note in read) for name in _SUMMED},
        clock=min(clocks, default=None),
        operators={name: {part: _of(read, name, part) for part in PARTS} for name in names},
        delays=delays.sum(axis=0).tolist(),
        in_force=_in_force(read),
        delay_longest=max((note.delay_longest for note in read), default=0),
    )


def _of(notes: Sequence[Note], operator: str, part: str) -> int:
    return sum(note.operators[operator][part] for note in notes if operator in note.operators)


def _in_force(notes: Sequence[Note]) -> dict[str, dict[str, tuple[str, str]]]:
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for note in notes:
        for operator, shards in note.in_force.items():
            found.setdefault(operator, {}).update(shards)
    return found
