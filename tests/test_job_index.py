from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sash.errors import ControlError
from sash.file_lock import FileLock, LockHeldError, lock_holder
from sash.job_index import JobEntry, find_job, known_jobs, lock_path, run_folder, runtime_folder, socket_path


@pytest.fixture(autouse=True)
def _runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sash-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


def entry(checkpoint: Path, name: str = "job.sql") -> JobEntry:
    local = checkpoint
    local.mkdir(exist_ok=True)
    return JobEntry(
        name,
        os.getpid(),
        str(local),
        "2026-01-01 00:00:00 UTC",
        str(socket_path(str(local), local)),
        str(lock_path(str(local), local)),
        str(run_folder(str(local), local) / "job.log"),
    )


def test_a_lock_is_held_by_one_and_tells_who_that_is(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert lock_holder(path) is None
    lock = FileLock(path, "the first")
    assert lock_holder(path) == "the first"
    with pytest.raises(LockHeldError, match="the first"):
        FileLock(path, "the second")
    lock.release()
    lock.release()
    assert lock_holder(path) is None
    FileLock(path, "the second").release()


def test_a_job_is_running_as_long_as_its_lock_is_held(tmp_path: Path) -> None:
    job = entry(tmp_path / "a")
    lock = FileLock(Path(job.lock), "it")
    job.list()
    assert [(one, one.state) for one in known_jobs()] == [(job, "running")]
    lock.release()
    assert [one.state for one in known_jobs()] == ["crashed"], "it ended without removing its entry"
    replace(job, error="a division by zero").list()
    assert [(one.state, one.error) for one in known_jobs()] == [("failed", "a division by zero")]
    job.unlist()
    assert known_jobs() == []


def test_a_process_that_is_killed_has_crashed_although_its_number_lives_on(tmp_path: Path) -> None:
    job = entry(tmp_path / "a")
    code = """
import json, sys
from pathlib import Path
from sash.file_lock import FileLock
from sash.job_index import JobEntry
job = JobEntry(**json.loads(sys.argv[1]))
lock = FileLock(Path(job.lock), "it")
job.list()
print("listed", flush=True)
sys.stdin.read()
"""
    given = json.dumps({**job.__dict__, "pid": os.getpid()})
    with subprocess.Popen(
        [sys.executable, "-c", code, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listed\n"
        assert find_job("job").state == "running"
        process.send_signal(signal.SIGKILL)
    assert find_job("job").state == "crashed"


def test_entries_of_checkpoints_that_are_gone_are_removed(tmp_path: Path) -> None:
    job = entry(tmp_path / "a")
    job.list()
    (runtime_folder() / "half.json").write_text('{"name": ')
    assert known_jobs() == [], "it has no lock file"
    assert [file.name for file in runtime_folder().glob("*.json")] == ["half.json"]


def test_a_job_is_found_by_name_file_or_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = entry(tmp_path / "one.checkpoint", "one.sql"), entry(tmp_path / "two", "two.sql")
    for job in (first, second):
        FileLock(Path(job.lock), "it").release()
        job.list()
    assert find_job("one") == find_job("one.sql") == find_job("./one.sql") == find_job("one.checkpoint") == first
    assert find_job(str(tmp_path / "two")) == second
    with pytest.raises(
        ControlError, match=r"there is no job three of yours on this machine; there are one\.sql, two\.sql"
    ):
        find_job("three")


def test_of_several_jobs_of_one_name_the_running_one_is_meant(tmp_path: Path) -> None:
    jobs = [entry(tmp_path / name) for name in "ab"]
    for job in jobs:
        FileLock(Path(job.lock), "it").release()
        job.list()
    with pytest.raises(ControlError, match=r"2 jobs are called job: name a checkpoint, one of .*/a, .*/b"):
        find_job("job")
    lock = FileLock(Path(jobs[1].lock), "it")
    assert find_job("job") == jobs[1]
    lock.release()
