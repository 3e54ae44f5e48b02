"""Reading again what a stream has brought: how far Spark has read its source, and the same rows as a DataFrame of a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, SparkSession

from sash.display import counted
from sash.spark.folders import Folder

FILE_FORMATS = ("csv", "json", "parquet", "orc", "text")

RECORD_PARTITION = "_sash_partition"
RECORD_TEXT = "_sash_row"
RECORD_ORIGIN = "_sash_origin"
OF_RECORD = (RECORD_PARTITION, RECORD_TEXT, RECORD_ORIGIN)
"""Columns that the DataFrame of a declared stream may have beside its own: of a Kafka record its partition, of a line or record
its text, and of a record or a row of a file where it came from."""

ReadAgain = Callable[[list[str] | str], DataFrame]
"""Returns the rows of a list of files, or of a source of another kind up to Spark's offset, given as JSON."""

_STREAMING = (
    "path",
    "maxfilespertrigger",
    "maxbytespertrigger",
    "maxfileage",
    "latestfirst",
    "filenameonly",
    "cleansource",
)
"""Options of a file stream that are not for its single files."""
_WHOLE_NAMES = {"__globPaths__": "false"}
"""Makes Spark take the names of files as they are, as it does in its own streams of files."""


@dataclass(frozen=True)
class Rereading:
    """How the rows of a stream are read again, or why they cannot be.

    `whole` is whether a job that begins to read the stream gets all its rows. `read_from`, if it exists, reads rows up to an
    offset and skips most of those before a time, in microseconds.
    """

    read: ReadAgain | None = None
    refused: str = ""
    whole: bool = False
    read_from: Callable[[str, int], DataFrame] | None = None


@dataclass(frozen=True)
class Reached:
    """How far a source has been read: Spark's offset and, of files, their addresses with the numbers of their batches."""

    offset: str
    files: Mapping[str, int] | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing has been read: a heartbeat alone may have set a stream's clock."""
        return self.files is not None and not self.files

    @property
    def what(self) -> str:
        """What there is to read, in words."""
        return "its offsets" if self.files is None else counted(len(self.files), "file", "files")

    @property
    def given(self) -> list[str] | str:
        """What a function that reads the rows again is given."""
        return self.offset if self.files is None else [unquote(path) for path in self.files]


def read_files(source_log: Folder, offset: str) -> dict[str, int] | None:
    """The files that a stream has read up to an offset, from Spark's log of them; None if it is not a stream of files."""
    last = file_offset(offset)
    if last is None:
        return None
    names = source_log.names()
    compacted = [name for name in names if name.endswith(".compact") and int(name.split(".")[0]) <= last]
    start = max((int(name.split(".")[0]) for name in compacted), default=-1)
    chosen = [f"{start}.compact"] if start >= 0 else []
    chosen += sorted((n for n in names if n.isdigit() and start < int(n) <= last), key=int)
    found: dict[str, int] = {}
    for name in chosen:
        for line in (source_log.read(name) or "").splitlines()[1:]:
            entry = json.loads(line)
            found[entry["path"]] = int(entry["batchId"])
    return found


def file_offset(offset: str) -> int | None:
    """The number of the last batch of files in an offset; None if it is the offset of another source.

    >>> file_offset('{"logOffset":4}'), file_offset('{"topic":{"0":12}}'), file_offset("7")
    (4, None, None)
    """
    try:
        read = json.loads(offset)
    except ValueError:
        return None
    return int(read["logOffset"]) if isinstance(read, dict) and "logOffset" in read else None


def file_rereading(spark: SparkSession, source: str, options: Mapping[str, str], schema: Any) -> Rereading:
    """How a stream of files is read again: by Spark's reader of the same format, with the same options."""
    path = next((value for name, value in options.items() if name.lower() == "path"), None)
    chosen = {name: value for name, value in options.items() if name.lower() not in _STREAMING}
    if path is not None and not any(sign in path for sign in "*?[{"):
        chosen = {"basePath": path, **chosen}

    def read(files: list[str] | str) -> DataFrame:
        assert isinstance(files, list)
        reader = spark.read.format(source).options(**{**chosen, **_WHOLE_NAMES})
        return (reader if schema is None else reader.schema(schema)).load(files)

    return Rereading(read, whole=True)


def kafka_options(options: Mapping[str, str], offset: str, first: int | None = None) -> dict[str, str]:
    """The options of a batch that reads what a stream of Kafka's has read: its partitions, up to its offsets.

    With `first`, in microseconds, a partition is read from its first record of that time or later.

    >>> kafka_options({"subscribe": "t", "kafka.x": "y", "startingOffsets": "latest"}, '{"t": {"0": 12, "1": 3}}')
    {'kafka.x': 'y', 'assign': '{"t": [0, 1]}', 'startingOffsets': 'earliest', 'endingOffsets': '{"t": {"0": 12, "1": 3}}'}
    """
    kept = {name: value for name, value in options.items() if name.startswith("kafka.") or name in _FOR_KAFKA}
    parts = {topic: sorted(map(int, partitions)) for topic, partitions in json.loads(offset).items()}
    start = {"startingOffsets": "earliest"}
    if first is not None:
        start = {"startingTimestamp": str(max(0, first // 1000)), "startingOffsetsByTimestampStrategy": "latest"}
    return {**kept, "assign": json.dumps(parts), **start, "endingOffsets": offset}


_FOR_KAFKA = ("failOnDataLoss", "includeHeaders")


def plain_rereading(frame: DataFrame) -> Rereading:
    """How a registered DataFrame is read again, if it is a stream of files and nothing else."""
    plan: Any = frame._jdf.queryExecution().analyzed()  # noqa: SLF001  (PySpark does not tell where a stream comes from)
    if plan.getClass().getSimpleName() != "StreamingRelation":
        return Rereading(refused=_UNKNOWN)
    source = plan.dataSource()
    name = str(source.className()).lower()
    if name not in FILE_FORMATS:
        return Rereading(refused=_UNKNOWN)
    options, pairs = {}, source.options().iterator()
    while pairs.hasNext():
        pair = pairs.next()
        options[str(pair._1())] = str(pair._2())  # noqa: SLF001  (the names of Scala's pairs)
    return file_rereading(frame.sparkSession, name, options, frame.schema)


_UNKNOWN = (
    "Sash does not know how its DataFrame was made: register it with history=, a function that returns the rows of a list "
    "of files"
)
