"""The clock of a stream whose partitions may be out of step, such as a Kafka topic: that of its slowest partition.

The mark of a partition is the largest time of its rows, less the slack. The stream's clock is the smallest mark of the
partitions that are not idle. A partition counts from its first row on: one that has never had a row is not waited for. It is
idle if it has had no row for a given length of time, between the batch with its last row and the present one. Spark records
the time of every batch, so a batch that is repeated comes to the same clock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

Marks = dict[str, list[int]]
"""By partition: its mark, and the time of the last batch that had rows of it, in microseconds."""


@dataclass(frozen=True)
class PartitionReport:
    """What a task tells of a batch: its time, the marks of the partitions it has read, and after how long one is idle."""

    now: int
    idle_after: int
    marks: Mapping[str, int] = field(default_factory=dict)

    def to_text(self) -> str:
        """The report as text, for messages."""
        return json.dumps([self.now, self.idle_after, self.marks], separators=(",", ":"))

    @staticmethod
    def from_text(text: str) -> PartitionReport:
        """Read the text of a report."""
        return PartitionReport(*json.loads(text))


def slowest(known: Marks, reports: Iterable[PartitionReport]) -> int | None:
    """Add the reports of one batch to what is `known`; return the clock, or None if all partitions are idle.

    Idle partitions behind the clock are forgotten: when they have rows again, their old marks would change nothing.

    >>> known = {}
    >>> slowest(known, [PartitionReport(now=10, idle_after=5, marks={"0": 700, "1": 100})])
    100
    >>> slowest(known, [PartitionReport(now=15, idle_after=5, marks={"0": 800})])
    100
    >>> slowest(known, [PartitionReport(now=16, idle_after=5, marks={"0": 900})])
    900
    """
    given = list(reports)
    now, idle_after = max(report.now for report in given), max(report.idle_after for report in given)
    for report in given:
        for partition, mark in report.marks.items():
            before = known.get(partition, [mark, now])[0]
            known[partition] = [max(before, mark), now]
    awaited = {partition for partition, (_, seen) in known.items() if now - seen <= idle_after}
    clock = min((known[partition][0] for partition in awaited), default=None)
    for partition in [name for name in known if name not in awaited]:
        if clock is not None and known[partition][0] <= clock:
            del known[partition]
    return clock


def merge(known: Marks, other: Mapping[str, list[int]]) -> None:
    """Add what is known elsewhere of the same stream."""
    for partition, (mark, seen) in other.items():
        before = known.get(partition, [mark, seen])
        known[partition] = [max(before[0], mark), max(before[1], seen)]
