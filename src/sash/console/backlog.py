"""The files that a job has not read yet: those in the folders of its streams without those in its checkpoint's source logs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from glob import has_magic
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

FILE_FORMATS = frozenset(("csv", "json", "parquet", "orc", "text", "avro", "xml"))
_SHARE = 20
"""A listing that took long is not repeated before this many times as long has passed."""


class FileBacklog:
    """Counts the unread files of one job. What the source logs say is read once; the folders are listed at each count."""

    def __init__(self, sources: Path, streams: Sequence[Mapping[str, str]]) -> None:
        self._sources = sources
        self._streams = streams
        self._read: set[str] = set()
        self._logs: dict[Path, int] = {}
        self._last: dict[Path, int] = {}
        self._count: int | None = None
        self._again = float("-inf")

    def count(self) -> int | None:
        """The number of files to be read; None if no stream reads files."""
        if not self._streams:
            return None
        begun = time.monotonic()
        if begun >= self._again:
            listed = {file for stream in self._streams for file in _files(stream)}
            self._follow()  # after the listing, so that a file that is read meanwhile is not counted
            self._count = len(listed - self._read)
            self._again = begun + _SHARE * (time.monotonic() - begun)
        return self._count

    @property
    def last_files(self) -> int:
        """How many files the last batches of the sources read together."""
        return sum(self._last.values())

    def _follow(self) -> None:
        """Take in what the logs have said since the last time."""
        for source in self._sources.glob("*"):
            for log in sorted(source.glob("*"), key=lambda log: _number(log.name)):
                number = _number(log.name)
                if number > self._logs.get(source, -1):
                    self._take(log, number)
                    self._logs[source] = number

    def _take(self, log: Path, number: int) -> None:
        try:
            lines = log.read_text(encoding="utf-8").splitlines()
        except OSError:  # it was just replaced by one that has all of it
            return
        entries = [json.loads(line) for line in lines if line.startswith("{")]
        self._read.update(_path(entry["path"]) for entry in entries if "path" in entry)
        self._last[log.parent] = sum(entry.get("batchId") == number for entry in entries)


def file_streams(streams: Mapping[str, tuple[str, Mapping[str, Any]]]) -> list[dict[str, str]]:
    """The streams over files of this machine, given the format and the options of each.

    >>> file_streams({"sales": ("csv", {"path": "/data/sales", "header": "true"}), "ticks": ("rate", {})})
    [{'stream': 'sales', 'path': '/data/sales', 'only': ''}]
    """
    found = []
    for name, (form, options) in streams.items():
        given = {key.lower(): str(value) for key, value in options.items()}
        path = given.get("path", "")
        if form.lower() in FILE_FORMATS and path and urlparse(path).scheme in ("", "file"):
            here = Path(unquote(urlparse(path).path)).absolute()
            found.append({"stream": name, "path": str(here), "only": given.get("pathglobfilter", "")})
    return found


def _files(stream: Mapping[str, str]) -> Iterator[str]:
    """The files of a stream, without those that Spark ignores."""
    path = Path(stream["path"])
    for base in Path(path.anchor).glob(str(path.relative_to(path.anchor))) if has_magic(stream["path"]) else [path]:
        yield from _below(base, stream["only"])


def _below(place: Path, only: str) -> Iterator[str]:
    try:
        if place.is_dir():
            for one in place.iterdir():
                if not one.name.startswith((".", "_")):
                    yield from _below(one, only)
        elif place.is_file() and (not only or fnmatch(place.name, only)):
            yield str(place)
    except OSError:
        return


def _path(given: str) -> str:
    return unquote(urlparse(given).path)


def _number(name: str) -> int:
    """The number of a log; -1 of other files."""
    number = name.removesuffix(".compact")
    return int(number) if number.isdigit() else -1
