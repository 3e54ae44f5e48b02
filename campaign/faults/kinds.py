"""The faults, and where each can strike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from campaign.faults.hooks import Moment

Needs = Literal["nothing", "a small disk", "a clock", "a cluster"]


@dataclass(frozen=True)
class Kind:
    """A fault; without moments, it strikes between two batches.

    `action` is what the process does that comes to the moment; `ends` is whether the driver, or its JVM, dies; `fails` is
    whether the job may end with an error, after which it is started again. `weight` is how often it is chosen.
    """

    name: str
    action: str
    moments: tuple[Moment, ...]
    weight: int
    ends: bool = False
    fails: bool = False
    needs: Needs = "nothing"


_ALL: tuple[Moment, ...] = ("stage", "state", "transaction", "sink")
_DRIVER: tuple[Moment, ...] = ("state", "transaction", "sink")

KINDS: tuple[Kind, ...] = (
    Kind("kill the driver", "kill driver", _ALL, 36, ends=True),
    Kind("kill the JVM", "kill jvm", _ALL, 4, ends=True),
    Kind("kill a worker", "kill worker", ("stage", "stage", "state", "sink"), 12),
    Kind("kill an executor", "kill executor", ("stage",), 16, needs="a cluster"),
    Kind("stop a worker for a while", "stop worker", ("stage",), 4),
    Kind("stop the JVM for a while", "stop jvm", _ALL, 4),
    Kind("stop the driver for a while", "stop driver", _ALL, 4),
    Kind("a task fails", "fail", ("stage",), 8),
    Kind("the batch function fails", "fail", ("state", "sink"), 10, fails=True),
    Kind("the sink is slow", "sleep", ("transaction", "sink"), 3),
    Kind("PostgreSQL cuts the connection", "wait cut", ("transaction",), 8),
    Kind("PostgreSQL is restarted", "wait restart", _DRIVER, 6),
    Kind("the disk of the checkpoint is full", "wait checkpoint", _ALL, 6, fails=True, needs="a small disk"),
    Kind("the disk of arenas and spills is full", "wait local", _ALL, 6, fails=True, needs="a small disk"),
    Kind("the clock jumps", "wait clock", _ALL, 6, needs="a clock"),
    Kind("a file of an arena is cut", "", (), 4),
    Kind("a file of an arena is lost", "", (), 4),
    Kind("a file of an arena is altered", "", (), 4),
    Kind("a file of the checkpoint is cut", "", (), 5),
    Kind("a file of the checkpoint is lost", "", (), 5),
)
"""All faults. Those of a disk that is full fail the job, which is started again once there is space."""

MOMENTS: dict[str, str] = {
    "stage": "inside a stage",
    "state": "after the state was written, before the sinks",
    "transaction": "in a transaction of a sink",
    "sink": "after the sinks, before the commit",
    "between": "between two batches",
}
