from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.soak.limited import checked
from bench.soak.measure import SERIES, script, slopes, thinned
from bench.soak.page import hour
from bench.soak.processes import folder_size, held_by_role
from sash.errors import SashError
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


def test_the_page_names_what_grows() -> None:
    slopes = {
        "jvm_mb": {"mean": 500.0, "least": 480.0, "most": 520.0, "per_hour": 40.0},
        "driver_files": {"mean": 50.0, "least": 40.0, "most": 60.0, "per_hour": 20.0},
    }
    figures = {"seconds": 3600, "rows_per_s": 10, "trigger_s": 2, "rows": 36_000, "batches": 1_800, "load": 0.5}
    text = hour({**figures, "stop_seconds": 3.0, "exit_code": 0, "slopes": slopes})
    assert "| JVM, memory, MB | 500.0 | 480.0 | 520.0 | +40.0 |" in text
    assert "of their mean per hour: driver, open files (+40% per hour).\n" in text


def write_changes(folder: Path, *changes: tuple[str, int, int]) -> None:
    folder.mkdir(parents=True)
    columns = dict(zip(("_op", "k", "n"), map(list, zip(*changes, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "part.parquet")


def test_a_group_that_lacks_rows_or_is_told_twice_is_seen(tmp_path: Path) -> None:
    write_changes(tmp_path / "batch=0", ("+", 0, 10), ("+", 1, 4))
    write_changes(tmp_path / "batch=1", ("-", 1, 4), ("+", 1, 10), ("+", 2, 3))
    assert checked(tmp_path) == (23, 3)
    write_changes(tmp_path / "batch=2", ("+", 4, 1))
    with pytest.raises(SashError, match="group 2 has 3 rows instead of 10"):
        checked(tmp_path)
    write_changes(tmp_path / "batch=3", ("+", 1, 10))
    with pytest.raises(SashError, match="told twice"):
        checked(tmp_path)
