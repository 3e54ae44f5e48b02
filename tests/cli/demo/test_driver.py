from __future__ import annotations

from pathlib import Path

import pytest

from sash.cli.demo.driver import Driver
from sash.cli.demo.job import JOB, JOB_FILE, write_job
from sash.cli.job import check
from sash.errors import SashError
from sash.script.dry_run import DryRunBackend


def test_the_job_is_valid(tmp_path: Path) -> None:
    write_job(tmp_path)
    assert (tmp_path / JOB_FILE).read_text() == JOB
    assert check(JOB, DryRunBackend()) == []


def test_a_driver_that_ends_by_itself_is_an_error_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / JOB_FILE).write_text("CREATE STREAM readings (ts NONSENSE) USING parquet OPTIONS (path 'x');")
    driver = Driver(tmp_path, 1)
    driver._process.wait()
    assert [event["event"] for event in driver.events()] == ["error"]
    assert driver.events() == []
    with pytest.raises(SashError, match=r"ended with exit code 1: .*NONSENSE"):
        driver.check()
    assert driver.kill() == []
