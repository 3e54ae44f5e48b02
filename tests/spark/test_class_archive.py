"""The archive of Java classes is used if it is there, and never in the way."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from sash.spark.class_archive import archive_path, java_options

JAVA = shutil.which("java", path=f"{os.environ.get('JAVA_HOME', '')}/bin:{os.environ.get('PATH', '')}")


def test_an_archive_that_is_not_there_needs_no_options(tmp_path: Path) -> None:
    assert java_options(None) == ""
    assert java_options(tmp_path / "classes.jsa") == ""
    assert "ArchiveClassesAtExit" in java_options(tmp_path / "classes.jsa", writing=True)
    (tmp_path / "classes.jsa").touch()
    assert f"SharedArchiveFile={tmp_path / 'classes.jsa'}" in java_options(tmp_path / "classes.jsa")


def test_every_java_has_its_own_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = []
    for name in ("one", "other"):
        program = tmp_path / name / "bin" / "java"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / name))
        paths.append(archive_path())
    assert len({*paths}) == 2
    assert all(path is not None and path.is_relative_to(tmp_path / "cache") for path in paths)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "none"))
    assert archive_path() is None


@pytest.mark.skipif(JAVA is None, reason="there is no Java")
def test_java_starts_in_silence_with_an_archive_that_does_not_fit(tmp_path: Path) -> None:
    archive = tmp_path / "classes.jsa"
    archive.write_bytes(b"something else" * 1000)
    assert JAVA is not None
    ran = subprocess.run(
        [JAVA, *java_options(archive).split(), "-version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == ""
    assert "archive" not in ran.stderr.lower()
    assert "warn" not in ran.stderr.lower()
