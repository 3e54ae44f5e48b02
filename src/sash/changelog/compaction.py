"""Compaction of a changelog: small files become few large ones, and changes past their retention become their net changes.

Readers of the folder never see a change twice or not at all: the folder with the compacted files is made beside the log, with
links to the files that stay, and the two folders are exchanged in one step. A reader that has listed the old folder fails to
open files that are gone; readers of Sash find them where the exchange has put them. The last batch is never compacted, because
Spark may repeat it, and it then replaces its folder.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from sash.changelog.files import (
    NET,
    ROWS,
    SPAN,
    Part,
    batches_in,
    compacted_name,
    net_until,
    open_file,
    parts,
    replaced,
    span,
)  # fmt: skip

_SMALL, _LARGE = 1 << 20, 128 << 20
"""Files below the first size are always compacted with newer ones; no compacted file is to grow past the second."""

Span = tuple[int, int]
"""The first and the last instant of changes."""

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


@dataclass
class Compaction:
    """Compacts the log in a local folder after every `every` batches.

    Files whose changes are all `retain` microseconds older than the newest change are replaced by what `net` makes of them.
    """

    log: Path
    every: int
    retain: int | None
    net: Callable[[pa.Table], pa.Table]
    _since: int = 0

    def wrote(self, number: int) -> None:
        """Compact the log if it is time, after this batch was written."""
        self._since += 1
        if self._since >= self.every:
            self._since = 0
            try:
                self.run(number)
            except OSError as problem:
                # What it could not do stays to be done: the log is right, with more files than it needs.
                logging.getLogger("sash").warning("changelog %s is not compacted: %s", self.log, problem)

    def run(self, before: int) -> None:
        """Compact the batches before this one."""
        found = parts(self.log)
        old = [part for part in found if part.last < before]
        spans = {part: span(self.log, part) for part in old}
        expired = self._expired(old, spans)
        merged = self._newest([part for part in old if part not in expired], spans)
        if not expired and not merged:
            return
        log = self.log.resolve()
        following = log.with_name(f".{log.name}.next")
        shutil.rmtree(following, ignore_errors=True)
        for group in filter(None, (expired, merged)):
            folder = following / f"batch={group[-1].last}"
            folder.mkdir(parents=True)
            self._write(group, folder / compacted_name(group[0].first, group[-1].last), netted=group is expired)
        for part in found:
            if part not in expired and part not in merged:
                folder = following / f"batch={part.last}"
                folder.mkdir()
                for path in part.files:
                    os.link(path, folder / path.name)
        for path in log.iterdir():
            if path.is_file():
                os.link(path, following / path.name)
        shutil.rmtree(replaced(log), ignore_errors=True)
        _exchange(log, following)
        following.rename(replaced(log))

    def _expired(self, old: list[Part], spans: Mapping[Part, Span]) -> list[Part]:
        """The oldest parts whose changes are all past their retention, if their net changes are not known yet."""
        if self.retain is None or not old:
            return []
        horizon = max(last for _, last in spans.values()) - self.retain
        count = next((i for i, part in enumerate(old) if spans[part][1] >= horizon), len(old))
        known = count == 1 and old[0].compacted and net_until(open_file(self.log, old[0].files[0])) is not None
        return [] if known else old[:count]

    def _newest(self, old: list[Part], spans: Mapping[Part, Span]) -> list[Part]:
        """The newest parts, back to the first one that is larger than those after it: so a change is rewritten rarely.

        With a retention, what is merged spans a quarter of it at most, so that it expires as a whole soon enough.
        """
        chosen: list[Part] = []
        size = 0
        for part in reversed(old):
            if part.size > max(_SMALL, size) or size + part.size > _LARGE:
                break
            if self.retain is not None and spans[old[-1]][1] - spans[part][0] > self.retain // 4:
                break
            chosen.append(part)
            size += part.size
        return chosen[::-1] if len(chosen) > 1 else []

    def _write(self, group: list[Part], path: Path, *, netted: bool) -> None:
        """Write the changes of these parts, in order, as one file; `netted`: their net changes."""
        first = open_file(self.log, group[0].files[0])
        net = net_until(first) if group[0].compacted else None
        rows = [row for part in group for row in self._rows(part)]
        tables = self._row_groups(group)
        if netted:
            whole = self.net(pa.concat_tables(tables))
            net, rows, tables = group[-1].last, [(group[-1].last, whole.num_rows)], iter([whole])
        spans = [span(self.log, part) for part in group]
        last = max(last for _, last in spans)
        ends = last if netted else min(first for first, _ in spans), last
        described = {ROWS: json.dumps(rows), NET: json.dumps(net), SPAN: json.dumps(ends)}
        schema = first.schema_arrow
        int96 = any(first.schema.column(i).physical_type == "INT96" for i in range(len(first.schema)))
        with pq.ParquetWriter(
            path, schema, compression="snappy", use_deprecated_int96_timestamps=int96, store_schema=False
        ) as writer:
            for table in tables:
                writer.write_table(table.cast(schema))
            writer.add_key_value_metadata(described)

    def _rows(self, part: Part) -> list[tuple[int, int]]:
        """The batches of a part, with their numbers of rows."""
        files = [open_file(self.log, path) for path in part.files]
        return batches_in(files[0]) if part.compacted else [(part.last, sum(file.metadata.num_rows for file in files))]

    def _row_groups(self, group: list[Part]) -> Iterator[pa.Table]:
        for path in (path for part in group for path in part.files):
            file = open_file(self.log, path)
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)


def _exchange(one: Path, other: Path) -> None:
    """Exchange two folders in one step."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        raise OSError("this system cannot exchange two folders (it has no renameat2)")
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE):
        code = ctypes.get_errno()
        raise OSError(code, f"its folder cannot be exchanged for another: {os.strerror(code)}")
