"""The difference between two jobs, per query: kept, derived or new, with the reason, the bytes to move and the pause."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from sash.change.classify import Classification, Verdict, classify, moved_bytes
from sash.change.stored import AT_ONCE, Completeness, JobPlan, StoredState
from sash.errors import OptionError
from sash.physical.channels import StageRows, queries_of_stages
from sash.runtime.shard import tells_answer

BASE_SECONDS = 6.0
"""The expected pause without any state."""
BYTES_PER_SECOND = 50 << 20
"""The expected rate at which state moves."""


@dataclass(frozen=True)
class QueryDiff:
    """What becomes of a query. `fresh` is whether its sink gets a new answer, not the difference to the old one.

    `by_constants` is whether the change is one of the constants of alike queries, which the job reads as it runs. `template`
    is the output of the alike queries to which it belongs. `filled` says how a query that is new is complete at once.
    """

    name: str
    verdict: Verdict | Literal["dropped"]
    reason: str
    complete: Completeness = AT_ONCE
    fresh: bool = False
    filled: tuple[str, ...] = ()
    by_constants: bool = False
    template: str | None = None

    @property
    def moves(self) -> bool:
        """Whether its sink gets something at the change itself."""
        return self.verdict not in ("kept", "dropped") and not self.by_constants


@dataclass(frozen=True)
class JobDiff:
    """The difference between a checkpoint's job and a new one."""

    queries: tuple[QueryDiff, ...]
    shards: tuple[int, int]
    bytes: int
    classification: Classification
    refused: tuple[str, ...] = ()
    """The queries that need an answer which cannot be read, because only arrays hold it."""
    waiting: tuple[str, ...] = ()
    """The queries whose sinks would wait without end, because it is not known when their answers are complete."""

    def check(self) -> None:
        """Raise an error if the change cannot be applied."""
        if self.problems:
            raise OptionError("; ".join(self.problems))

    @property
    def problems(self) -> list[str]:
        """Why the change cannot be applied."""
        found = ((_REFUSED, self.refused), (_WAITING, self.waiting))
        return [text.format(", ".join(names)) for text, names in found if names]

    @property
    def changed(self) -> bool:
        """Whether the new job needs another generation of the checkpoint."""
        return self.shards[0] != self.shards[1] or any(
            one.verdict != "kept" and not one.by_constants for one in self.queries
        )

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
            "refused": sorted({*self.refused, *self.waiting}),
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
        """The difference as text, a line per query, or per group of alike queries with the same difference."""
        if not self.changed and not any(one.by_constants for one in self.queries):
            return "no change"
        groups: dict[tuple[str, ...], list[QueryDiff]] = {}
        for one in self.queries:
            groups.setdefault((one.template or one.name, one.verdict, _remark(one)), []).append(one)
        rows = [(_names(group), verdict, remark) for (_, verdict, remark), group in groups.items()]
        width = max(len(name) for name, _, _ in rows)
        lines = [f"{name:<{width}}  {verdict:<7}  {remark}".rstrip() for name, verdict, remark in rows]
        if not self.changed:
            return "\n".join([*lines, "only constants change, without a pause"])
        if self.shards[0] != self.shards[1]:
            lines.append(f"shards: {self.shards[0]} -> {self.shards[1]}")
        lines += [f"cannot be applied: {problem}" for problem in self.problems]
        lines.append(f"{self.bytes / (1 << 20):.1f} MB of state to move, expected pause {self.pause:.0f} s")
        return "\n".join(lines)


def diff_jobs(old: JobPlan, new: JobPlan, stored: StoredState) -> JobDiff:
    """Compare two jobs, over what the checkpoint of the old one holds."""
    changed = classify(old, new, stored)
    kept = {name for name in old.templates & new.templates if _is_kept(name, changed)}
    queries = [_query(name, changed, kept) for name in new.answers]
    queries += [
        QueryDiff(
            name,
            "dropped",
            "the new job does not have it; its sink is left as it is",
            by_constants=old.output_of(name) in kept,
            template=old.alike[name].template if name in old.alike else None,
        )
        for name in old.answers
        if name not in new.answers
    ]
    refused = tuple(sorted(_without_answers(queries, changed, stored)))
    waiting = tuple(sorted(q.name for q in queries if q.moves and q.name in new.waits and not q.complete.known))
    return JobDiff(tuple(queries), (old.shards, new.shards), moved_bytes(changed, stored), changed, refused, waiting)


def _without_answers(queries: Sequence[QueryDiff], changed: Classification, stored: StoredState) -> set[str]:
    """The queries that need an answer of a stage with a snapshot, whose logs hold the last rows only.

    A sink needs the current answer of a stage that is kept if it is new to it, and the difference to the old answer of a
    stage that is not; a new stage above a kept one begins with the answer of that.
    """
    old, new = changed.old, changed.new

    def unreadable(plan: JobPlan, stage: int) -> bool:
        known = stored.stages.get(plan.channels.stages[stage])
        return known is not None and known.snapshot and not tells_answer(plan.physical.stages[stage])

    found = set[str]()
    for query in queries:
        if not query.moves:
            continue
        stage = new.output_stages[new.output_of(query.name)]
        if changed.stages[stage].verdict == "kept" and unreadable(new, stage):
            found.add(query.name)
        if (
            query.name in old.answers
            and not query.fresh
            and unreadable(old, old.output_stages[old.output_of(query.name)])
        ):
            found.add(query.name)
    needed = queries_of_stages(new.physical)
    for change in changed.channels:
        source = change.channel.source
        if change.restored and isinstance(source, StageRows) and changed.stages[source.stage].verdict == "kept":
            known = stored.stages.get(new.channels.stages[source.stage])
            if known is not None and known.snapshot:
                found.update(name for reader in change.channel.readers for name in needed[reader.stage])
    return found


_REFUSED = (
    "query {} needs the whole answer of a query whose state is kept as arrays (windows without an end, joins with relations "
    "that change), which cannot be read from them; leave that query and its sink as they are, and add the other one to a job "
    "with a checkpoint of its own"
)


_WAITING = (
    "query {} has WHEN COMPLETE, but it cannot be known when its answer is complete: rows that are gone may belong to its "
    "[ROWS n] windows, however old they are. Leave out WHEN COMPLETE, add BACKFILL, or use a window of time"
)


def _is_kept(template: str, changed: Classification) -> bool:
    """Whether a template of both jobs keeps its stage as it is."""
    found = changed.stages[changed.new.output_stages[template]]
    before = changed.old.channels.stages[changed.old.output_stages[template]]
    return found.verdict == "kept" and found.identity == before


def _query(name: str, changed: Classification, kept: Collection[str]) -> QueryDiff:
    """What becomes of a query; `kept` are the templates of alike queries that stay as they are."""
    output = changed.new.output_of(name)
    found = changed.stages[changed.new.output_stages[output]]
    old, new = changed.old.answers.get(name), changed.new.answers[name]
    template = changed.new.alike[name].template if name in changed.new.alike else None
    fresh = old is None or old.columns != new.columns or old.sink != new.sink
    moved = changed.old.alike.get(name) != changed.new.alike.get(name)
    before = None if old is None or moved else changed.old.output_stages[output]
    same = before is not None and changed.old.channels.stages[before] == found.identity
    if same and not fresh and found.verdict == "kept":
        assert old is not None
        if template is None or old.sql == new.sql:
            return QueryDiff(name, "kept", "", found.complete, template=template)
        reason = "it has other constants"
        return QueryDiff(name, "derived", reason, found.complete, by_constants=True, template=template)
    if found.verdict == "new":
        return QueryDiff(name, "new", found.reason, found.complete, fresh, found.filled, template=template)
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
    added = old is None and template in kept
    return QueryDiff(name, "derived", reason, found.complete, fresh, by_constants=added, template=template)


_SHOWN = 3


def _names(queries: Sequence[QueryDiff]) -> str:
    """The names of queries with the same difference; of many, the first ones.

    >>> _names([QueryDiff(name, "kept", "") for name in ("a", "b", "c", "d")])
    '4 alike queries (a, b, c, ...)'
    """
    if len(queries) == 1:
        return queries[0].name
    shown = [*(one.name for one in queries[:_SHOWN]), *(["..."] if len(queries) > _SHOWN else [])]
    return f"{len(queries)} alike queries ({', '.join(shown)})"


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
