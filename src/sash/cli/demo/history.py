"""The answers of a query over time, folded from its changelog."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa

from sash.changelog import read_after

Row = tuple[Any, ...]
Change = tuple[int, str, Row]
"""A change of the answer: its time, '+' or '-', and the row."""
Answer = tuple[Row, ...]
"""The rows of an answer, in order."""


class AnswerHistory:
    """The answer of a query at every instant before its clock: the batches up to `batch` of the changelog in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: Counter[Row] = Counter()
        self._instants: list[int] = []
        self._answers: list[Answer] = []
        self.entered: dict[Row, int] = {}
        """The rows of the latest answer, with the instants at which they entered it."""
        self.batch = -1
        self.clock: int | None = None

    def advance(self, batch: int, clock: int | None) -> None:
        """Read the batches up to this one, which has brought the query's clock to this instant."""
        if batch > self.batch:
            for _, table in read_after(self._folder, self.batch, batch):
                self.apply(_changes(table))
        self.batch = max(self.batch, batch)
        self.clock = clock if self.clock is None else max(self.clock, clock or self.clock)

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply changes that are not before those applied so far."""
        for at, group in groupby(sorted(changes, key=lambda change: change[0]), key=lambda change: change[0]):
            touched = set()
            for _, op, row in group:
                self._rows[row] += 1 if op == "+" else -1
                touched.add(row)
            for row in touched:
                if self._rows[row] < 0:
                    raise ValueError(f"{row} is retracted, but not in the answer")
                if self._rows[row] == 0:
                    del self._rows[row]
                    self.entered.pop(row, None)
                else:
                    self.entered.setdefault(row, at)
            self._instants.append(at)
            self._answers.append(tuple(sorted(self._rows.elements())))

    @property
    def as_of(self) -> int | None:
        """The last instant at which the answer is final; None before the first batch."""
        return None if self.clock is None else self.clock - 1

    @property
    def instants(self) -> list[int]:
        """The instants at which the answer changed."""
        return self._instants

    def at(self, instant: int) -> Answer:
        """The answer at an instant."""
        position = bisect_right(self._instants, instant)
        return self._answers[position - 1] if position else ()

    def since(self, instant: int) -> list[tuple[int, Answer]]:
        """The answer at an instant, and all later ones, with the times from which they hold."""
        position = max(0, bisect_right(self._instants, instant) - 1)
        return list(zip(self._instants[position:], self._answers[position:], strict=True))


def _changes(table: pa.Table) -> list[Change]:
    """The changes of a batch."""
    times = table.column("_ts").cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    columns = [table.column(name).to_pylist() for name in table.column_names if name not in {"_op", "_ts"}]
    return list(zip(times, table.column("_op").to_pylist(), zip(*columns, strict=True), strict=True))
