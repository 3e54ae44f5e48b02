from __future__ import annotations

import os
from pathlib import Path

import pytest

from sash.errors import JavaError
from sash.spark.java import check_spark_home, check_version
from tests.cli.command import ROOT, python

START = "from sash.cli.main import run; import sys; sys.argv = ['sash', 'sql', '-c', 'SHOW STREAMS']; run()"


def start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **environment: str) -> str:
    """What a start that fails prints: two lines, the reason and where the trace is."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    done = python("-c", START)
    assert done.returncode == 1
    reason, trace = done.stderr.splitlines()
    (log,) = tmp_path.glob("sash-log-*/spark.log")
    assert trace == f"The full trace is in {log}"
    assert "JAVA_GATEWAY_EXITED" in log.read_text()
    return reason


def old_java(folder: Path) -> Path:
    """A Java that is too old: it prints its version, and refuses to run classes."""
    program = folder / "old" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        '#!/bin/sh\n[ "$1" = -version ] && { echo \'openjdk version "11.0.2" 2019-01-15\' >&2; exit 0; }\n'
        "echo 'Error: UnsupportedClassVersionError' >&2; exit 1\n"
    )
    program.chmod(0o755)
    return folder / "old"


def test_a_wrong_java_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reason = start(monkeypatch, tmp_path, JAVA_HOME="/nowhere")
    assert reason.startswith("error: JAVA_HOME is /nowhere, but there is no program /nowhere/bin/java: install Java 17")


def test_a_java_that_is_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    home = old_java(tmp_path)
    reason = start(monkeypatch, tmp_path, JAVA_HOME=str(home))
    assert reason.startswith(f"error: Spark needs Java 17 or newer, but {home}/bin/java is Java 11: install")


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for program in ("bash", "dirname", "ps", "env", "cat"):
        found = next((p for p in (Path("/usr/bin", program), Path("/bin", program)) if p.exists()), None)
        if found is not None:
            (bin_ / program).symlink_to(found)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    reason = start(monkeypatch, tmp_path, PATH=str(bin_))
    assert reason.startswith("error: Spark needs Java, and there is none: install Java 17 or newer")


def test_another_version_of_spark_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import pyspark

    check_version(pyspark.__version__)
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-core_2.13-3.5.1.jar").touch()
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    with pytest.raises(JavaError, match=r"SPARK_HOME \(.*\) has version 3\.5\.1, but the Python package pyspark has 4"):
        check_spark_home()


def test_the_log_ends_with_a_process_that_has_not_failed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = python("-c", "from sash.spark.log import spark_log; import os; os.close(spark_log().open())")
    assert made.returncode == 0
    assert not list(tmp_path.glob("sash-log-*"))
    kept = python("-c", "from sash.spark.log import spark_log; print(spark_log().record(ValueError('no')))")
    assert "ValueError: no" in Path(kept.stdout.strip()).read_text()
    assert str(ROOT) not in os.environ.get("SASH_LOG", "")
