"""Spark's own formats as sinks of a job, where each batch is written by a batch job under its number.

A file format gets a folder per batch, `path/batch=N`, which a repeated batch overwrites. Other formats have no place for
the number, so a batch that is repeated after a failure is written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from sash.errors import OptionError
from sash.plan.options import Mode
from sash.spark.sinks.base import Guarantee, OutputSpec, Sink
from sash.spark.sinks.batch import Batch, WriteBatch
from sash.spark.sql_types import frame_of_readable

FILE_FORMATS = ("parquet", "orc", "json", "csv", "avro", "xml", "text")


class FormatSink(Sink):
    """Writes to a format of Spark's with its options; `query` names the table of the format `memory`."""

    needed = ()
    guarantee: Guarantee = "at least once"
    needs_empty_batches = True

    def __init__(self, form: str, options: Mapping[str, Any], query: str) -> None:
        self.name = form
        super().__init__(options)
        self._query = query
        if form in FILE_FORMATS:
            self.guarantee = "exactly once"
            if not self.options.get("path"):
                raise OptionError(f"{form} needs the option path")

    def accepts(self, option: str) -> bool:
        return True

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        return super().mode(chosen or "changes", keyed)

    def check(self, output: OutputSpec) -> None:
        """Refuse nothing: Spark checks the columns when it writes them."""

    def open(self, output: OutputSpec) -> WriteBatch:
        options = self.resolved
        special: dict[str, Callable[[dict[str, str]], WriteBatch]] = {
            "noop": _discard,
            "console": self._to_console,
            "memory": self._to_memory,
        }
        if self.name in special:
            return special[self.name](options)
        if self.name in FILE_FORMATS:
            return self._to_files(options)

        def write(batch: Batch, number: int) -> None:
            batch.frame.write.format(self.name).options(**options).mode("append").save()

        return write

    def _to_files(self, options: dict[str, str]) -> WriteBatch:
        path = options.pop("path").rstrip("/")

        def write(batch: Batch, number: int) -> None:
            if batch.rows:
                writer = batch.frame.write.format(self.name).options(**options).mode("overwrite")
                writer.save(f"{path}/batch={number}")

        return write

    def _to_console(self, options: dict[str, str]) -> WriteBatch:
        rows = int(options.get("numRows", "20"))
        truncate = options.get("truncate", "true").lower() != "false"

        def write(batch: Batch, number: int) -> None:
            line = "-" * 43
            print(f"{line}\n{self._query}, batch {number}\n{line}")  # noqa: T201  (this sink prints)
            batch.frame.show(rows, truncate)

        return write

    def _to_memory(self, _: dict[str, str]) -> WriteBatch:
        """Keep all changes in this process, as a temporary view with the query's name."""
        parts: dict[int, pa.Table] = {}

        def write(batch: Batch, number: int) -> None:
            parts[number] = batch.table
            whole = pa.concat_tables([parts[n] for n in sorted(parts)])
            frame_of_readable(batch.spark, whole, batch.frame.schema).createOrReplaceTempView(self._query)

        return write


def _discard(_: dict[str, str]) -> WriteBatch:
    def write(batch: Batch, number: int) -> None:
        """Write nothing: the changes have been computed."""

    return write
