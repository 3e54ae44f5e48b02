"""Folders that only the user can enter: what Sash keeps of a stream is for nobody else."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def make_private(folder: Path) -> Path:
    """Make a folder, and those above it that are missing, with the mode 0700; folders that exist stay as they are."""
    for missing in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        with suppress(FileExistsError):  # made by another process meanwhile
            missing.mkdir(mode=0o700)
    folder.mkdir(mode=0o700, exist_ok=True)  # an error if it is a file
    return folder
