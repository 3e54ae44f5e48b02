"""Random chains of changes of a job on Spark: other queries, other shards, stopped or killed at a step, with sinks that fail.

After every change the answers are those of queries that ran alone from the beginning, from the instant on from which the change
has said that they are complete.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from campaign.subject import Outcome, Subject

CHANGES = 6
"""The changes of a chain."""


@dataclass(frozen=True)
class Chain:
    """A job and its changes, determined by the seed.

    `kill` is whether the process of a change is killed at a step of it, `related` whether there are joins with relations that
    change, and releases at intervals.
    """

    seed: int
    changes: int
    kill: bool
    related: bool = False


def _made(rnd: random.Random) -> Chain:
    return Chain(rnd.randrange(2**31), CHANGES, kill=rnd.random() < 1 / 3, related=rnd.random() < 1 / 2)


def _check(chain: Chain) -> Outcome:
    from sash.spark.session import embedded_session
    from tests.spark.random_changes import run_chain

    with tempfile.TemporaryDirectory(prefix="sash-changes-") as folder:
        spark = embedded_session(cores=2)
        words = run_chain(spark, Path(folder), chain.seed, chain.changes, chain.kill, chain.related)
    return Outcome(words)


SUBJECT = Subject(
    "changes",
    f"a job of two to four queries on Spark, and a chain of {CHANGES} changes of it, rescales among them; the processes of a "
    "third of the chains are killed at random steps of each change, and half of the chains have relations that change",
    _made,
    _check,
    asdict,
    lambda stored: Chain(**stored),
)
