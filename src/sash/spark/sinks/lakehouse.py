"""What sinks of lakehouse tables share: the rows of a batch as an Arrow table, and the checks of a table's columns and owner.

A batch is one commit, which also records its number under the identity of the query. A batch that is repeated finds its
number, and changes nothing. So every change is in the table exactly once, even if the process is killed between writing the
files and the commit, or after it. A large batch is spooled to a file on the driver, partition by partition, and read from
there memory-mapped.
"""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.arguments import shown, whole_number
from sash.durations import microseconds
from sash.errors import CatalogError, OptionError
from sash.operators.output_modes import reduce_changes
from sash.plan.types import NULL, TIMESTAMP, is_sql_type, type_name
from sash.spark.sinks.base import ADDED, Batch, OutputSpec, Sink, WriteBatch, refuse_added
from sash.spark.sinks.batch import typed_table
from sash.spark.sql_types import readable_frame
from sash.sql.render import quoted
from sash.state.change_tables import changes_of
from sash.time import SECOND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.plan.options import Mode

GONE = "_gone"
"""The column of merged rows that says whether the row of a key is to be deleted."""

FEED = ("_change_type", "_commit_version", "_commit_timestamp")
"""The columns of Spark's change feed, in which `feed true` appends changes."""

_COMPACT, _RETAIN = 100, "1 day"
_SPOOLED_ROWS = 50_000


class Table(Protocol):
    """A table that a query writes to."""

    def columns(self) -> pa.Schema | None:
        """The columns; None if there is no table."""

    def create(self, schema: pa.Schema) -> None:
        """Create the table."""

    def add(self, fields: list[pa.Field]) -> None:
        """Add columns, NULL in the rows that are there."""

    def written(self) -> int | None:
        """The last batch of this query in the table; None if there is none."""

    def empty(self) -> bool:
        """Whether there are no rows."""

    def clear(self) -> None:
        """Delete all rows, and record that the table is this query's, in one commit."""

    def append(self, rows: pa.Table, number: int) -> None:
        """Append rows, and record the number of the batch, in one commit."""

    def merge(self, rows: pa.Table, keys: list[str], number: int) -> None:
        """Write one row per key, or delete it if it is gone, and record the number of the batch, in one commit."""

    def compact(self, retain: float) -> None:
        """Make few large files of many small ones, and remove files that only versions older than so many seconds need."""


class LakehouseSink(Sink):
    """A sink that writes to a `Table`.

    Options: `create` (default true) creates the table if it does not exist; `replace` lets a query that starts anew delete the
    rows of an existing table; `evolve` adds columns that an existing table lacks; `feed` appends changes in the columns of
    Spark's change feed; `compact` is the number of batches after which small files are compacted (0: never), and `retain` how
    long files of older versions are kept.
    """

    optional: ClassVar[tuple[str, ...]] = ("create", "replace", "evolve", "feed", "compact", "retain")
    flags = ("create", "replace", "evolve", "feed")
    exclusive = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        given = str(self.options.get("compact", _COMPACT))
        every = whole_number(given)
        if every is None:
            raise OptionError(f"compact must be a number of batches, or 0 for never, not {shown(given)}")
        self._every = every
        self._retain = microseconds(str(self.options.get("retain", _RETAIN)), "retain") / SECOND

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        if chosen is None and (self.flag("feed", False) or not keyed):
            return "changes"
        return super().mode(chosen, keyed)

    def check(self, output: OutputSpec) -> None:
        feed = self.flag("feed", False)
        if output.mode == "upsert" and feed:
            raise OptionError(f"{self.name} has a change feed in mode changes or net, not upsert")
        refuse_added(self.name, output.names, (GONE,) if output.mode == "upsert" else FEED if feed else ADDED)
        for field in output.schema:
            if is_sql_type(field.dtype) or field.dtype == NULL:
                raise CatalogError(
                    f"{self.name} cannot store column {field.name}, a {type_name(field.dtype)}: use CAST in the query"
                )

    def connect(self, output: OutputSpec) -> None:
        table = self._table(output)
        self._check(table, table.columns(), output)

    @abstractmethod
    def _table(self, output: OutputSpec) -> Table:
        """The table that is written to."""

    @abstractmethod
    def _stored(self, dtype: pa.DataType) -> pa.DataType:
        """The type in which the table stores values of a type."""

    @property
    def _shown(self) -> str:
        return str(self.options[self.needed[0]])

    def _wanted(self, output: OutputSpec) -> pa.Schema:
        """The columns that are written."""
        feed = [pa.field(FEED[0], pa.string()), pa.field(FEED[1], pa.int64()), pa.field(FEED[2], TIMESTAMP)]
        added = [pa.field("_op", pa.string()), pa.field("_ts", output.time)]
        fields = [pa.field(f.name, self._stored(f.dtype)) for f in output.schema]
        if output.mode == "upsert":
            return pa.schema(fields)
        return pa.schema([*fields, *feed] if self.flag("feed", False) else [*added, *fields])

    def _check(self, table: Table, found: pa.Schema | None, output: OutputSpec) -> list[pa.Field]:
        """Check that the table can be written to; return the columns that are to be added to it."""
        if found is None:
            if not self.flag("create", True):
                raise CatalogError(f"there is no table {self._shown}: create it, or remove the option `create false`")
            return []
        wanted = self._wanted(output)
        for field in wanted:
            there = found.field(field.name).type if field.name in found.names else field.type
            if not _same_type(there, field.type):
                raise CatalogError(
                    f"column {field.name} of table {self._shown} is {there}, but the query's is {field.type}: use CAST in "
                    "the query"
                )
        absent = [field for field in wanted if field.name not in found.names]
        if absent and not self.flag("evolve", False):
            names = ", ".join(field.name for field in absent)
            raise CatalogError(f"table {self._shown} has no column {names}: add it, or set the option `evolve true`")
        if table.written() is None and not table.empty() and not self.flag("replace", False):
            raise CatalogError(
                f"table {self._shown} has rows that this query has not written: choose another table, or set the option "
                "`replace true` to delete them"
            )
        return absent

    def open(self, output: OutputSpec) -> WriteBatch:
        self.check(output)
        table, wanted = self._table(output), self._wanted(output)
        found = table.columns()
        absent = self._check(table, found, output)
        if found is None:
            table.create(wanted)
        elif absent:
            table.add(absent)
        if found is not None and table.written() is None and not table.empty():
            table.clear()
        since = 0

        def write(batch: Batch, number: int) -> None:
            nonlocal since
            last = table.written()
            if not batch.rows or (last is not None and last >= number):
                return
            if output.mode == "upsert":
                with _latest(batch, output) as rows:
                    table.merge(_cast(rows, wanted.append(pa.field(GONE, pa.bool_()))), output.key_names, number)
            else:
                with _all_changes(batch) as rows:
                    feed = self.flag("feed", False)
                    table.append(_cast(_change_feed(rows, number) if feed else rows, wanted), number)
            since += 1
            if self._every and since >= self._every:
                since = 0
                table.compact(self._retain)

        return write


def _same_type(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether two types are the same for a table, which does not tell large strings and lists from others."""
    if pa.types.is_nested(one) and pa.types.is_nested(other):
        return bool(_shape(one) == _shape(other))
    return bool(_plain(one) == _plain(other))


def _shape(dtype: pa.DataType) -> Any:
    """The kinds of a nested type and of those in it, without the names that systems give the elements of lists and maps."""
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype):
        return ["list", _shape(dtype.value_type)]
    if pa.types.is_map(dtype):
        return ["map", _shape(dtype.key_type), _shape(dtype.item_type)]
    if pa.types.is_struct(dtype):
        return ["struct", *[(field.name, _shape(field.type)) for field in dtype.fields]]
    return str(_plain(dtype))


def _plain(dtype: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(dtype) or pa.types.is_string_view(dtype):
        return pa.string()
    if pa.types.is_large_binary(dtype) or pa.types.is_binary_view(dtype):
        return pa.binary()
    return dtype


def _change_feed(rows: pa.Table, number: int) -> pa.Table:
    """Changes in the columns of Spark's change feed: the version is the number of the batch, the timestamp is `_ts`."""
    kinds = pc.if_else(pc.equal(rows["_op"], "+"), "insert", "delete")
    times = rows["_ts"].cast(pa.int64()).cast(TIMESTAMP)
    version = pa.array(np.full(rows.num_rows, number, np.int64))
    found = rows.drop_columns(list(ADDED))
    for name, column in zip(FEED, (kinds, version, times), strict=True):
        found = found.append_column(name, column)
    return found


def _cast(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with the columns, in the order and the types of the schema."""
    return rows.select(schema.names).cast(schema)


@contextmanager
def _all_changes(batch: Batch) -> Iterator[pa.Table]:
    """The changes of a batch."""
    if batch.small:
        yield batch.table
        return
    with _spooled(batch.frame) as rows:
        yield rows


@contextmanager
def _latest(batch: Batch, output: OutputSpec) -> Iterator[pa.Table]:
    """The last row of every key in a batch, and whether it is gone.

    Two shards may change the same key; at the same instant, a row is added after its predecessor is retracted.
    """
    if batch.small:
        yield latest_table(batch, output)
        return
    with _spooled(latest_frame(batch, output)) as rows:
        yield rows


def latest_table(batch: Batch, output: OutputSpec) -> pa.Table:
    """The last change of every key in a small batch, and whether the row is gone."""
    changes = reduce_changes(changes_of(batch.table).sorted(), "upsert", output.key)
    rows = typed_table(changes, output.schema, output.time)
    return rows.append_column(GONE, pc.equal(rows["_op"], "-"))


def latest_frame(batch: Batch, output: OutputSpec) -> DataFrame:
    """The last row of every key in a large batch, and whether it is gone."""
    from pyspark.sql.functions import expr

    row = ", ".join(quoted(name) for name in output.names)
    keys = [quoted(name) for name in output.key_names]
    last = f"max_by(named_struct('gone', _op = '-', 'row', struct({row})), struct(_ts, _op = '+')) AS _last"
    grouped = batch.frame.groupBy(*(expr(key) for key in keys)).agg(expr(last))
    return grouped.selectExpr("_last.row.*", f"_last.gone AS {GONE}")


@contextmanager
def _spooled(frame: DataFrame) -> Iterator[pa.Table]:
    """The rows of a frame in a memory-mapped file, fetched in pieces, so that the driver never holds them all in memory."""
    packed = readable_frame(frame).mapInArrow(_pack, "blob binary")
    with tempfile.TemporaryDirectory(prefix="sash-spool-") as folder:
        path = Path(folder, "rows.arrow")
        with pa.OSFile(str(path), "wb") as file:
            writer = None
            for row in packed.toLocalIterator():
                with pa.ipc.open_stream(row[0]) as reader:
                    writer = pa.ipc.new_file(file, reader.schema) if writer is None else writer
                    for part in reader:
                        writer.write_batch(part)
            if writer is not None:
                writer.close()
        if writer is None:
            yield frame.limit(0).toArrow()
            return
        with pa.memory_map(str(path)) as file, pa.ipc.open_file(file) as reader:
            yield reader.read_all()


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as messages of Arrow's stream format: the function of `mapInArrow`."""
    for batch in batches:
        for start in range(0, batch.num_rows, _SPOOLED_ROWS):
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, batch.schema) as writer:
                writer.write_batch(batch.slice(start, _SPOOLED_ROWS))
            yield pa.record_batch([pa.array([sink.getvalue().to_pybytes()], pa.binary())], names=["blob"])
