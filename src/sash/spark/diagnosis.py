"""What can be found out after a failure: in which file the row is that ended a query, and what it looks like.

Workers that read a stream do not know the files of its rows. After a failure the files of the last batch, which the
checkpoint lists, are read once more.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from sash.errors import BadRowError, SashError
from sash.plan.nodes import Stream, walk
from sash.planning import Planned
from sash.spark.folders import local_path
from sash.spark.sources.inputs import QueryInputs
from sash.sql.render import quoted

_NAMED = re.compile(r"stream (\S+) has a row whose time column is NULL")
_LONGEST = 200


def locate_bad_row(error: SashError, *, inputs: QueryInputs, planned: Planned, checkpoint: str) -> SashError:
    """Add to an error about a row without a time its column, file and values, if the stream reads files."""
    named = _NAMED.match(str(error))
    if not isinstance(error, BadRowError) or named is None:
        return error
    streams = {node.name.lower(): node for node in walk(planned.written) if isinstance(node, Stream)}
    try:
        stream, frame = streams[named[1].lower()], inputs.streams[named[1].lower()].frame
        time = stream.schema[stream.time].name
        found = _first_without_time(frame, time, _last_files(checkpoint))
    except Exception:  # noqa: BLE001  (the failure itself matters more than its place)
        return error
    if found is None:
        return error
    file, row = found
    located = (
        f"stream {stream.name} has a row whose time column {time} is NULL or cannot be read: {row} in {file}. Correct the file "
        "(is it complete, and are its columns in the declared order?), or drop such rows: BAD ROWS DROP, in Python "
        'bad_rows="drop"'
    )
    error.args, error.row = (located,), f"{row} in {file}"
    return error


def _last_files(checkpoint: str) -> list[str]:
    """The files of the last batch of every file source, as the local checkpoint lists them."""
    path = local_path(checkpoint)
    files: list[str] = []
    for source in sorted(path.glob("sources/*")) if path is not None else ():
        logs = [file for file in source.iterdir() if file.name.split(".")[0].isdigit()]
        if logs:
            last = max(logs, key=lambda file: int(file.name.split(".")[0]))
            entries = [json.loads(line) for line in last.read_text().splitlines() if line.startswith("{")]
            newest = max((entry["batchId"] for entry in entries), default=0)
            files += [entry["path"] for entry in entries if entry["batchId"] == newest]
    return files


def _first_without_time(frame: DataFrame, time: str, files: list[str]) -> tuple[str, str] | None:
    """The file and the values of the first row without a time in those of the files that the stream reads."""
    leaf: Any = frame._jdf.queryExecution().analyzed().collectLeaves().head()  # noqa: SLF001
    source = leaf.dataSource()
    spark, jvm = frame.sparkSession, frame.sparkSession.sparkContext._jvm  # noqa: SLF001
    options = dict(jvm.scala.jdk.javaapi.CollectionConverters.asJava(source.options()))  # type: ignore[union-attr]
    start = re.split(r"[*?\[{]", urlparse(options.pop("path")).path)[0].rstrip("/")
    mine = [file for file in files if unquote(urlparse(file).path).startswith(str(Path(start).resolve()))]
    if not mine:
        return None
    schema = StructType.fromJson(json.loads(source.userSpecifiedSchema().get().json()))
    reader = spark.read.format(source.className()).options(**options).schema(schema)
    rows = reader.load(mine).where(f"{quoted(time)} IS NULL").select("_metadata.file_path", "*").head(1)
    if not rows:
        return None
    values = {name: value for name, value in rows[0].asDict().items() if name != "file_path"}
    text = ", ".join(f"{name} {'NULL' if value is None else value}" for name, value in values.items())
    return unquote(urlparse(rows[0]["file_path"]).path), f"({text[:_LONGEST]}{' ...' if len(text) > _LONGEST else ''})"
