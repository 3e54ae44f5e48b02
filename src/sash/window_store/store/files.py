"""Atomic files: each is written under a temporary name, synced and renamed, and is read without copying."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pyarrow as pa

TEMPORARY = ".tmp"


def write_bytes(path: Path, data: bytes | pa.Buffer) -> None:
    """Write the file in one atomic step. It survives a crash once this returns."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}{TEMPORARY}")
    with unfinished.open("wb") as out:
        out.write(memoryview(data))
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table as an Arrow IPC file of one uncompressed batch, which readers can map."""
    sink = pa.BufferOutputStream()
    whole = table.combine_chunks()
    with pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole)
    write_bytes(path, sink.getvalue())


def read_table(path: Path) -> pa.Table:
    """Map a table from a file. Its pages are loaded on first access."""
    with pa.memory_map(str(path), "r") as source:
        return pa.ipc.open_file(source).read_all()
