from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sash.console import browser_session
from sash.console.browser_session import session_secret


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(browser_session, "runtime_folder", lambda: tmp_path)
    return tmp_path


def test_a_console_that_starts_again_has_the_same_secret_and_any_other_has_another(folder: Path) -> None:
    first = session_secret(8080, ["/a", "/b"], allow_changes=False)
    assert session_secret(8080, ["/b", "/a"], allow_changes=False) == first
    others = {
        session_secret(8081, ["/a", "/b"], allow_changes=False),
        session_secret(8080, ["/a"], allow_changes=False),
        session_secret(8080, ["/a", "/b"], allow_changes=True),
    }
    assert len(others) == 3
    assert first not in others
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}


def test_a_secret_that_is_old_or_damaged_is_replaced(folder: Path) -> None:
    first = session_secret(8080, ["/a"], allow_changes=False)
    (file,) = folder.iterdir()
    os.utime(file, (0, 0))
    second = session_secret(8080, ["/a"], allow_changes=False)
    assert second != first
    file.write_text("")
    assert session_secret(8080, ["/a"], allow_changes=False) not in {first, second, ""}
