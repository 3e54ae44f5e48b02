"""The tree of processes below one: found and ended as a whole, with SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_POLL = 0.02
_MAX_SECONDS = 5.0


def descendants(root: int) -> list[int]:
    """The processes below one, without itself."""
    children: dict[int, list[int]] = {}
    for pid, (parent, _) in _processes().items():
        children.setdefault(parent, []).append(pid)
    found, pending = list[int](), [root]
    while pending:
        below = sorted(children.get(pending.pop(), []))
        found += below
        pending += below
    return found


def kill_tree(root: int) -> list[int]:
    """Send SIGKILL to a process and all below it, and return their ids. The processes below have ended on return."""
    killed = [root, *descendants(root)]
    for pid in killed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    _await_end(killed[1:])
    return killed


def _await_end(pids: Iterable[int]) -> None:
    """Wait until processes that are no children of this one have ended; one that only its parent has to reap has ended."""
    until = time.monotonic() + _MAX_SECONDS
    while time.monotonic() < until:
        running = _processes()
        if all(pid not in running or running[pid][1] == "Z" for pid in pids):
            return
        time.sleep(_POLL)


def _processes() -> dict[int, tuple[int, str]]:
    """The parent and the state of every process: from /proc, or from `ps` where there is none."""
    if Path("/proc/self/stat").exists():
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with suppress(OSError):  # it has ended meanwhile
                    state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                    found[int(entry.name)] = int(parent), state
        return found
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,state="], capture_output=True, text=True, check=True)  # noqa: S607
    return {int(pid): (int(parent), state[0]) for pid, parent, state in map(str.split, listed.stdout.splitlines())}
