"""The difference between two jobs, per query: kept, derived or new, with the reason, the bytes to move and the pause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sash.change.classify import Classification, Verdict, classify, moved_bytes
from sash.change.stored import AT_ONCE, Completeness, JobPlan, StoredState

BASE_SECONDS = 8.0
"""The expected pause without any state."""
BYTES_PER_SECOND = 50 << 20
"""The expected rate at which state moves."""


@dataclass(frozen=True)
class QueryDiff:
    """What becomes of a query.

    `fresh` is whether its sink gets a new answer, not the difference to the old one. `filled` says how a query that is new
    is complete at once.
    """

    name: str
    verdict: Verdict | Literal["dropped"]
    reason: str
    complete: Completeness = AT_ONCE
    fresh: bool = False
    filled: tuple[str, ...] = ()


@dataclass(frozen=True)
class JobDiff:
    """The difference between a checkpoint's job and a new one."""

    queries: tuple[QueryDiff, ...]
    shards: tuple[int, int]
    bytes: int
    classification: Classification

    @property
    def changed(self) -> bool:
        """Whether the new job needs another generation of the checkpoint."""
        return self.shards[0] != self.shards[1] or any(one.verdict != "kept" for one in self.queries)

    @property
    def pause(self) -> float:
        """The expected time between the last old batch and the first new one, in seconds."""
        return BASE_SECONDS + self.bytes / BYTES_PER_SECOND if self.changed else 0.0

    def query(self, name: str) -> QueryDiff:
        """The difference of one query."""
        return next(one for one in self.queries if one.name == name)

    def to_json(self) -> dict[str, Any]:
        """The difference as plain values."""
        return {
            "changed": self.changed,
            "shards": {"old": self.shards[0], "new": self.shards[1]},
            "bytes": self.bytes,
            "pause_seconds": round(self.pause, 1),
            "queries": [
                {
                    "name": one.name,
                    "verdict": one.verdict,
                    "reason": one.reason,
                    "complete_from": _instant(one.complete),
                    "complete_after_first_row": one.complete.after,
                    "filled": list(one.filled),
                }
                for one in self.queries
            ],
        }

    def render(self) -> str:
        """The difference as text, a line per query."""
        if not self.changed:
            return "no change"
        width = max((len(one.name) for one in self.queries), default=0)
        lines = [f"{one.name:<{width}}  {one.verdict:<7}  {_remark(one)}".rstrip() for one in self.queries]
        if self.shards[0] != self.shards[1]:
            lines.append(f"shards: {self.shards[0]} -> {self.shards[1]}")
        lines.append(f"{self.bytes / (1 << 20):.1f} MB of state to move, expected pause {self.pause:.0f} s")
        return "\n".join(lines)


def diff_jobs(old: JobPlan, new: JobPlan, stored: StoredState) -> JobDiff:
    """Compare two jobs, over what the checkpoint of the old one holds."""
    changed = classify(old, new, stored)
    queries = [_query(output.query, output.stage, changed) for output in new.physical.outputs]
    queries += [
        QueryDiff(output.query, "dropped", "the new job does not have it; its sink is left as it is")
        for output in old.physical.outputs
        if output.query not in new.answers
    ]
    return JobDiff(tuple(queries), (old.shards, new.shards), moved_bytes(changed, stored), changed)


def _query(name: str, stage: int, changed: Classification) -> QueryDiff:
    found = changed.stages[stage]
    old, new = changed.old.answers.get(name), changed.new.answers[name]
    before = next((o.stage for o in changed.old.physical.outputs if o.query == name), None)
    fresh = old is None or old.columns != new.columns or old.sink != new.sink
    same = before is not None and changed.old.channels.stages[before] == found.identity
    if same and not fresh and found.verdict == "kept":
        return QueryDiff(name, "kept", "", found.complete)
    if found.verdict == "new":
        return QueryDiff(name, "new", found.reason, found.complete, fresh, found.filled)
    if old is None:
        reason = "a new query over rows that are kept"
    elif fresh:
        reason = "its answer has other columns or another sink"
    elif found.refilled:
        reason = found.reason
    elif same:
        reason = "its operators are behind the clock by different times in different shards"
    else:
        reason = "computed from rows that are kept"
    return QueryDiff(name, "derived", reason, found.complete, fresh)


def _instant(complete: Completeness) -> int | None:
    return None if complete.instant is None or complete == AT_ONCE else complete.instant


def _remark(one: QueryDiff) -> str:
    if one.filled and one.complete == AT_ONCE:
        return f"complete at once {' and '.join(one.filled)}"
    if one.verdict in ("kept", "dropped") and one.complete == AT_ONCE:
        return one.reason
    return f"{one.reason}{'; ' if one.reason else ''}{describe_completeness(one.complete)}"


def describe_completeness(complete: Completeness) -> str:
    """From when an answer is complete, in words.

    >>> describe_completeness(Completeness(1_700_000_000_000_000))
    'complete from 2023-11-14 22:13:20 UTC'
    """
    if complete == AT_ONCE:
        return "complete at once"
    if complete.instant is not None:
        moment = datetime.fromtimestamp(complete.instant / 1e6, UTC).isoformat(sep=" ").removesuffix("+00:00")
        return f"complete from {moment} UTC"
    if complete.after is not None:
        return f"complete {complete.after / 1e6:g} s after its first row"
    return "complete once the rows that it misses are no longer in its windows"
