"""Lakehouse tables for tests, in a folder, and the sinks that write to them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from sash.plan.types import BIGINT, STRING, Field, Schema
from sash.spark.sinks import SINKS
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.batch import Batch, WriteBatch, typed_schema

SCHEMA: Schema = (Field("k", STRING), Field("n", BIGINT))
KINDS = ("delta", "iceberg")
SPARK: Any = SimpleNamespace()  # a small batch asks nothing of a session


def options(kind: str, folder: Path) -> dict[str, Any]:
    if kind == "delta":
        return {"path": str(folder / "table")}
    return {
        "catalog": "test",
        "table": "db.t",
        "type": "sql",
        "uri": f"sqlite:///{folder}/catalog.db",
        "warehouse": f"file://{folder}/wh",
    }


def sink(
    kind: str,
    folder: Path,
    mode: Any = "upsert",
    schema: Schema = SCHEMA,
    key: tuple[int, ...] | None = (0,),
    identity: str = "one",
    time: pa.DataType = BIGINT,
    **more: Any,
) -> WriteBatch:
    """The function that writes batches to the table in a folder."""
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[kind])
    output = OutputSpec(schema, time, mode, key, identity)
    made = SINKS[kind]({**options(kind, folder), **more})
    made.check(output)
    made.connect(output)
    return made.open(output)


def batch(rows: list[tuple[Any, ...]], schema: Schema = SCHEMA, time: pa.DataType = BIGINT) -> Batch:
    """Changes: operation, time and row."""
    fields = typed_schema(schema, time)
    columns = zip(*rows, strict=True) if rows else ([] for _ in fields)
    arrays = [
        pa.array(column, pa.int64()).cast(time) if f.name == "_ts" else pa.array(column, f.dtype)
        for column, f in zip(columns, fields, strict=True)
    ]
    return Batch.of_table(pa.table(arrays, names=[f.name for f in fields]), schema, time, SPARK)


def read(kind: str, folder: Path) -> pa.Table:
    """The rows of the table."""
    if kind == "delta":
        from deltalake import DeltaTable

        return DeltaTable(str(folder / "table")).to_pyarrow_table()
    return iceberg(folder).scan().to_arrow()


def files(kind: str, folder: Path) -> int:
    """The number of files of the table's current version."""
    if kind == "delta":
        from deltalake import DeltaTable

        return len(DeltaTable(str(folder / "table")).file_uris())
    return len(list(iceberg(folder).scan().plan_files()))


def iceberg(folder: Path) -> Any:
    from pyiceberg.catalog import load_catalog

    properties = options("iceberg", folder)
    return load_catalog("test", **{name: properties[name] for name in ("type", "uri", "warehouse")}).load_table("db.t")
