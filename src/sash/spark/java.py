"""Why Spark cannot be started: Java is missing, too old or misconfigured, or the cluster cannot be reached."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sash.errors import JavaError
from sash.spark.errors import SPARK_ERRORS, to_sash_error
from sash.spark.log import spark_log

_NEEDED = 17
_INSTALL = (
    f"install Java {_NEEDED} or newer (Debian: apt-get install openjdk-{_NEEDED}-jre-headless) and set JAVA_HOME to it"
)
_REPORTED = re.compile(
    r"^(?:Error: |Exception in thread \S+ |Caused by: )?([\w.$]*(?:Exception|Error)\b.*|Invalid .*)$", re.MULTILINE
)


@contextmanager
def java_errors() -> Iterator[None]:
    """Raise what Spark raises while it starts as a JavaError with the reason."""
    try:
        yield
    except SPARK_ERRORS as problem:
        if "JAVA_GATEWAY_EXITED" in str(problem):
            error = JavaError(_why_java_ended(spark_log().read()))
        else:
            error = JavaError(f"Spark cannot be started: {to_sash_error(problem)}")
        error.logged_in(spark_log().record(problem))
        raise error from None


def check_spark_home() -> None:
    """Refuse to start a Spark, named by SPARK_HOME, that is not of PySpark's version."""
    home = os.environ.get("SPARK_HOME")
    found = next(Path(home).glob("jars/spark-core_*.jar"), None) if home else None
    if found is not None:
        check_version(found.stem.rpartition("-")[2], f"the Spark in SPARK_HOME ({home})")


def check_version(found: str, what: str = "Spark") -> None:
    """Refuse a Spark whose version differs from that of the Python package pyspark, up to the last number."""
    import pyspark

    if found.split(".")[:2] != pyspark.__version__.split(".")[:2]:
        raise JavaError(
            f"{what} has version {found}, but the Python package pyspark has {pyspark.__version__}: use one version (unset "
            "SPARK_HOME to use the Spark that comes with pyspark, or upgrade the cluster)"
        )


def java_program() -> str | None:
    """The path of the Java that Spark runs, which need not exist if JAVA_HOME names it; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin" / "java") if home else shutil.which("java")


def _why_java_ended(output: str) -> str:
    home, java = os.environ.get("JAVA_HOME"), java_program()
    if java is None:
        return f"Spark needs Java, and there is none: {_INSTALL}"
    if home and not os.access(java, os.X_OK):
        return f"JAVA_HOME is {home}, but there is no program {java}: {_INSTALL}"
    version = _version(java)
    if version is not None and version < _NEEDED:
        return f"Spark needs Java {_NEEDED} or newer, but {java} is Java {version}: {_INSTALL}"
    reported = _REPORTED.search(output)
    return f"Java ended while Spark started: {reported[1] if reported else 'its log has the reason'}"


def _version(java: str) -> int | None:
    """The major version of a Java program; None if it does not run."""
    try:
        done = subprocess.run(  # noqa: S603  (the program that Spark runs)
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else None
