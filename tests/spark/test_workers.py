"""Workers have Sash loaded, and collect the garbage of tasks, but not what is loaded."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

import sash.spark.session
from tests.cli.command import sash as run_sash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SCRIPT = """
import gc
from sash.spark.workers import freeze_loaded_objects

frozen = []
for task in range(6):
    freeze_loaded_objects()
    frozen.append(gc.get_freeze_count())
    left = [[] for _ in range(100)]
    for one in left:
        one.append(left)
    del left, one
    collected = gc.collect()
assert collected >= 100, collected
print(*frozen)
"""


def test_only_the_first_tasks_freeze_objects() -> None:
    ran = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, timeout=600)
    first, *others = map(int, ran.stdout.split())
    assert first > 1_000
    assert others[-1] == others[-2] == others[-3]
    assert others[-1] < first + 100


def test_the_process_that_declares_state_loads_little() -> None:
    script = "import sys, sash.spark.packed_processor\nprint(*(name for name in sys.modules))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    names = ran.stdout.split()
    assert not {"numba", "pandas", "pyarrow", "sqlglot", "sash.physical.nodes"}.intersection(names)


@pytest.mark.spark
def test_workers_are_forked_with_sash_loaded(spark: SparkSession) -> None:
    def was_loaded(_: int) -> bool:
        import sys

        return "sash.spark.stage" in sys.modules

    assert spark.sparkContext.parallelize([0, 1], 2).map(was_loaded).collect() == [True, True]


@pytest.mark.spark
def test_workers_import_the_installed_pyspark_which_is_compiled(spark: SparkSession) -> None:
    def origin(_: int) -> str | None:
        import pyspark

        return pyspark.__file__

    assert spark.sparkContext.parallelize([0], 1).map(origin).collect() == [pyspark.__file__]


def test_a_sitecustomize_of_the_user_is_imported_too(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    ours = Path(sash.spark.session.__file__).parent / "worker_site"
    script = "import sys; print(sys.modules['sitecustomize'].__file__, sys.path[1])"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"pyspark.zip:{ours}:{tmp_path}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.splitlines() == ["mine", f"{tmp_path / 'sitecustomize.py'} {tmp_path}"]
    alone = subprocess.run(
        [sys.executable, "-S", "-c", "import site; site.main(); print('started')"],
        env={**os.environ, "PYTHONPATH": str(ours)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (alone.stdout, alone.stderr) == ("started\n", "")


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are listed in /proc")
def test_a_job_with_errors_leaves_no_java_behind(tmp_path: Path) -> None:
    job = tmp_path / "job.sql"
    job.write_text("CREATE QUERY q AS SELECT 1 FROM nothing INTO console")
    ran = run_sash("run", str(job), "--conf", f"spark.sash.test={tmp_path}")
    assert ran.returncode == 1
    assert "nothing" in ran.stderr
    deadline = threading.Event()
    while any(str(tmp_path) in line for line in _command_lines()):
        deadline.wait(0.1)  # the test's own limit ends a Java that stays


def _command_lines() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield path.read_text(errors="replace")
