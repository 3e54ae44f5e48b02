"""Summaries on disk: beside the rows of their sub-window, made by whoever needs one first, for all, in this process and others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from sash.window_store.files import read_table, write_table
from sash.window_store.manifest import Slice
from sash.window_store.summary import Summary


def load(root: Path, part: Slice, summary: Summary) -> pa.Table | None:
    """The summary of these rows, if somebody has made it."""
    try:
        return read_table(_place(root, part, summary))
    except FileNotFoundError:
        return None


def exists(root: Path, part: Slice, summary: Summary) -> bool:
    """Whether somebody has made it."""
    return _place(root, part, summary).exists()


def save(root: Path, part: Slice, summary: Summary, table: pa.Table) -> None:
    """Keep the summary for as long as the rows; two who make it at the same time write the same."""
    place = _place(root, part, summary)
    place.parent.mkdir(parents=True, exist_ok=True)
    write_table(place, table)


def _place(root: Path, part: Slice, summary: Summary) -> Path:
    return part.summaries(root) / f"{summary.identity}-{part.first}-{part.count}.arrow"
