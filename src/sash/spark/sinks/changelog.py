"""A changelog: the changes of every batch as Parquet files in a folder `batch=N`, for any reader of Parquet.

A batch is written to a hidden folder, which is then renamed: so it is in the log as a whole or not at all, and only once
even if it is repeated. A small batch is written by this process if the log is on a local path, otherwise by Spark. A job may
have hundreds of logs, so a small batch costs as few operations on files as it can: the owner of a log, which refuses others,
is read before the first batch only. After every hundred batches, small files are compacted.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from sash.arguments import shown, whole_number
from sash.changelog import Compaction
from sash.durations import microseconds
from sash.errors import CatalogError, OptionError
from sash.operators.output_modes import reduce_changes
from sash.plan.options import Mode
from sash.plan.types import NULL, TIMESTAMP, TIMESTAMP_NTZ, is_sql_type
from sash.secret_references import has_references
from sash.spark.folders import Folder, local_path
from sash.spark.sinks.base import ADDED, OutputSpec, Sink, refuse_added
from sash.spark.sinks.batch import Batch, WriteBatch, typed_schema, typed_table
from sash.state.change_tables import changes_of

_PARTITION = "batch"
_OWNER = "_sash.json"
OUTPUT = "_output.json"
"""The file with the mode and the key of the output, by which readers fold the changes."""
_COMPACT = 100
"""The number of batches after which small files are compacted."""
_FEW = 1_000
"""Dictionaries and statistics of files with fewer rows cost more than they save."""
_TIMESTAMPS = "spark.sql.parquet.outputTimestampType"


class ChangeLog(Sink):
    """Writes to the folder `path`, on any file system that Spark supports."""

    name = "changelog"
    needed = ("path",)
    optional = ("compact", "retain")
    exclusive = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__(options)
        given = self.options.get("compact", _COMPACT)
        every = whole_number(str(given))
        if every is None:
            raise OptionError(f"compact must be a number of batches, or 0 for never, not {shown(given)}")
        self._every = every
        retain = self.options.get("retain")
        self._retain = None if retain is None else microseconds(str(retain), "retain")
        if retain is not None and not self._every:
            raise OptionError("retain needs compaction: leave out compact, or set it to a number of batches")

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        return super().mode(chosen or "changes", keyed)

    def check(self, output: OutputSpec) -> None:
        refuse_added("the changelog", output.names, (*ADDED, _PARTITION))
        if has_references(self.options["path"]):
            return
        if {"compact", "retain"} & self.options.keys() and self._every and not self._compactable(output):
            raise OptionError(
                f"the changelog {self._path} cannot be compacted: compact and retain need a local path, and columns that are "
                "not nested, nor intervals or VARIANT"
            )

    def _compactable(self, output: OutputSpec) -> bool:
        return local_path(self._path) is not None and _same_in_arrow(output)

    @property
    def _path(self) -> str:
        return self.resolved["path"].rstrip("/")

    def connect(self, output: OutputSpec) -> None:
        owner = local_path(f"{self._path}/{_OWNER}")
        if owner is not None and owner.exists() and owner.read_text() != output.identity:
            raise _taken(self._path)

    def open(self, output: OutputSpec) -> WriteBatch:
        self.check(output)
        path, local = self._path, local_path(self._path)
        here = local is not None and _same_in_arrow(output)
        settings: dict[str, bool] = {}
        compaction = None
        if self._every and local is not None and here:
            compaction = Compaction(local, self._every, self._retain, lambda table: _net(table, output))

        def write(batch: Batch, number: int) -> None:
            if not settings:
                _claim(Folder(batch.spark, path), output)
                settings["int96"] = (batch.spark.conf.get(_TIMESTAMPS) or "").upper() == "INT96"
            if not batch.rows:
                return
            draft, final = f".{_PARTITION}-{number}", f"{_PARTITION}={number}"
            if local is not None and here and batch.small:
                _write_here(batch.table, str(local), draft, final, int96=settings["int96"])
            else:
                batch.frame.write.mode("overwrite").parquet(f"{path}/{draft}")
                Folder(batch.spark, path).rename(draft, final)
            if compaction is not None:
                compaction.wrote(number)

        return write


def _net(table: pa.Table, output: OutputSpec) -> pa.Table:
    """The net changes of a log's first ones, at the last of their instants."""
    dtypes = [(f.name, f.dtype) for f in typed_schema(output.schema, output.time)]
    changes = changes_of(table.cast(pa.schema(dtypes))).sorted()
    net = reduce_changes(changes, "net" if output.mode == "changes" else output.mode, output.key)
    net = net.take(np.flatnonzero(net.sign > 0)) if output.mode == "upsert" else net
    at = np.full(len(net), changes.ts[-1], np.int64)
    return typed_table(replace(net, ts=at), output.schema, output.time)


def _same_in_arrow(output: OutputSpec) -> bool:
    """Whether Arrow writes every column as Spark does.

    Spark stores instants as INT96 by default, and timestamps without a zone as INT64; Arrow stores both in the same way.
    Spark refuses columns of no type.
    """
    dtypes = {output.time, *(field.dtype for field in output.schema)}
    nested = any(pa.types.is_nested(dtype) or is_sql_type(dtype) for dtype in dtypes)
    return not nested and NULL not in dtypes and not {TIMESTAMP, TIMESTAMP_NTZ} <= dtypes


def _claim(folder: Folder, output: OutputSpec) -> None:
    """Make the log that of this query, unless it is another's."""
    owner = folder.read(_OWNER)
    if owner is None:
        folder.write(OUTPUT, json.dumps({"mode": output.mode, "key": output.key}))
        folder.write(_OWNER, output.identity)
    elif owner != output.identity:
        raise _taken(folder.location)


def _write_here(table: pa.Table, folder: str, draft: str, final: str, *, int96: bool) -> None:
    """Write a small batch; what an interrupted attempt left is replaced. Paths are text: those of pathlib cost as much as a write."""
    written, target = f"{folder}/{draft}", f"{folder}/{final}"
    try:
        os.mkdir(written)  # noqa: PTH102
    except OSError:
        shutil.rmtree(written, ignore_errors=True)
        os.makedirs(written)  # noqa: PTH103
    many = table.num_rows > _FEW
    made = pa.BufferOutputStream()
    instants = any(field.type == TIMESTAMP for field in table.schema)
    with pq.ParquetWriter(
        made,
        table.schema,
        compression="snappy",
        use_dictionary=many,
        write_statistics=many,
        use_deprecated_int96_timestamps=int96 and instants,
        store_schema=False,
    ) as writer:
        writer.write_table(table)
    with open(f"{written}/part-00000.snappy.parquet", "wb", buffering=0) as file:  # noqa: PTH123
        file.write(made.getvalue())
    try:
        os.rename(written, target)  # noqa: PTH104
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        os.rename(written, target)  # noqa: PTH104


def _taken(path: str) -> CatalogError:
    return CatalogError(
        f"{path} holds the changelog of another query or another checkpoint: choose another path, or remove it"
    )
