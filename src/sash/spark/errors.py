"""Errors that come out of Spark, turned into Sash's own: one line with the cause; the full trace is in the log."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

import sash.errors
from sash.errors import QueryFailedError, SashError
from sash.spark.causes import java_causes, one_line, reason_of
from sash.spark.log import spark_log

SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
"""What calls of PySpark raise; ConnectionError if the JVM has ended."""

_ENDING = 5.0
"""Seconds that a JVM may take to end after it has closed its connections."""

_OUT_OF_MEMORY = 52
"""The exit code with which Spark ends its JVM when it is out of memory."""

_NO_HEARTBEATS = 56
"""The exit code with which an executor, which may be in the driver's JVM, ends when the driver does not take its heartbeats."""

_SIGNALS = 128
"""Exit codes of shells above this stand for signals."""

_RAISED = re.compile(r"sash\.errors\.(\w+): (.*)")


@contextmanager
def sash_errors() -> Iterator[None]:
    """Raise errors of Spark as Sash's: those that Sash raised in a worker as they were, others as `QueryFailedError`."""
    try:
        yield
    except SPARK_ERRORS as problem:
        raise to_sash_error(problem) from None


def to_sash_error(problem: BaseException) -> SashError:
    """Return the error that Sash raised, in a worker or here, or one with the reason of the innermost cause.

    The full trace goes to the log, whose path the error has.
    """
    if isinstance(problem, SashError) and problem.log is not None:
        return problem
    error = _translated(problem)
    error.logged_in(spark_log().record(problem))
    return error


def _translated(problem: BaseException) -> SashError:
    if isinstance(problem, SashError):
        return problem
    if ended := _jvm_ended(problem):
        return QueryFailedError(ended)
    texts = error_texts(problem)
    for text in reversed(texts):
        for name, message in reversed(_RAISED.findall(text)):
            kind = getattr(sash.errors, name, None)
            if isinstance(kind, type) and issubclass(kind, SashError):
                return kind(message.strip())
    return QueryFailedError(reason_of(texts) or type(problem).__name__)


def error_texts(problem: BaseException) -> list[str]:
    """The texts of the error and of its causes, the innermost last."""
    if causes := java_causes(problem):
        return [message if kind.startswith("org.apache.spark.") else f"{kind}: {message}" for kind, message in causes]
    if isinstance(problem, PySparkException | Py4JJavaError):
        return [str(problem)]
    return [f"{type(problem).__name__}: {problem}"]


def _jvm_ended(problem: BaseException) -> str | None:
    """What to report if the JVM has ended, which every call of PySpark then fails by; None if it runs."""
    from pyspark import SparkContext

    if not isinstance(problem, Py4JError | ConnectionError) or isinstance(problem, Py4JJavaError):
        return None
    process = getattr(SparkContext._gateway, "proc", None)  # noqa: SLF001  (PySpark has no other access to the process)
    try:
        code = None if process is None else process.wait(_ENDING)
    except subprocess.TimeoutExpired:
        code = None
    if code is None:
        return None
    if code == _OUT_OF_MEMORY or "OutOfMemoryError" in spark_log().read():
        return reason_of(["java.lang.OutOfMemoryError"])
    if code == _NO_HEARTBEATS:
        return (
            "Spark has ended because its driver was not reached for ten minutes, as after a pause of the machine: start again, "
            "and the query resumes from its checkpoint"
        )
    fate = "was killed" if code < 0 or code > _SIGNALS else f"ended with exit code {code}"
    return (
        f"Spark's Java process {fate}, possibly because the machine ran out of memory: start again, and the query resumes from "
        "its checkpoint; if it is killed again, give the machine more memory or set --conf spark.driver.memory lower"
    )


__all__ = ["SPARK_ERRORS", "error_texts", "one_line", "sash_errors", "to_sash_error"]
