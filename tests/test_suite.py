"""The suite itself: it passes on a busy machine, and `make test` runs all of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
CLOCKS = re.compile(r"\btime\.(time|monotonic|perf_counter|sleep)\b|deadline=|suppress_health_check|datetime\.now")


def test_random_tests_have_no_deadline_and_the_same_examples_in_every_run() -> None:
    assert settings().deadline is None
    assert settings().derandomize


def test_no_test_sleeps_reads_the_clock_or_has_settings_of_its_own() -> None:
    files = (path for path in ROOT.joinpath("tests").rglob("*.py") if path.name not in ("conftest.py", "test_suite.py"))
    assert [str(path.relative_to(ROOT)) for path in files if CLOCKS.search(path.read_text())] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("failing", ["", "not spark", "spark"])
def test_make_test_runs_both_halves_and_fails_if_one_does(tmp_path: Path, failing: str) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\necho "$4" >> "{tmp_path}/ran"\n[ "$4" != "{failing}" ]\n')
    python.chmod(0o755)
    for stamp in (".installed", ".tools", ".prepared", ".kafka"):
        (tmp_path / stamp).touch()
    environment = {**os.environ, "MAKEFLAGS": ""}
    ran = subprocess.run(
        ["make", "test", f"VENV={tmp_path}"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (tmp_path / "ran").read_text() == "not spark\nspark\n", ran.stderr
    assert (ran.returncode != 0) == bool(failing)
