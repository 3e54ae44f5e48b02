from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.soak.measure import SERIES, script, slopes, thinned
from bench.soak.processes import folder_size, held_by_role
from sash.script.dry_run import DryRunBackend
from sash.script.reader import read_script
from sash.script.session import Session


def test_the_job_is_one_that_sash_runs() -> None:
    backend = DryRunBackend()
    session = Session(backend)
    for statement in read_script(script(100)):
        session.execute(statement)
    assert len(backend.checked) == 5


def test_a_slope_is_of_the_samples_after_the_warm_up() -> None:
    samples = [{"seconds": 10.0 * n, "jvm_mb": 500.0 if n < 60 else 100.0 + n / 36} for n in range(361)]
    found = slopes(samples, 600)
    assert found.keys() == {"jvm_mb"}
    assert found["jvm_mb"]["per_hour"] == pytest.approx(10, abs=0.01)
    assert found["jvm_mb"]["most"] == pytest.approx(110)


def test_samples_with_the_size_of_the_heap_are_kept() -> None:
    samples = [{"seconds": float(n), **({"heap_mb": 7.0} if n % 50 == 1 else {})} for n in range(200)]
    kept = thinned(samples, most=10)
    assert [one["seconds"] for one in kept if "heap_mb" in one] == [1, 51, 101, 151]
    assert len(kept) == 14


def test_what_this_process_holds(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 100_000)
    held = held_by_role(os.getpid(), tmp_path)
    assert held["driver"].processes == 1
    assert held["driver"].memory > 1_000_000
    assert held["driver"].files > 0
    assert sum(one.mapped for one in held.values()) == 0
    size, files = folder_size(tmp_path)
    assert files == 1
    assert size >= 100_000
    assert set(SERIES) >= {"driver_mb", "jvm_mb", "workers_mb"}
