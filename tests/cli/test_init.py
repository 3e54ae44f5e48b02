from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sash.cli.main import app


def test_a_new_job_is_valid_has_data_and_its_tests_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mine"
    made = CliRunner().invoke(app, ["init", str(folder)])
    assert made.exit_code == 0, made.output
    assert "sash run job.sql" in made.output
    monkeypatch.chdir(folder)
    assert CliRunner().invoke(app, ["validate", "job.sql"]).exit_code == 0
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    for command in (
        ["generate.py", "--seconds", "3", "--pause", "0"],
        ["-m", "pytest", "-q", "-p", "no:cacheprovider"],
    ):
        done = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert [len(path.read_text().splitlines()) for path in Path("orders").iterdir()] == [5, 5, 5]


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text("mine")
    made = CliRunner().invoke(app, ["init", str(tmp_path)])
    assert made.exit_code == 1
    assert "has a job.sql already" in str(made.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["job.sql"]


def test_shells_complete_commands_and_names_of_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sash import job_index
    from sash.cli.job_commands import _complete_job

    monkeypatch.setattr(job_index, "known_jobs", lambda: [type("Entry", (), {"name": n}) for n in ("totals", "silent")])
    assert _complete_job("to") == ["totals"]
    environment = {**os.environ, "_SASH_COMPLETE": "complete_bash", "COMP_WORDS": "sash ini", "COMP_CWORD": "1"}
    done = CliRunner().invoke(app, [], env=environment, prog_name="sash")
    assert "init" in done.output.split()
