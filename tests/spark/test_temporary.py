from __future__ import annotations

import signal
import tempfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sash.spark.temporary import TemporaryFolder, remove_abandoned
from tests.cli.command import python
from tests.spark.files import SQL, file_engine, made_up_rows, write_batch
from tests.spark.test_checkpoint_lock import other_process

HOLDING = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from sash.spark.temporary import TemporaryFolder
folder = TemporaryFolder("checkpoint")
(folder.path / "offsets").mkdir()
print(folder.path, flush=True)
"""


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_folder_ends_with_its_process(base: Path) -> None:
    made = python("-c", HOLDING, str(base))
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith(str(base / "sash-checkpoint-"))
    assert list(base.iterdir()) == []


def test_the_folder_of_a_killed_process_is_removed_by_the_next(base: Path) -> None:
    mine, foreign = TemporaryFolder("window"), base / "sash-checkpoint-of-another-kind"
    foreign.mkdir()
    with other_process(HOLDING + "sys.stdin.read()", str(base)) as owner:
        (theirs,) = base.glob("sash-checkpoint-????????????")
        assert remove_abandoned() == []
        assert theirs.exists()
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        assert remove_abandoned() == [theirs]
        assert not theirs.exists()
    assert mine.path.exists()
    assert foreign.exists()
    mine.remove()
    mine.remove()
    assert list(base.iterdir()) == [foreign]


@pytest.mark.spark
def test_the_checkpoint_of_a_query_without_one_is_temporary(spark: SparkSession, base: Path) -> None:
    write_batch(base / "in", 0, made_up_rows(1))
    running = file_engine(spark, base / "in").sql(SQL).start("noop", trigger="available_now")
    running.await_termination()
    (place,) = base.glob("sash-checkpoint-*")
    assert (place / "offsets").is_dir()
    running.stop()
    assert not place.exists()
