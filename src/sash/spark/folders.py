"""Folders with a few small files, on a local path or on any file system that Spark supports."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def local_path(location: str) -> Path | None:
    """The path of a local file or folder; None for one on another file system."""
    parts = urlparse(location)
    return Path(parts.path if parts.scheme == "file" else location) if parts.scheme in ("", "file") else None


class Folder:
    """A folder, created by the first write."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self._spark = spark
        self._local = local_path(location)
        self._location = location

    def read(self, name: str) -> str | None:
        """Read a file; None if it does not exist."""
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
        """Whether the file or folder exists."""
        if self._local is not None:
            return (self._local / name).exists()
        system, path = self._remote(name)
        return bool(system.exists(path))

    def write(self, name: str, text: str) -> None:
        """Write a file; readers never see a part of it on a local path."""
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

    def rename(self, old: str, new: str) -> None:
        """Rename a folder in this one, replacing a folder of the new name."""
        if self._local is not None:
            shutil.rmtree(self._local / new, ignore_errors=True)
            (self._local / old).rename(self._local / new)
            return
        system, source = self._remote(old)
        _, target = self._remote(new)
        system.delete(target, True)
        system.rename(source, target)

    def _remote(self, name: str) -> tuple[Any, Any]:
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001  (PySpark has no other access to Hadoop's file systems)
        path = jvm.org.apache.hadoop.fs.Path(self._location, name)
        configuration = self._spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
        return path.getFileSystem(configuration), path
