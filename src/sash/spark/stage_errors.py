"""Which queries of a job an error belongs to.

An error in a Spark task reaches the driver as text. So errors of stages and lookups name their queries in the text, and the
columns of an expression that Spark evaluates have them in their names, which Spark's error shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sash.errors import BadRowError, CheckpointError, StageError

_OF_QUERIES = "of queries "
_LIST = r'\[(?:"(?:[^"\\]|\\.)*"(?:, )?)*\]'
_NAMED = re.compile(rf"queries ({_LIST}) failed: ")
_FAILED_SQL = re.compile(r"== SQL \([^)]*\) ==\n(.*?)\n *\^", re.DOTALL)
_IN_NAMES = re.compile(rf"{_OF_QUERIES}({_LIST})")


@contextmanager
def naming_queries(queries: Sequence[str]) -> Iterator[None]:
    """Raise errors as those of these queries of a job; a query that runs alone has no name."""
    try:
        yield
    except (StageError, CheckpointError, BadRowError):
        raise
    except Exception as problem:
        if not any(queries):
            raise
        notes = "".join(f"; {note}" for note in getattr(problem, "__notes__", ()))
        raise StageError.of(queries, f"{type(problem).__name__}: {problem}{notes}") from problem


def queries_in_text(queries: Sequence[str]) -> str:
    """The names of queries as a part of a name in SQL, which `failed_queries` finds in Spark's errors."""
    return f"{_OF_QUERIES}{json.dumps(sorted(queries))}"


def failed_queries(problem: BaseException) -> list[str]:
    """The queries whose stages or expressions failed; none if the error is of the job as a whole."""
    from sash.spark.causes import java_causes

    if isinstance(problem, StageError):
        return problem.queries
    texts = [str(problem), *(message for _, message in java_causes(problem))]
    found = _names(_NAMED, texts) or _names(_IN_NAMES, [part for text in texts for part in _FAILED_SQL.findall(text)])
    cause = problem.__cause__ or problem.__context__
    return found if found or cause is None else failed_queries(cause)


def _names(pattern: re.Pattern[str], texts: Sequence[str]) -> list[str]:
    return sorted({name for text in texts for names in pattern.findall(text) for name in json.loads(names)})
