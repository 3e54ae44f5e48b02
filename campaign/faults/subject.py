"""The subject `faults`: stories of a job and its faults."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import Any

from campaign.faults.story import Story, play
from campaign.subject import Outcome, Subject

FAULTS = 15
"""The faults of a story."""
_CLUSTERS = 8
"""One story out of so many runs on a cluster of two executors."""


def _made(rnd: random.Random) -> Story:
    return Story(rnd.randrange(2**31), FAULTS, cluster=rnd.randrange(_CLUSTERS) == 0)


def _decode(stored: dict[str, Any]) -> Story:
    return Story(**{**stored, "only": tuple(stored["only"])})


SUBJECT = Subject(
    "faults",
    "a job on Spark with four queries into PostgreSQL and changelogs; a case is a story of some random faults, which "
    "count only if they struck, and after each of which every answer is compared with DuckDB",
    _made,
    lambda story: Outcome(play(story)),
    asdict,
    _decode,
)
