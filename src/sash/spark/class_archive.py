"""The archive of Java classes (class data sharing) with which Spark starts in half the time.

`sash prepare` makes it: a Java process writes the classes that it has loaded when it ends. An archive fits one Java and one
Spark; Java itself checks that, and loads classes from Spark's jars if the archive does not fit.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pyspark

from sash.cache import cache_directory
from sash.spark.java import java_program

_QUIET = "-Xshare:auto -Xlog:disable -Xlog:all=error:stderr"
"""Use an archive if it fits, and do not warn if it does not."""


def archive_path() -> Path | None:
    """Where the archive for this Java and this Spark is, or would be; None without Java."""
    java = java_program()
    if java is None or not os.access(java, os.X_OK):
        return None
    program = Path(java).resolve()
    parts = (str(program), str(program.stat().st_mtime_ns), pyspark.__version__, str(Path(pyspark.__file__).parent))
    key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
    return cache_directory("java") / f"{key}.jsa"


def java_options(path: Path | None, *, writing: bool = False) -> str:
    """The options with which Java uses the archive, if it exists, or writes it when it ends."""
    if path is None or not (writing or path.exists()):
        return ""
    return f"{_QUIET} -XX:{'ArchiveClassesAtExit' if writing else 'SharedArchiveFile'}={path}"
