"""Which queries of a job an error belongs to.

An error in a Spark task reaches the driver as text. So errors of stages and lookups name their queries in the text, and an
expression that Spark evaluates has a comment with them, which Spark's error shows.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sash.errors import BadRowError, CheckpointError, StageError

_COMMENT = "sash:queries "
_LIST = r'\[(?:"(?:[^"\\]|\\.)*"(?:, )?)*\]'
_NAMED = re.compile(rf"queries ({_LIST}) failed: ")
_COMMENTED = re.compile(rf"{_COMMENT}({_LIST})")


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
        raise StageError.of(queries, f"{type(problem).__name__}: {problem}") from problem


def query_comment(queries: Sequence[str]) -> str:
    """A comment in SQL with the names of queries, if they have any."""
    return f" /* {_COMMENT}{json.dumps(sorted(queries)).replace('*/', '* /')} */" if any(queries) else ""


def failed_queries(problem: BaseException) -> list[str]:
    """The queries whose stages or expressions failed; none if the error is of the job as a whole."""
    from sash.spark.causes import java_causes

    if isinstance(problem, StageError):
        return problem.queries
    texts = [str(problem), *(message for _, message in java_causes(problem))]
    cause = problem.__cause__ or problem.__context__
    found = {
        name
        for text in texts
        for pattern in (_NAMED, _COMMENTED)
        for names in pattern.findall(text)
        for name in json.loads(names)
    }
    return sorted(found) if found or cause is None else failed_queries(cause)
