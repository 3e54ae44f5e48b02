"""The format `sash` of Spark: it reads changelogs and kept windows, in batch queries and in streams.

Over a changelog, `spark.read.format("sash")` and `spark.readStream.format("sash")` have the changes; with the option `asOf`, an
instant or `latest`, a batch query has the answer that the changes add up to. Over a kept window it has the answer of the snapshot
query in the option `query`. Spark runs this code in Python workers, so it needs no session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from sash.arguments import whole_number
from sash.changelog import last_batch, parts, read_after
from sash.changelog.files import net_until, open_file, span
from sash.errors import CatalogError, OptionError
from sash.operators.output_modes import reduce_changes
from sash.spark.folders import local_path
from sash.spark.sinks.batch import ADDED
from sash.spark.sinks.changelog import OUTPUT
from sash.sql.source import did_you_mean
from sash.state.change_tables import changes_of
from sash.time import FOREVER

_OPTIONS = ("path", "asOf", "query")


class SashSource(DataSource):
    """A changelog, or a kept window, in the local folder `path`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        known = {name.lower(): name for name in _OPTIONS}
        for name in options:
            if name.lower() not in known:
                raise OptionError(
                    f"the format sash has no option {name}; it has {', '.join(_OPTIONS)}{did_you_mean(name, known)}"
                )
        given = {known[name.lower()]: value for name, value in options.items()}
        path = local_path(given.get("path") or "")
        if path is None or not given.get("path"):
            raise OptionError("the format sash needs the path of a local folder: a changelog or a kept window")
        self._path = path
        self._query = given.get("query")
        self._as_of = None if given.get("asOf") is None else _instant(given["asOf"])
        if self._query is not None and self._as_of is not None:
            raise OptionError("asOf is of changelogs: a query over a kept window answers as of its last update")

    @classmethod
    def name(cls) -> str:
        return "sash"

    def schema(self) -> StructType:
        if self._query is not None:
            return from_arrow_schema(_snapshot(self._path, self._query).schema, prefer_timestamp_ntz=True)
        columns = _columns(self._path)
        return from_arrow_schema(
            pa.schema(list(columns) if self._as_of is None else list(columns)[len(ADDED) :]), prefer_timestamp_ntz=True
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Reader(self._path, self._as_of, self._query)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        if self._query is not None or self._as_of is not None:
            raise OptionError("a stream of the format sash has the changes of a changelog: leave out query and asOf")
        return _StreamReader(self._path)


class _Reader(DataSourceReader):
    def __init__(self, path: Path, as_of: int | None, query: str | None) -> None:
        self._path, self._as_of, self._query = path, as_of, query

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if self._query is not None:
            yield from _snapshot(self._path, self._query).to_batches()
        elif self._as_of is not None:
            yield from answer(self._path, self._as_of).to_batches()
        else:
            for _, table in read_after(self._path):
                yield from table.cast(_columns(self._path)).to_batches()


class _Batches(InputPartition):
    """The batches after one, up to another."""

    def __init__(self, after: int, upto: int) -> None:
        super().__init__(None)
        self.after, self.upto = after, upto


class _StreamReader(DataSourceStreamReader):
    """Offsets are numbers of batches, so that a stream goes on where it was, also if they have been compacted meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        return {"batch": -1}

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:  # noqa: N802  (Spark's name)
        found = last_batch(self._path)
        return {"batch": -1 if found is None else found}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [_Batches(int(start["batch"]), int(end["batch"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Batches)
        for _, table in read_after(self._path, partition.after, partition.upto):
            yield from table.cast(_columns(self._path)).to_batches()


def answer(log: Path, as_of: int = FOREVER) -> pa.Table:
    """The answer that the changes in a log add up to at an instant, in microseconds."""
    for part in parts(log):
        if part.compacted and net_until(open_file(log, part.files[0])) is not None and span(log, part)[0] > as_of:
            raise CatalogError(
                f"{log} has the answers from {span(log, part)[0]} (microseconds) on: retain changes longer"
            )
    columns = _columns(log)
    tables = [table.cast(columns) for _, table in read_after(log)]
    changes = changes_of(pa.concat_tables([columns.empty_table(), *tables])).sorted()
    changes = changes.take(np.flatnonzero(changes.ts <= as_of))
    output = json.loads((log / OUTPUT).read_text()) if (log / OUTPUT).exists() else {}
    keyed = output.get("mode") == "upsert"
    net = reduce_changes(changes, "upsert" if keyed else "net", tuple(output["key"]) if keyed else None)
    there = net.take(np.flatnonzero(net.sign > 0))
    return pa.table(list(there.columns), schema=pa.schema(list(columns)[len(ADDED) :]))


def _columns(log: Path) -> pa.Schema:
    """The columns of the changes."""
    found = parts(log)
    if not found:
        raise CatalogError(
            f"{log} is not a changelog, or has no changes yet: give the path of a changelog with changes"
        )
    file = open_file(log, found[-1].files[0])
    return pa.schema([
        # Instants are stored as INT96, which has no zone; timestamps without a zone are not.
        (field.name, pa.timestamp("us", "UTC") if file.schema.column(i).physical_type == "INT96" else field.type)
        for i, field in enumerate(file.schema_arrow)
    ])  # fmt: skip


def _snapshot(path: Path, query: str) -> pa.Table:
    from sash.window_store.live_window import LiveWindow
    from sash.window_store.options import SnapshotOptions
    from sash.window_store.queries import WindowQueries

    windows = WindowQueries()
    windows.attach(LiveWindow(path).layout.name, path)
    try:
        return windows.submit(query, SnapshotOptions()).result()[0].table
    finally:
        windows.close()


def _instant(text: str) -> int:
    """An instant in microseconds, from a time, which is UTC without a zone, or from a number."""
    if text.lower() == "latest":
        return FOREVER
    number = whole_number(text.removeprefix("-"))
    if number is not None:
        return -number if text.startswith("-") else number
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(f"asOf is an instant such as 2026-01-01T12:00:00Z, or latest, not {text!r}") from None
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return (found - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
