"""Kills a writer with SIGKILL at each of its file operations in turn, and checks the store after a restart.

Run as a program: it forks, so it must not run inside the test process. Prints the number of kills. Keeps the window of a
stream or, with the argument "result", the result of a query.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pyarrow as pa

from sash.plan.types import BIGINT, STRING, Field
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.manifest import Manifest
from sash.window_store.store.tables import net_changes
from sash.window_store.store.writer import WindowWriter
from tests.window_store.feeding import layout, made_up, table

BATCHES = [(0, 7), (7, 23), (23, 71), (71, 74), (74, 130)]
KEPT = sys.argv[2] if len(sys.argv) > 2 else "stream"
ANSWER = StoreLayout("r", (Field("k", STRING), Field("n", BIGINT)), "", "result", 10, 4, ends=True)


def batch(number: int) -> pa.Table:
    start, stop = BATCHES[number]
    if KEPT == "stream":
        return table(made_up(1, start, stop, 12))
    lives = [(ts, ts + 3 + ts * 7 % 90, f"k{ts % 5}", ts % 3) for ts in range(0, BATCHES[-1][1], 2)]
    changes = [(ts, sign, end, k, n) for born, end, k, n in lives for ts, sign in ((born, 1), (end, -1))]
    rows = zip(*sorted(change for change in changes if start <= change[0] < stop), strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(rows, ANSWER.arrow, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ANSWER.arrow)


def apply_all(root: Path) -> WindowWriter:
    """Apply all batches, as a streaming query does after a restart: batches that may be unfinished are repeated."""
    writer = WindowWriter(root, layout(count=6) if KEPT == "stream" else ANSWER)
    for number, (_, clock) in enumerate(BATCHES):
        writer.apply(number, batch(number), clock)
    return writer


def contents(root: Path) -> list[tuple[int, int, int, list[str]]]:
    """The net rows of every sub-window."""
    manifest, found = Manifest.load(root), []
    for part in manifest.live:
        slices = [rows.read(root) for rows in manifest.slices(part.number, manifest.updates)]
        rows = slices[0] if KEPT == "stream" else net_changes(slices)
        found.append((part.number, part.start, part.end, sorted(str(row) for row in rows.to_pylist())))
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
