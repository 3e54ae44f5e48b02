"""The parts of a changelog in a local folder: one per batch, or one for several batches that were compacted.

A batch is a folder `batch=N`. A compacted part is the folder of its last batch, with one file that is named by its batches.
The metadata of that file has the number of rows of every batch in it, so that a reader can go on after any of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sash.errors import CatalogError

_FOLDER = "batch="
_COMPACTED = re.compile(r"compacted-(\d+)-(\d+)\.snappy\.parquet")
ROWS, NET, SPAN = b"sash.batches", b"sash.net", b"sash.span"
"""Keys of the metadata of a compacted file: [batch, rows] of every batch, the last batch that is in it as net changes only, and
the first and the last instant of its changes."""


@dataclass(frozen=True)
class Part:
    """The files with the changes of the batches from `first` to `last`; `size` is their size in bytes."""

    first: int
    last: int
    files: tuple[Path, ...]
    size: int
    compacted: bool


def compacted_name(first: int, last: int) -> str:
    """The name of the file with these batches."""
    return f"compacted-{first}-{last}.snappy.parquet"


def replaced(log: Path) -> Path:
    """The folder to which compaction moves the files that it has replaced, until the next time."""
    log = log.resolve()
    return log.with_name(f".{log.name}.replaced")


def parts(log: Path) -> list[Part]:
    """The parts in order."""
    found = []
    for folder in log.iterdir() if log.exists() else ():
        if folder.name.startswith(_FOLDER):
            number = int(folder.name.removeprefix(_FOLDER))
            files = tuple(sorted(path for path in folder.iterdir() if path.suffix == ".parquet"))
            names = [_COMPACTED.fullmatch(path.name) for path in files]
            first = next((int(name[1]) for name in names if name), number)
            size = sum(path.stat().st_size for path in files)
            found.append(Part(first, number, files, size, any(names)))
    return sorted(found, key=lambda part: part.last)


def last_batch(log: Path) -> int | None:
    """The number of the last batch with changes; None in an empty log."""
    return max((part.last for part in _listed(log)), default=None)


def _listed(log: Path) -> list[Part]:
    """The parts; the folder is listed again if compaction replaces it meanwhile."""
    while True:
        with suppress(FileNotFoundError):
            return parts(log)


def read_after(log: Path, after: int = -1, upto: int | None = None) -> Iterator[tuple[int, pa.Table]]:
    """The batches after one, up to another, with their changes.

    From the start, net changes stand for the batches that retention has removed. A reader that goes on amid these is refused:
    they would repeat what it has read.
    """
    for part in _listed(log):
        if part.last <= after or (upto is not None and part.first > upto):
            continue
        for number, table in _batches(log, part, after):
            if number > after and (upto is None or number <= upto):
                yield number, table


def _batches(log: Path, part: Part, after: int) -> Iterator[tuple[int, pa.Table]]:
    if not part.compacted:
        yield part.last, pa.concat_tables([open_file(log, path).read() for path in part.files])
        return
    file = open_file(log, part.files[0])
    rows, net = batches_in(file), net_until(file)
    if net is not None and -1 < after < net:
        raise CatalogError(
            f"the changes of batch {after + 1} are not in {log} any more: those up to batch {net} were replaced by their "
            "net changes; read the log from its start, or retain changes longer"
        )
    table, start = file.read(), 0
    for number, count in rows:
        yield number, table.slice(start, count)
        start += count


def open_file(log: Path, path: Path) -> pq.ParquetFile:
    """Open a file of the log, also if compaction has just replaced it."""
    try:
        return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")
    except FileNotFoundError:
        return pq.ParquetFile(replaced(log) / path.relative_to(log), coerce_int96_timestamp_unit="us")


def batches_in(file: pq.ParquetFile) -> list[tuple[int, int]]:
    """The batches in a compacted file, with their numbers of rows."""
    return [(number, rows) for number, rows in json.loads(file.metadata.metadata[ROWS])]


def net_until(file: pq.ParquetFile) -> int | None:
    """The last batch that is in a compacted file as net changes only, if any is."""
    found = json.loads(file.metadata.metadata[NET])
    return None if found is None else int(found)


def span(log: Path, part: Part) -> tuple[int, int]:
    """The first and the last instant of a part's changes, in microseconds."""
    files = [open_file(log, path) for path in part.files]
    if part.compacted:
        first, last = json.loads(files[0].metadata.metadata[SPAN])
        return first, last
    times = pa.concat_tables([file.read(["_ts"]) for file in files])["_ts"].cast(pa.int64())
    ends = pc.min_max(times).as_py()
    return ends["min"], ends["max"]
