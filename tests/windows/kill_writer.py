"""Kills a writer, for real, at every one of its file operations in turn, and checks what its successor makes of it.

Run as a program: it forks, so it must not run inside the test process. Prints how many kills it survived.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from sash.windows.manifest import Manifest
from sash.windows.writer import WindowWriter
from tests.windows.feeding import Rows, layout, made_up, table

BATCHES = [(0, 7), (7, 23), (23, 71), (71, 74), (74, 130)]


def batch(number: int) -> tuple[Rows, int]:
    start, stop = BATCHES[number]
    return made_up(1, start, stop, 12), stop


def apply_all(root: Path) -> WindowWriter:
    """What a streaming query does after a restart: every batch that may not have been finished comes again."""
    writer = WindowWriter(root, layout(count=6))
    for number in range(len(BATCHES)):
        rows, clock = batch(number)
        writer.apply(number, table(rows), clock)
    return writer


def contents(root: Path) -> list[tuple[int, int, int, list[object]]]:
    found = []
    for part in Manifest.load(root).live:
        rows = sorted(str(row) for row in part.read(root).to_pylist())
        found.append((part.number, part.start, part.end, list(rows)))
    return found


def die_after(operations: int) -> None:
    """SIGKILL this process before its n-th sync or removal."""
    left = operations
    unlink = Path.unlink

    def count() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    def syncing(handle: int) -> None:
        count()

    def unlinking(path: Path, missing_ok: bool = False) -> None:
        count()
        unlink(path, missing_ok)

    os.fsync = syncing
    Path.unlink = unlinking  # type: ignore[method-assign]


def main(directory: Path) -> None:
    # A killed process's writes are not lost, only a crashed machine's: without waiting for the disk it is all quick.
    os.fsync = lambda _: None
    whole = directory / "whole"
    apply_all(whole).close()
    expected = contents(whole)
    kills = 0
    while True:
        root = directory / f"killed{kills}"
        child = os.fork()
        if child == 0:
            die_after(kills)
            apply_all(root)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        writer = apply_all(root)
        assert contents(root) == expected, kills
        assert {path.name for path in (root / "rows").iterdir()} == set(writer.manifest.files), kills
        assert writer.manifest.batch == len(BATCHES) - 1
        writer.close()
        if not os.WIFSIGNALED(status):
            break
        kills += 1
    sys.stdout.write(f"{kills}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
