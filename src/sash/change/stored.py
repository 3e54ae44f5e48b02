"""What a job's checkpoint holds, and what a job needs: the two sides that a change compares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from sash.physical.channels import Channels
from sash.physical.nodes import PhysicalPlan
from sash.time import BEGINNING


@dataclass(frozen=True)
class Answer:
    """The answer of a query as its sink gets it: its text, its columns and types, and where it is written."""

    sql: str
    columns: tuple[str, ...]
    sink: str


@dataclass(frozen=True)
class AlikePlace:
    """Where the answer of one of alike queries is: in the output of their template, in the rows with its number."""

    template: str
    number: int


@dataclass(frozen=True)
class JobPlan:
    """The plan of a job: of its queries together, for a number of shards.

    `answers` has every query. Those in `alike` have no output of their own in the plan. `slack` is the watermark delay of
    the streams that have one, by lower-case name. `backfill` are the queries whose windows are filled by reading their
    streams again, where rows are not kept, and `waits` those whose sinks wait until their answers are complete.
    """

    physical: PhysicalPlan
    channels: Channels
    shards: int
    answers: Mapping[str, Answer]
    slack: Mapping[str, int] = field(default_factory=dict)
    backfill: frozenset[str] = frozenset()
    alike: Mapping[str, AlikePlace] = field(default_factory=dict)
    waits: frozenset[str] = frozenset()

    @property
    def templates(self) -> frozenset[str]:
        """The names of the outputs of alike queries."""
        return frozenset(place.template for place in self.alike.values())

    def output_of(self, query: str) -> str:
        """The name of the output that has the answer of a query."""
        return self.alike[query].template if query in self.alike else query

    @cached_property
    def output_stages(self) -> dict[str, int]:
        """The stage of every output."""
        return {output.query: output.stage for output in self.physical.outputs}


@dataclass(frozen=True)
class StoredLog:
    """The log of a channel over all shards: its clock, its bytes, and the instant since when it has every row."""

    clock: int
    size: int = 0
    since: int = int(BEGINNING)


@dataclass(frozen=True)
class StoredStage:
    """The state of a stage over all shards: whether it has a snapshot, its bytes, and when its answer is complete."""

    snapshot: bool = False
    size: int = 0
    complete: Completeness | None = None


@dataclass(frozen=True)
class Completeness:
    """From when an answer is complete: from an instant on, or `after` the first row of a new stream by that long.

    Neither is known if it depends on rows that are yet to come, or that are gone.
    """

    instant: int | None = None
    after: int | None = None

    @property
    def known(self) -> bool:
        return self.instant is not None or self.after is not None


AT_ONCE = Completeness(int(BEGINNING))
"""The answer has been complete all the time."""


def latest(parts: list[Completeness]) -> Completeness:
    """The completeness of an answer that is made of several parts.

    >>> latest([Completeness(5), Completeness(7)])
    Completeness(instant=7, after=None)
    """
    if any(not part.known for part in parts):
        return Completeness()
    after = [part.after for part in parts if part.after is not None]
    if after:
        return Completeness(None, max(after))
    return Completeness(max((part.instant for part in parts if part.instant is not None), default=int(BEGINNING)))


@dataclass(frozen=True)
class History:
    """Whether the rows that a stream has brought so far can be read again.

    `what` would be read, such as "3 files", or `refused` says why nothing can be. `whole` is whether a job that begins to
    read the stream gets all its rows.
    """

    what: str = ""
    refused: str = ""
    whole: bool = False


@dataclass(frozen=True)
class StoredState:
    """The logs of a checkpoint by the identities of channels, and the state of stages by theirs.

    `histories` are those of the streams, by lower-case name, and `fastest` has, of those with partitions, the clock of the one
    that is ahead.
    """

    logs: Mapping[str, StoredLog] = field(default_factory=dict)
    stages: Mapping[str, StoredStage] = field(default_factory=dict)
    histories: Mapping[str, History] = field(default_factory=dict)
    fastest: Mapping[str, int] = field(default_factory=dict)
