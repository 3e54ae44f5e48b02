"""The console beside a job: a process of its own, whose end the job notices only in its log."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sash.cli.console import ConsoleSettings, console_beside
from sash.cli.job_log import JobLog
from sash.cli.main import app, with_ports
from sash.cli.presence import job_entry
from sash.errors import OptionError


def test_a_console_that_ends_is_a_line_in_the_log_of_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    entry = job_entry("shop.sql", str(tmp_path / "checkpoint"))  # the job is not listed, so its console finds no job
    with console_beside(entry, ConsoleSettings(), JobLog(as_json=False)) as watching:
        watching.join()
    out = capsys.readouterr().out
    assert "the console ended: " in out
    assert f"its errors are in {Path(entry.log).with_name('console.log')}" in out.replace("\n", "")


def test_without_the_extra_the_error_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "nicegui" else found(name))
    (tmp_path / "job.sql").touch()
    for command in (
        ["console", "shop"],
        ["run", str(tmp_path / "job.sql"), "--console", "0"],
        ["demo", "--console", "0"],
    ):
        done = CliRunner().invoke(app, command)
        assert isinstance(done.exception, OptionError), command
        assert "python -m pip install 'sash[console]'" in str(done.exception)


def test_a_console_without_a_port_gets_any_free_one() -> None:
    assert with_ports(["run", "job.sql", "--console", "8800"]) == ["run", "job.sql", "--console", "8800"]
    assert with_ports(["demo", "--console"]) == ["demo", "--console", "0"]
