"""The bounds of previews, with a process without Spark in the place of the one that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sash.console import previews
from sash.console.previews import Preview
from sash.errors import ControlError, SqlSyntaxError

REQUESTS = """
import json, os, sys
def requests():
    for line in sys.stdin: yield json.loads(line)
def reply(found): print(json.dumps(found), flush=True)
"""

Runs = Callable[[str], Preview]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Runs:
    """Previews that a given program runs."""

    def preview(program: str) -> Preview:
        def start() -> subprocess.Popen[str]:
            command = [sys.executable, "-c", REQUESTS + program]
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
            )

        monkeypatch.setattr(Preview, "_start", staticmethod(start))
        found = Preview()
        request.addfinalizer(found.close)
        return found

    return preview


def test_seconds_and_rows_are_capped_and_one_process_runs_all(runs: Runs) -> None:
    preview = runs("for given in requests(): reply({**given, 'process': os.getpid()})")
    usual = preview.run("script", "SELECT 1", 5, 200)
    assert (usual["script"], usual["sql"], usual["seconds"], usual["rows"]) == ("script", "SELECT 1", 5, 200)
    most = preview.run("script", "SELECT 1", 1e9, 10**9)
    assert (most["seconds"], most["rows"]) == (30, 1_000)
    assert most["process"] == usual["process"] != os.getpid()


def test_only_one_runs_at_a_time(runs: Runs, tmp_path: Path) -> None:
    for name in ("begun", "end"):
        os.mkfifo(tmp_path / name)
    preview = runs(f"""
for given in requests():
    open({str(tmp_path / "begun")!r}, "w").close()
    open({str(tmp_path / "end")!r}).close()
    reply(given)
""")
    found: list[str] = []
    first = threading.Thread(target=lambda: found.append(preview.run("", "SELECT 1", 5, 10)["sql"]))
    first.start()
    (tmp_path / "begun").open().close()  # it runs now
    with pytest.raises(ControlError, match="another preview is running"):
        preview.run("", "SELECT 2", 5, 10)
    (tmp_path / "end").open("w").close()
    first.join()
    assert found == ["SELECT 1"]


def test_errors_are_those_of_the_query(runs: Runs) -> None:
    preview = runs("""
for given in requests():
    reply({"error": "no column k", "line": 2, "column": 8} if given["rows"] == 1 else {"error": "no rows"})
""")
    with pytest.raises(SqlSyntaxError, match="no column k") as problem:
        preview.run("", "SELECT\nk", 5, 1)
    assert (problem.value.line, problem.value.column) == (2, 8)
    with pytest.raises(ControlError, match="no rows"):
        preview.run("", "SELECT 1", 5, 2)


def test_a_process_that_does_not_answer_is_ended_and_another_is_started(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    preview = runs("for given in requests(): given['seconds'] > 0 and reply(given)")
    monkeypatch.setattr(previews, "_START_SECONDS", 0.0)
    begun: list[subprocess.Popen[str]] = []
    start = Preview._start
    monkeypatch.setattr(Preview, "_start", staticmethod(lambda: begun.append(start()) or begun[-1]))
    with pytest.raises(ControlError, match="did not answer and was stopped"):
        preview.run("", "SELECT 1", 0, 10)
    assert begun[0].returncode == -9
    monkeypatch.setattr(previews, "_START_SECONDS", 90.0)
    assert preview.run("", "SELECT 1", 5, 10)["sql"] == "SELECT 1"
    assert len(begun) == 2


def test_a_process_that_has_died_is_replaced_and_one_that_is_idle_ends(runs: Runs) -> None:
    preview = runs("for given in requests(): reply(given) if given['rows'] else sys.exit(1)")
    with pytest.raises(ControlError, match="did not answer"):
        preview.run("", "SELECT 1", 5, 0)
    assert preview.run("", "SELECT 1", 5, 10)["rows"] == 10
    process = preview._process
    assert process is not None
    preview._end_idle()
    assert process.returncode == -9
    assert preview.run("", "SELECT 1", 5, 10)["rows"] == 10
