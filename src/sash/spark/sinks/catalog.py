"""A table of one of Spark's catalogs, written by Spark's own writer: any table that MERGE INTO supports.

In mode upsert the table holds the answer: a batch is one MERGE by key, which does the same again if the batch is repeated. In
the modes changes and net a batch is appended in the columns of Spark's change feed, of which `_commit_version` is the number
of the batch. It is appended by a MERGE, too, which inserts nothing if the table has a row of that number: so rows and number
are one commit, whatever the table's format is. A property of the table says which query writes to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.errors import CatalogError, OptionError
from sash.plan.options import Mode
from sash.plan.types import BIGINT, BOOLEAN, NULL, STRING, TIMESTAMP, Field, Schema, type_name
from sash.spark.sinks.base import Batch, OutputSpec, Sink, WriteBatch, refuse_added
from sash.spark.sinks.lakehouse import FEED, GONE, latest_frame, latest_table
from sash.spark.sql_types import frame_of, spark_struct, spark_type
from sash.sql.render import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OWNER = "sash.query"
"""The property of a table that says which query writes to it."""

_CHANGE, _VERSION, _TIME = FEED
_NOT_PLANNED = "Error occurred during query planning"


class CatalogTable(Sink):
    """Writes to `table`, such as `catalog.db.t`.

    Options: `create` (default true) creates the table if it does not exist, in the format `using`, by default the catalog's;
    `replace` lets a query that starts anew delete the rows of an existing table; `evolve` adds columns that it lacks.
    """

    name = "table"
    needed = ("table",)
    optional = ("create", "replace", "evolve", "using")
    flags = ("create", "replace", "evolve")
    exclusive = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        using = str(self.options.get("using", "x"))
        if not using.replace(".", "").replace("_", "").isalnum():
            raise OptionError(f"the option using of table is the name of a format, such as iceberg, not {using!r}")

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        return super().mode(chosen or ("upsert" if keyed else "changes"), keyed)

    def check(self, output: OutputSpec) -> None:
        refuse_added(self.name, output.names, (GONE,) if output.mode == "upsert" else FEED)
        for field in output.schema:
            if field.dtype == NULL:
                raise CatalogError(
                    f"{self.name} cannot store column {field.name}, a {type_name(field.dtype)}: use CAST in the query"
                )

    def open(self, output: OutputSpec) -> WriteBatch:
        from pyspark.sql import SparkSession

        self.check(output)
        shown, wanted = str(self.options["table"]), _columns(output)
        with _errors(shown):
            self._prepare(SparkSession.active(), shown, wanted, output.identity)
            merge = _merge if output.mode == "upsert" else _append
            merge(SparkSession.active(), shown, output, None)

        def write(batch: Batch, number: int) -> None:
            if batch.rows:
                with _errors(shown):
                    merge(batch.spark, shown, output, (batch, number))

        return write

    def _prepare(self, spark: SparkSession, shown: str, wanted: Schema, identity: str) -> None:
        """Create the table if needed; check its columns, and that its rows are those that this query wrote before, if any."""
        if not spark.catalog.tableExists(shown):
            self._create(spark, shown, wanted, identity)
            return
        there = {name.lower() for name in spark.table(shown).columns}
        absent = [field for field in wanted if field.name.lower() not in there]
        if absent and not self.flag("evolve", False):
            names = ", ".join(field.name for field in absent)
            raise CatalogError(f"table {shown} has no column {names}: add it, or set the option `evolve true`")
        owner = {row[0]: row[1] for row in spark.sql(f"SHOW TBLPROPERTIES {shown}").collect()}.get(OWNER)
        empty = owner == identity or spark.table(shown).isEmpty()
        if not empty and not self.flag("replace", False):
            raise CatalogError(
                f"table {shown} has rows that this query has not written: choose another table, or set the option "
                "`replace true` to delete them"
            )
        if absent:
            spark.sql(f"ALTER TABLE {shown} ADD COLUMNS ({_ddl(absent)})")
        if not empty:
            spark.sql(f"DELETE FROM {shown}")
        if owner != identity:
            spark.sql(f"ALTER TABLE {shown} SET TBLPROPERTIES ('{OWNER}' = '{identity}')")

    def _create(self, spark: SparkSession, shown: str, wanted: Schema, identity: str) -> None:
        if not self.flag("create", True):
            raise CatalogError(f"there is no table {shown}: create it, or remove the option `create false`")
        using = f"USING {self.options['using']}" if "using" in self.options else ""
        spark.sql(f"CREATE TABLE {shown} ({_ddl(wanted)}) {using} TBLPROPERTIES ('{OWNER}' = '{identity}')")


def _columns(output: OutputSpec) -> Schema:
    """The columns that are written."""
    if output.mode == "upsert":
        return output.schema
    return (*output.schema, Field(_CHANGE, STRING), Field(_VERSION, BIGINT), Field(_TIME, TIMESTAMP))


def _ddl(columns: Schema | list[Field]) -> str:
    return ", ".join(f"{quoted(field.name)} {spark_type(field.dtype).simpleString()}" for field in columns)


def _merge(spark: SparkSession, table: str, output: OutputSpec, given: tuple[Batch, int] | None) -> None:
    """Merge a batch by key; without one, see whether Spark can."""
    keys = [quoted(name) for name in output.key_names]
    columns = [quoted(name) for name in output.names]
    same = " AND ".join(f"t.{key} <=> s.{key}" for key in keys) or "true"
    values = ", ".join(f"s.{column}" for column in columns)
    clauses = (
        f"ON {same} WHEN MATCHED AND s.{GONE} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{column} = s.{column}' for column in columns)} "
        f"WHEN NOT MATCHED AND NOT s.{GONE} THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )
    rows = None if given is None else _latest(given[0], output)
    _run(spark, table, (*output.schema, Field(GONE, BOOLEAN)), rows, clauses)


def _append(spark: SparkSession, table: str, output: OutputSpec, given: tuple[Batch, int] | None) -> None:
    """Append a batch, unless the table has it; without one, see whether Spark can."""
    number = -1 if given is None else given[1]
    columns = [quoted(field.name) for field in _columns(output)]
    values = ", ".join(f"s.{column}" for column in columns)
    clauses = (
        f"ON t.{_VERSION} = s.{_VERSION} AND t.{_VERSION} = {number} "
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(columns)}) VALUES ({values})"
    )
    rows = None
    if given is not None:
        time = "_ts" if pa.types.is_timestamp(output.time) else "timestamp_micros(_ts)"
        rows = given[0].frame.selectExpr(
            *(quoted(name) for name in output.names),
            f"if(_op = '+', 'insert', 'delete') AS {_CHANGE}",
            f"CAST({number} AS BIGINT) AS {_VERSION}",
            f"CAST({time} AS TIMESTAMP) AS {_TIME}",
        )
    _run(spark, table, _columns(output), rows, clauses)


def _run(spark: SparkSession, table: str, columns: Schema, rows: DataFrame | None, clauses: str) -> None:
    """Run the MERGE of rows with these columns; without rows, raise an error if Spark cannot."""
    statement = f"MERGE INTO {table} AS t USING {{rows}} AS s {clauses}"
    if rows is not None:
        spark.sql(statement, rows=rows)
        return
    none = spark.createDataFrame([], spark_struct(columns))
    plan = "\n".join(row[0] for row in spark.sql(f"EXPLAIN {statement}", rows=none).collect())
    if _NOT_PLANNED in plan:
        reason = next(
            (line for line in plan.partition(_NOT_PLANNED)[2].strip(": \n").splitlines() if line.strip()), plan
        )
        raise CatalogError(f"table {table} cannot be written by MERGE INTO: {reason}")


def _latest(batch: Batch, output: OutputSpec) -> DataFrame:
    """The last row of every key in a batch, and whether it is gone."""
    if not batch.small:
        return latest_frame(batch, output)
    rows = latest_table(batch, output).drop_columns(["_op", "_ts"])
    return frame_of(batch.spark, rows, spark_struct((*output.schema, Field(GONE, BOOLEAN))))


@contextmanager
def _errors(table: str) -> Iterator[None]:
    """What Spark says of a table and a query that do not fit, in one line."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as problem:
        text = str(problem).strip().splitlines()[0]
        raise CatalogError(f"table {table}: {text}") from problem
