"""Random jobs on Spark in trouble: a sink and an expression that fail, a stream that stalls, restarts.

After every batch the answers of all queries that are not parked are those of queries that ran alone.
"""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from campaign.subject import Outcome, Subject


@dataclass(frozen=True)
class Trouble:
    """A job and what goes wrong, determined by the seed."""

    seed: int


def _check(trouble: Trouble) -> Outcome:
    from sash.spark.session import embedded_session
    from tests.spark.random_troubles import run_troubles

    with tempfile.TemporaryDirectory(prefix="sash-troubles-") as folder:
        words = run_troubles(embedded_session(cores=2), Path(folder), trouble.seed)
    return Outcome(words)


SUBJECT = Subject(
    "troubles",
    "a job of three to six queries on Spark, with relations that change, releases at intervals and all output modes; the sink "
    "of one and an expression of another fail for a while, a stream stalls, and the job is restarted",
    lambda rnd: Trouble(rnd.randrange(2**31)),
    _check,
    asdict,
    lambda stored: Trouble(**stored),
)
