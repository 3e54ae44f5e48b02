"""The constants of alike queries: a table in files beside the checkpoint, which a job reads as a stream of updates.

Adding a query is writing a file, and Spark's record of the files that it has read makes a repeated batch see the same. All
updates have time 0, so that they take effect when they arrive. Constants with which a generation of a job begins are in its
state, and also in a file that Spark does not read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from sash.plan.alike import PREFIX
from sash.plan.catalog import OP
from sash.plan.nodes import Relation
from sash.plan.types import BIGINT, STRING, Field
from sash.spark.folders import Folder
from sash.spark.sources.declared import FILES_OF_ANY_AGE, struct
from sash.spark.sources.inputs import StreamSource
from sash.state.changes import ChangeBatch

TIME = "_at"
_SUFFIX = ".parquet"
_SEED = f"_seed{_SUFFIX}"
"""Spark does not read files whose names begin with an underscore."""

Row = tuple[Any, ...]
"""The number of a query, and its constants."""


class ConstantsTable:
    """The constants of one template, in a folder."""

    def __init__(self, spark: SparkSession, relation: Relation, location: str) -> None:
        self._spark = spark
        self._schema = (*relation.schema, Field(TIME, BIGINT), Field(OP, STRING))
        self._folder = Folder(spark, location)
        files = [name for name in self._folder.names() if name.endswith(_SUFFIX)]
        self._rows: Counter[Row] = Counter()
        for name in files:
            self._count(name)
        numbers = (int(name.removesuffix(_SUFFIX)) for name in files if name != _SEED)
        self._next = 1 + max(numbers, default=-1)

    def source(self) -> StreamSource:
        """The updates as a stream."""
        if not self._next:
            self.update([], [])  # Spark reads only folders that exist
        frame = self._spark.readStream.schema(struct(self._schema)).options(**FILES_OF_ANY_AGE)
        return StreamSource(frame.parquet(self._folder.location), time=TIME)

    def clear(self) -> None:
        """Remove all rows and files. No generation of the job in use may have read them."""
        self._folder.remove_tree("")
        self._rows, self._next = Counter(), 0

    def seed(self, rows: Iterable[Row]) -> None:
        """Make these the rows of the table, which is empty; the job has them in its state and does not read them."""
        self._rows = Counter(rows)
        self._folder.write_bytes(_SEED, self._file([(row, "+") for row in self._rows.elements()]))

    def changes(self, rows: Sequence[Row]) -> ChangeBatch:
        """Rows as the job has them in its state."""
        columns = [pa.array([row[n] for row in rows], field.dtype) for n, field in enumerate(self._schema[:-2])]
        made = np.zeros(len(rows), np.int64)
        return ChangeBatch.explicit(made, np.ones(len(rows), np.int8), (*columns, pa.array(made)))

    def replace(self, rows: Iterable[Row]) -> int:
        """Make these the rows of the table; returns the number of updates."""
        wanted = Counter(rows)
        return self.update([*(wanted - self._rows).elements()], [*(self._rows - wanted).elements()])

    def update(self, added: Sequence[Row], removed: Sequence[Row]) -> int:
        """Add and remove rows, all at once; returns the number of updates."""
        changed = [*((row, "+") for row in added), *((row, "-") for row in removed)]
        if not changed and self._next:
            return 0
        # Spark does not see the draft, so it never sees a part of a file.
        draft = f"_{self._next}"
        self._folder.write_bytes(draft, self._file(changed))
        self._folder.rename(draft, f"{self._next:09d}{_SUFFIX}")
        self._next += 1
        self._rows.update(added)
        self._rows.subtract(removed)
        self._rows = +self._rows
        return len(changed)

    def _file(self, changed: Sequence[tuple[Row, str]]) -> bytes:
        width = len(self._schema) - 2
        values = [[row[column] for row, _ in changed] for column in range(width)]
        values += [[0] * len(changed), [op for _, op in changed]]
        names = [field.name for field in self._schema]
        columns = [pa.array(one, field.dtype) for one, field in zip(values, self._schema, strict=True)]
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table(columns, names=names), sink)
        return bytes(sink.getvalue().to_pybytes())

    def _count(self, name: str) -> None:
        data = self._folder.read_bytes(name)
        assert data is not None
        rows = pq.read_table(pa.BufferReader(data)).to_pylist()
        names = [field.name for field in self._schema[:-2]]
        for row in rows:
            self._rows[tuple(row[column] for column in names)] += 1 if row[OP] == "+" else -1


def constants_tables(spark: SparkSession, relations: Iterable[Relation], root: str) -> dict[str, ConstantsTable]:
    """The tables of those relations that are constants of alike queries of the job in `root`, by lower-case name."""
    folder = f"{root.rstrip('/')}/constants"
    return {
        one.name.lower(): ConstantsTable(spark, one, f"{folder}/{one.name.removeprefix(PREFIX)}")
        for one in relations
        if one.constants
    }
