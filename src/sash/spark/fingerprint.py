"""The fingerprint of a checkpoint: what query wrote it, so that another one does not go on from its state.

Spark itself accepts changed code over an old checkpoint in silence.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from sash.errors import CheckpointError

NAME = "sash-fingerprint.json"

_REASONS = {
    "format": "it was written by another version of Sash",
    "sql": "it belongs to another query",
    "plan": "the query is now planned differently, over other columns or by other rules",
    "shards": "it was written with another number of shards",
    "streams": "the streams are others, or in another order",
    "relations": "the relations that change are others",
    "heartbeats": "other streams had a heartbeat",
}


def check_fingerprint(spark: SparkSession, checkpoint: str, fingerprint: dict[str, Any]) -> None:
    """Write the fingerprint beside a new checkpoint; refuse a checkpoint that has another."""
    place = _Place(spark, checkpoint)
    stored = place.read(NAME)
    if stored is None:
        if place.exists("offsets"):
            raise CheckpointError(f"{checkpoint} is the checkpoint of a query that is not Sash's: choose another place")
        place.write(NAME, json.dumps(fingerprint, indent=2))
        return
    known = json.loads(stored)
    for part, reason in _REASONS.items():
        if known.get(part) != fingerprint.get(part):
            raise CheckpointError(
                f"checkpoint {checkpoint} cannot be used: {reason} (then: {known.get(part)!r}, now: "
                f"{fingerprint.get(part)!r}). Put that back, or start with a new checkpoint"
            )


class _Place:
    """A directory, on a local path or on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        parts = urlparse(location)
        self._spark = spark
        self._local = Path(parts.path if parts.scheme == "file" else location) if parts.scheme in ("", "file") else None
        self._location = location

    def read(self, name: str) -> str | None:
        if self._local is not None:
            path = self._local / name
            return path.read_text() if path.exists() else None
        system, path = self._remote(name)
        if not system.exists(path):
            return None
        stream = system.open(path)
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def exists(self, name: str) -> bool:
        if self._local is not None:
            return (self._local / name).exists()
        system, path = self._remote(name)
        return bool(system.exists(path))

    def write(self, name: str, text: str) -> None:
        if self._local is not None:
            self._local.mkdir(parents=True, exist_ok=True)
            draft = self._local / f".{name}.{os.getpid()}"
            draft.write_text(text)
            draft.replace(self._local / name)
            return
        system, path = self._remote(name)
        stream = system.create(path, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _remote(self, name: str) -> tuple[Any, Any]:
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001  (Hadoop's file systems have no other door)
        path = jvm.org.apache.hadoop.fs.Path(self._location, name)
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return path.getFileSystem(configuration), path
