"""MAX ROWS PER BATCH of streams over files: how many bytes of files a batch reads.

Spark bounds the files of a batch by their number or their size, not by their rows. So the size follows the rows per byte of the
files that the last batches read. A batch has at least one file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sash.spark.folders import Folder, local_path

_FORGOTTEN = 0.8
"""So fast the densest files are forgotten: by this factor in every batch."""


class FileBatches:
    """Sets how many bytes of files the next batch of a job reads. `limits` has the rows of a batch, by the path of a stream's files;
    `sources` is the folder in which Spark notes the files of each batch."""

    def __init__(self, spark: SparkSession, sources: Folder, limits: Mapping[str, int]) -> None:
        self._spark = spark
        self._sources = sources
        self._limits = {_path(path): rows for path, rows in limits.items()}
        self._density: dict[str, float] = {}

    def adapt(self, query: StreamingQuery, report: Any) -> None:
        """Take in what a batch has read, and set what the next one reads."""
        sizes = {}
        for number, source in enumerate(report["sources"] if report else ()):
            path = _described(source["description"])
            if path in self._limits and (read := self._bytes(number, source)):
                sizes[path] = self.size(path, read, int(source["numInputRows"]))
        if sizes:
            self._set(query, sizes)

    def size(self, path: str, read: int, rows: int) -> int:
        """How many bytes of a stream's files the next batch reads, after one of so many bytes and rows."""
        self._density[path] = max(rows / read, self._density.get(path, 0) * _FORGOTTEN, 1e-9)
        return max(1, int(self._limits[path] / self._density[path]))

    def _bytes(self, number: int, source: Any) -> int:
        """The size of the files of a batch; 0 if Spark has put its notes together meanwhile."""
        folder = self._sources.inside(str(number))
        first, last = (_log_offset(source[name]) for name in ("startOffset", "endOffset"))
        logs = [folder.read(str(log)) for log in range(first + 1, last + 1)]
        lines = [line for log in logs if log is not None for line in log.splitlines() if line.startswith("{")]
        return sum(self._size_of(json.loads(line)["path"]) for line in lines) if None not in logs else 0

    def _size_of(self, address: str) -> int:
        local = local_path(address)
        if local is not None:
            return Path(unquote(str(local))).stat().st_size
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001
        path = jvm.org.apache.hadoop.fs.Path(jvm.java.net.URI(address))
        system = path.getFileSystem(self._spark.sparkContext._jsc.hadoopConfiguration())  # noqa: SLF001
        return int(system.getFileStatus(path).getLen())

    def _set(self, query: StreamingQuery, sizes: Mapping[str, int]) -> None:
        """Replace the limits of the sources with these paths: Spark looks at them when it plans a batch."""
        java: Any = query
        jvm: Any = self._spark.sparkContext._jvm  # noqa: SLF001
        execution = java._jsq.streamingQuery()  # noqa: SLF001  (PySpark's options hold for the whole run)
        limits = execution.uniqueSources()
        sources = limits.keys().iterator()
        while sources.hasNext():
            source = sources.next()
            path = _described(source.toString())
            if path is not None and path in sizes:
                limit = jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit.maxBytes(sizes[path])
                limits = limits.updated(source, limit)
        getattr(execution, "uniqueSources_$eq")(limits)


def path_of_files(frame: DataFrame) -> str | None:
    """The path of the files that a streaming DataFrame reads, if it bounds the files of its first batch; else None."""
    java: Any = frame
    leaf = java._jdf.queryExecution().analyzed().collectLeaves().head()  # noqa: SLF001  (PySpark does not tell)
    if leaf.getClass().getSimpleName() != "StreamingRelation":
        return None
    jvm: Any = frame.sparkSession.sparkContext._jvm  # noqa: SLF001
    options = dict(jvm.scala.jdk.javaapi.CollectionConverters.asJava(leaf.dataSource().options()))
    known = {str(name).lower(): str(value) for name, value in options.items()}
    return known.get("path") if "maxfilespertrigger" in known else None


def _described(text: str) -> str | None:
    """The path of a source of files, which Spark describes by it.

    >>> _described("FileStreamSource[file:/data/a%20b]"), _described("RateStreamV2[rowsPerSecond=1]")
    ('/data/a b', None)
    """
    name, _, rest = text.partition("[")
    return _path(rest.removesuffix("]")) if name == "FileStreamSource" else None


def _path(given: str) -> str:
    """A path without the file system that an address names."""
    found = urlparse(given)
    return unquote(found.path).rstrip("/") if found.scheme else os.path.abspath(given)  # noqa: PTH100  (keeps links)


def _log_offset(given: Any) -> int:
    """The number in an offset of files; -1 before the first."""
    known = json.loads(given) if isinstance(given, str) else given
    return -1 if known is None else int(known["logOffset"])
