"""Files that are whole or not there: written under another name, synced, then renamed; read without copying."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

import pyarrow as pa

TEMPORARY = ".tmp"


def write_bytes(path: Path, data: bytes | pa.Buffer) -> None:
    """Put the file in place, in one step; once this returns it survives a crash."""
    unfinished = path.with_name(f"{path.name}.{uuid.uuid4().hex}{TEMPORARY}")
    with unfinished.open("wb") as out:
        out.write(memoryview(data))
        out.flush()
        os.fsync(out.fileno())
    unfinished.replace(path)
    sync_directory(path.parent)


def write_table(path: Path, table: pa.Table) -> None:
    """A table as one Arrow IPC file of one batch, not compressed, so that readers can map it."""
    sink = pa.BufferOutputStream()
    whole = table.combine_chunks()
    with pa.ipc.new_file(sink, whole.schema) as writer:
        writer.write_table(whole)
    write_bytes(path, sink.getvalue())


def read_table(path: Path) -> pa.Table:
    """The table in a file; its columns are the file's pages, fetched when they are touched."""
    with pa.memory_map(str(path), "r") as source:
        return pa.ipc.open_file(source).read_all()


def sync_directory(path: Path) -> None:
    """Make renames and removals in a directory survive a crash."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
