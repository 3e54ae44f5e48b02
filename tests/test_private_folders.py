from __future__ import annotations

import stat
from pathlib import Path

import pytest

from sash.private_folders import make_private


def modes(*folders: Path) -> list[int]:
    return [stat.S_IMODE(folder.stat().st_mode) for folder in folders]


def test_new_folders_are_private_and_old_ones_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir(mode=0o755)
    (tmp_path / "old").chmod(0o755)
    inner = make_private(tmp_path / "old" / "new" / "inner")
    assert modes(tmp_path / "old", inner.parent, inner) == [0o755, 0o700, 0o700]
    assert make_private(inner) == inner


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        make_private(tmp_path / "file")
