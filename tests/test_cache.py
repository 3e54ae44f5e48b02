from __future__ import annotations

import os
from pathlib import Path

import pytest

from sash.cache import cache_directory, loops_directory


def test_loops_are_compiled_anew_when_any_source_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    sources = tmp_path / "sources"
    (sources / "kernels").mkdir(parents=True)
    (sources / "kernels" / "a.py").write_text("def a(): return 1")
    first = loops_directory([sources])
    assert loops_directory([sources]) == first
    os.utime(sources / "kernels" / "a.py", (1, 1))
    assert loops_directory([sources]) != first
    for number in range(20):
        os.utime(sources / "kernels" / "a.py", (number, number))
        last = loops_directory([sources])
        os.utime(last, (10**6 + number, 10**6 + number))
    left = sorted(path.name for path in cache_directory("numba").iterdir())
    assert (len(left), last.name in left) == (16, True)


def test_a_cache_of_loops_that_is_in_use_outlives_newer_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for tree in range(20):
        (tmp_path / str(tree)).mkdir()
        (tmp_path / str(tree) / "a.py").write_text("def a(): return 1")
    used = loops_directory([tmp_path / "0"])
    for tree in range(1, 20):
        made = loops_directory([tmp_path / str(tree)])
        os.utime(made, (10**6 + tree, 10**6 + tree))
        os.utime(used, (1, 1))
        assert loops_directory([tmp_path / "0"]) == used
        assert used.stat().st_mtime > made.stat().st_mtime
    assert len(list(cache_directory("numba").iterdir())) == 16
