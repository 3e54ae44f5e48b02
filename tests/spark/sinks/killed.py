"""Writes batch 1 to a lakehouse table, in a process that kills itself just before or just after the commit."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sash.spark.sinks import delta
from tests.spark.sinks.tables import batch, sink

CHANGES = [("-", 1, "a", 1), ("+", 1, "a", 2)]


def dying(commit: Callable[..., Any], when: str) -> Callable[..., Any]:
    def commit_and_die(*args: Any, **options: Any) -> Any:
        if when == "after":
            commit(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)

    return commit_and_die


def take_away_the_log(log: Path) -> None:
    """Let delta-rs, which commits in native code, write its data and find no place for the commit; then die."""
    commit = delta._Delta._commit

    def commit_nowhere(table: delta._Delta, number: int) -> Any:
        log.rename(log.with_name("taken"))
        log.symlink_to("/proc/self/fdinfo")
        return commit(table, number)

    def restore_and_die(*_: Any) -> None:
        log.unlink()
        log.with_name("taken").rename(log)
        os.kill(os.getpid(), signal.SIGKILL)

    delta._Delta._commit = commit_nowhere  # type: ignore[method-assign]
    sys.excepthook = restore_and_die


def main(kind: str, mode: str, when: str, folder: str) -> None:
    write = sink(kind, Path(folder), mode)
    if kind == "iceberg":
        from pyiceberg.catalog.sql import SqlCatalog

        SqlCatalog.commit_table = dying(SqlCatalog.commit_table, when)  # type: ignore[method-assign]
    else:
        take_away_the_log(Path(folder, "table", "_delta_log"))
    write(batch(CHANGES), 1)


main(*sys.argv[1:])
