"""Errors that come out of Spark, turned into Sash's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.errors import PySparkException

import sash.errors
from sash.errors import QueryFailedError, SashError

_EXCEPTION = re.compile(r"[\w.]*(Error|Exception)\b.*: ")
_RAISED = re.compile(r"sash\.errors\.(\w+): (.*)")


@contextmanager
def sash_errors() -> Iterator[None]:
    """Raise errors of Spark as Sash's: those that Sash raised in a worker as they were, others as `QueryFailedError`."""
    try:
        yield
    except PySparkException as problem:
        raise to_sash_error(problem) from problem


def to_sash_error(problem: PySparkException) -> SashError:
    """Return the error that Sash raised in a worker, or else one with the message of the innermost cause."""
    found = _RAISED.search(str(problem))
    kind = getattr(sash.errors, found[1], None) if found else None
    if found and isinstance(kind, type) and issubclass(kind, SashError):
        return kind(found[2].strip())
    return QueryFailedError(_reason(problem))


def _reason(problem: BaseException) -> str:
    """The message of the innermost cause; of a traceback, its last exception."""
    while (cause := getattr(problem, "_cause", None)) is not None:
        problem = cause
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    raised = [line for line in lines if _EXCEPTION.match(line)]
    chosen = raised[-1:] if "Traceback" in str(problem) and raised else lines[:5]
    return "; ".join(line.rstrip(".") for line in chosen) or type(problem).__name__
