"""Asking a live window: one or several queries as one read transaction, and their answers from what it committed.

Queries that differ only in the length of their windows are one transaction over the longest: each sub-window is read
once, and the answers are merged from the youngest sub-window to the oldest, the shorter windows' on the way (paper 2,
2.1, Figure 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from sash.errors import StoreError
from sash.window_store.access import Access
from sash.window_store.core import Core
from sash.window_store.leases import Lease
from sash.window_store.live import LiveWindow
from sash.window_store.manifest import Slice, SubWindow
from sash.window_store.reading import (
    Counters,
    Partial,
    Scan,
    Tables,
    merged,
    read_summaries,
    scan_here,
    summarize,
    with_inserts,
)
from sash.window_store.scheduling.reader import Read, Request
from sash.window_store.scheduling.runner import Runner
from sash.window_store.scheduling.running import Answer, Running
from sash.window_store.shape import Shape
from sash.window_store.spans import Cut, Span


@dataclass(frozen=True)
class Question:
    """Queries with one core, each with its window, and how they are to be read."""

    live: LiveWindow
    shapes: tuple[Shape, ...]
    spans: tuple[Span, ...]
    access: Access
    scan: Scan = scan_here

    @property
    def core(self) -> Core:
        """What all of them merge."""
        return self.shapes[0].core

    @property
    def length(self) -> int:
        """The sub-windows of the longest."""
        return max(span.length for span in self.spans)


@dataclass
class Kept:
    """What an incremental scan keeps between executions: the merged summaries as of an update."""

    since: int
    tables: Tables


@dataclass(frozen=True)
class Outcome:
    """The answers of one execution, the sub-window that the window ended with, and what to carry on."""

    tables: tuple[pa.Table, ...]
    youngest: SubWindow
    kept: Kept | None


@dataclass(eq=False)
class Execution:
    """One execution of a question."""

    question: Question
    kept: Kept | None = None
    counters: Counters = field(default_factory=Counters)
    _lease: Lease | None = None

    def submit(
        self, runner: Runner, isolation: str | None = None, priority: int = 0, timeout: float | None = None
    ) -> Running:
        """Begin; `outcome` takes what comes of it, `release` must follow in any case."""
        live = self.question.live
        since = None if self.kept is None else self.kept.since
        oldest = None if since is None else max(0, since - self.question.length + 1)
        if not live.manifest.live:
            raise StoreError(
                f"{live.layout.name} has no complete sub-window yet: rows must first reach past the end of one"
            )
        self._lease = live.lease(oldest)
        try:
            request = Request(self.question.length, since)
            return runner.submit(
                live.scheduler, request, self._read, isolation=isolation, priority=priority, timeout=timeout
            )
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let replaced sub-windows go."""
        if self._lease is not None:
            self._lease.release()
            self._lease = None

    def _read(self, read: Read) -> Partial:
        """Read one sub-window; called by the runner's threads."""
        question, live = self.question, self.question.live
        part = live.part(read.version)
        slices = tuple(live.manifest.slices(read.version, read.as_of))
        # Rows that may have to be cut are held by a mapping: they stay readable even when their file goes.
        rows = None if all(span.whole for span in question.spans) else part.read(live.root)
        return Partial(part, slices, self._tables(slices), rows)

    def _tables(self, slices: Sequence[Slice]) -> Tables:
        question, root = self.question, self.question.live.root
        if not question.access.summarized:
            self.counters.add(sub_windows=1)
            return question.scan(root, slices, question.core)
        found = [read_summaries(root, part, question.core, question.scan, self.counters) for part in slices]
        return found[0] if len(found) == 1 else merged(question.core, found)

    def outcome(self, answer: Answer) -> Outcome | None:
        """The answers, from the sub-windows that the transaction committed; None if they have to be asked for again,
        without the state that was kept: time has jumped, and sub-windows left the window that were not the oldest."""
        question, state = self.question, answer.commit.as_of
        partials = {partial.part.number: partial for partial in answer.partials}
        passed: dict[int, list[Slice]] = {}
        for insert in answer.commit.passed:
            passed.setdefault(insert.version, []).append(insert.rows)
        for number, inserted in passed.items():
            partials[number] = with_inserts(question.live.root, partials[number], inserted, question.core)
        if not question.access.incremental:
            window = [partials[number] for number in sorted(partials)]
            return Outcome(tuple(_answers(question, window)), window[-1].part, None)
        parts = [question.live.part(number) for number in Request(question.length).window(state)]
        smooth = len(question.spans[0].cuts(parts)) == len(parts)
        request = Request(question.length, None if self.kept is None else self.kept.since)
        if self.kept is None or not request.incremental(state):
            window = [partials[number] for number in request.window(state)]
            kept = Kept(state, merged(question.core, [partial.tables for partial in window])) if smooth else None
            return Outcome(tuple(_answers(question, window)), parts[-1], kept)
        if not smooth:
            return None
        new = [partials[number].tables for number in request.window(state)]
        expired = [partials[number].tables for number in request.expired(state)]
        tables = _moved_on(question.core, self.kept.tables, new, expired)
        return Outcome((question.shapes[0].answer(tables),), parts[-1], Kept(state, tables))


def _moved_on(core: Core, kept: Tables, new: Sequence[Tables], expired: Sequence[Tables]) -> Tables:
    moved = {}
    for summary in core.summaries:
        grown = summary.merge([kept[summary], *(part[summary] for part in new)])
        moved[summary] = summary.subtract(grown, [part[summary] for part in expired]) if expired else grown
    return moved


def _answers(question: Question, window: Sequence[Partial]) -> list[pa.Table]:
    """Every query's answer, the shorter windows' sums being the beginning of the longer ones'."""
    core = question.core
    chosen = []
    for number, span in enumerate(question.spans):
        parts = [partial.part for partial in window[-span.length :]]
        chosen.append((number, span.cuts(parts)))
    answers: list[pa.Table] = [None] * len(chosen)
    sums: Tables | None = None
    done: set[int] = set()
    for number, cuts in sorted(chosen, key=lambda item: len(item[1])):
        if not done.issubset(whole := {version for version, cut in cuts.items() if cut is None}):
            sums, done = None, set()
        more = [partial.tables for partial in reversed(window) if partial.part.number in whole - done]
        if more:
            sums = merged(core, more if sums is None else [sums, *more])
        done |= whole
        cut_off = [_cut_tables(core, partial, cut) for partial in window if (cut := cuts.get(partial.part.number))]
        parts_of = [*([] if sums is None else [sums]), *cut_off]
        answers[number] = question.shapes[number].answer(merged(core, parts_of or [_nothing(question)]))
    return answers


def _cut_tables(core: Core, partial: Partial, cut: Cut) -> Tables:
    assert cut is not None
    assert partial.rows is not None
    return summarize([cut.of(partial.rows)], core)


def _nothing(question: Question) -> Tables:
    return summarize([question.live.layout.arrow.empty_table()], question.core)
