"""What the processes of a job hold: memory, open files and mapped files, by role, and the sizes of its folders."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

MEGABYTE = 1_000_000
DRIVER, JVM, WORKERS = "driver", "jvm", "workers"


@dataclass(frozen=True)
class Held:
    """What the processes of a role hold together: how many there are, private memory in bytes, open and mapped files."""

    processes: int
    memory: int
    files: int
    mapped: int


def held_by_role(root: int, mapped_below: Path) -> dict[str, Held]:
    """What the driver, the JVM and the Python workers of the job with this process hold.

    Memory is what a process shares with no other: pages of the files that workers map are counted for none of them.
    `mapped` counts the mappings of files below a folder.
    """
    found: dict[str, list[tuple[int, int, int]]] = {DRIVER: [], JVM: [], WORKERS: []}
    for role, process in _processes(root):
        try:
            memory = int(process.memory_full_info().uss)
            maps = Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8", errors="replace")
            mapped = sum(str(mapped_below) in line for line in maps.splitlines())
            found[role].append((memory, process.num_fds(), mapped))
        except (psutil.Error, OSError):  # it has just ended
            continue
    return {
        role: Held(len(parts), *(sum(part[index] for part in parts) for index in range(3)))
        for role, parts in found.items()
    }


def _processes(root: int) -> Iterator[tuple[str, psutil.Process]]:
    own = psutil.Process(root)
    yield DRIVER, own
    for process in own.children(recursive=True):
        try:
            yield JVM if process.name() == "java" else WORKERS, process
        except psutil.Error:
            continue


def java_process(root: int) -> int | None:
    """The process of the job's JVM."""
    return next((process.pid for role, process in _processes(root) if role == JVM), None)


def heap_after_collection(java: int) -> float | None:
    """The bytes that the JVM's heap holds after a full collection, which this asks for; None without the JDK's tools."""
    tools = Path(f"/proc/{java}/exe").resolve().parent
    if not (tools / "jcmd").exists():
        return None
    subprocess.run([tools / "jcmd", str(java), "GC.run"], capture_output=True, check=False)  # noqa: S603  (the JDK's)
    printed = subprocess.run([tools / "jstat", "-gc", str(java)], capture_output=True, text=True, check=False)  # noqa: S603
    lines = printed.stdout.splitlines()
    if len(lines) != 2:
        return None
    figures = dict(zip(lines[0].split(), lines[1].split(), strict=False))
    return 1024 * sum(float(figures[part]) for part in ("S0U", "S1U", "EU", "OU"))


def folder_size(folder: Path) -> tuple[int, int]:
    """The bytes that the files below a folder take on the disk, and how many files there are."""
    size = files = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                size += 512 * os.lstat(Path(path) / name).st_blocks
            except OSError:  # deleted meanwhile
                continue
            files += 1
    return size, files
