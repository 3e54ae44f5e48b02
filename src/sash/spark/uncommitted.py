"""State that a batch which has failed left in a checkpoint on a local disk.

Spark writes the state of every shard before it commits a batch, and where files are renamed on a local disk, it does not
replace them when the batch is repeated. A job repeats a failed batch without the queries that failed, so that its state is
another one. So what a failed batch left is removed before the next try.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path

from sash.spark.folders import Folder, local_path


def remove_uncommitted(location: str) -> None:
    """Remove the state of batches that are not committed."""
    checkpoint = local_path(location)
    if checkpoint is None or not (checkpoint / "state").exists():
        return
    commits = (path.name for path in (checkpoint / "commits").glob("*"))
    committed = max((int(name) for name in commits if name.isdigit()), default=-1)
    for path in _after(checkpoint, committed + 1):
        with suppress(FileNotFoundError):
            path.unlink()


def was_computed(checkpoint: Folder, number: int) -> bool:
    """Whether a batch that is not committed may have been computed, so that sinks may have it."""
    local = local_path(checkpoint.location)
    return local is None or any(True for _ in _after(local, number))


def _after(checkpoint: Path, number: int) -> Iterator[Path]:
    """The files of state that this batch or a later one has written: the state after batch n has version n + 1."""
    files = chain(*((checkpoint / "state").rglob(f"*.{kind}") for kind in ("changelog", "zip")))
    return (path for path in files if _version(path) > number)


def forget_batch(checkpoint: Folder, number: int) -> None:
    """Forget a batch of which nothing but its offsets was written: what it would have read, the next one reads."""
    if str(number) not in checkpoint.inside("commits").names():
        log = checkpoint.inside("offsets")
        log.remove(str(number))
        log.remove(f".{number}.crc")


def _version(path: Path) -> int:
    number = path.name.partition(".")[0]
    return int(number) if number.isdigit() else -1
