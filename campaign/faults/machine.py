"""What faults need of the machine: small file systems that can be full, a clock that can jump, and a PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sash.errors import SashError
from tests.postgres import Server, programs, restartable_server, someone

_CLOCK = Path(__file__).with_name("clock.c")
_FILLER = "filler"


class SmallDisk:
    """A folder with a file system of its own, where that can be mounted; `whole` is whether it could."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
        self.whole = os.geteuid() == 0 and _succeeds(command)

    def fill(self) -> None:
        """Take all of its space."""
        with (self.folder / _FILLER).open("ab", buffering=0) as file, suppress(OSError):
            for size in (2**20, 2**12, 1):
                with suppress(OSError):
                    while True:
                        file.write(b"\1" * size)

    def free(self) -> None:
        """Give the space back."""
        (self.folder / _FILLER).unlink(missing_ok=True)

    def unmount(self) -> None:
        """Take the file system away."""
        if self.whole:
            _succeeds(["umount", "-l", str(self.folder)])


class Clock:
    """The wall clock of processes that have its environment, where a C compiler can be had."""

    def __init__(self, home: Path) -> None:
        self._file, library = home / "clock", home / "clock.so"
        self._file.write_bytes(struct.pack("q", 0))
        compiler = shutil.which("cc")
        made = compiler is not None and _succeeds(
            [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(_CLOCK), "-ldl"]
        )
        self.environment = {"LD_PRELOAD": str(library), "SASH_CAMPAIGN_CLOCK": str(self._file)} if made else {}

    def jump(self, microseconds: int) -> None:
        """Set by how much the clock is ahead of the true time."""
        with self._file.open("r+b") as file:
            file.write(struct.pack("q", microseconds))


@contextmanager
def postgres() -> Iterator[Server]:
    """A server that can be stopped and started."""
    if programs() is None or someone() is None:
        raise SashError("faults need PostgreSQL's programs (initdb, postgres)")
    with restartable_server() as running:
        yield running


@contextmanager
def small_disks(home: Path) -> Iterator[tuple[SmallDisk, SmallDisk]]:
    """The file systems of the checkpoint, and of Spark's local files with the arenas."""
    with ExitStack() as stack:
        made = []
        for name, megabytes in (("checkpoint", 64), ("local", 256)):
            made.append(SmallDisk(home / name, megabytes))
            stack.callback(made[-1].unmount)
        yield made[0], made[1]


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
