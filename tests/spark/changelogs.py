"""Reads changelogs back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def logged(log: Path) -> list[dict[str, Any]]:
    """The changes in a changelog, with the numbers of their batches."""
    return [
        {"batch": int(path.parent.name.partition("=")[2]), **row}
        for path in log.glob("batch=*/*.parquet")
        for row in pq.ParquetFile(path).read().to_pylist()
    ]


def changes(log: Path) -> Counter[tuple[Any, ...]]:
    """The changes: operation, time and row."""
    return Counter(tuple(row.values())[1:] for row in logged(log))


def answer(log: Path, batch: int | None = None) -> Counter[tuple[Any, ...]]:
    """The answer after a batch, or after the last one."""
    found: Counter[tuple[Any, ...]] = Counter()
    for row in logged(log):
        if batch is None or row["batch"] <= batch:
            found[tuple(row.values())[3:]] += 1 if row["_op"] == "+" else -1
    assert all(count >= 0 for count in found.values())
    return +found
