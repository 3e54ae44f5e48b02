"""Executes the plan of a snapshot: one read transaction, whose partial results are merged into the answers.

Queries that differ only in the lengths of their windows are one transaction over the longest window. Each sub-window is
read once. The answers are merged from the youngest sub-window to the oldest, so that the longer windows continue from
the merged state of the shorter ones (paper 2, 2.1, Figure 2).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sash.errors import StoreError
from sash.window_store.plan import SnapshotPlan
from sash.window_store.scheduling.reader import CommittedReads, Read, Request
from sash.window_store.scheduling.runner import Runner
from sash.window_store.snapshot import Snapshot, ToSpark
from sash.window_store.store.manifest import Slice, SubWindow
from sash.window_store.sub_windows import PartialResult, ReadCounters, merge_tables, read_summaries, summarize
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core


@dataclass(frozen=True)
class MergedState:
    """The merged summaries as of an update, from which an incremental scan continues."""

    update: int
    tables: Tables


class SnapshotExecution:
    """One execution of a plan. It is submitted when created; call `result` to wait for the answers.

    `state` is the state of the last execution of a periodic query with an incremental access path, and after `result`
    that of this one. `query` is the periodic query.
    """

    def __init__(
        self,
        plan: SnapshotPlan,
        runner: Runner,
        to_spark: ToSpark | None = None,
        state: MergedState | None = None,
        query: Hashable = None,
    ) -> None:
        self.plan = plan
        self._query = self if query is None else query
        self.state = state
        self._to_spark = to_spark
        self._counters = ReadCounters()
        window, options = plan.window, plan.options
        if not window.manifest.live:
            raise StoreError(
                f"{window.layout.name} has no complete sub-window yet: rows must first reach past the end of one"
            )
        self._request = Request(plan.length, None if state is None else state.update)
        self._lease = window.lease(None if state is None else max(0, state.update - plan.length + 1))
        plan.group.begin(self._query)
        try:
            self._transaction = runner.submit(
                window.scheduler, self._request, self._read,
                isolation=plan.isolation, priority=options.priority, timeout=options.timeout,
            )  # fmt: skip
        except BaseException:
            self._release()
            raise

    def _release(self) -> None:
        self._lease.release()
        self.plan.group.end(self._query)

    def result(self) -> list[Snapshot]:
        """Wait for the answers, one per query. Raises the error of a query that failed or was cancelled.

        The list is empty if the query cannot continue from `state`, and must be executed again without it.
        """
        try:
            committed = self._transaction.result()
            found = self._merge(committed)
            described = self._describe()
        finally:
            self._release()
        if found is None:
            self.state = None
            return []
        answers, youngest = found
        now = time.time()
        return [
            Snapshot(
                table=table,
                as_of=youngest.end,
                update=youngest.number,
                freshness=max(0.0, now - youngest.swapped),
                response_time=committed.committed - committed.submitted,
                sub_windows_read=self._counters.sub_windows,
                summaries_read=self._counters.summaries,
                summaries_built=self._counters.built,
                restarts=committed.restarts,
                rescans=committed.rescans,
                isolation=self.plan.isolation.name,
                reads_shared=self._counters.shared,
                reads_given_up=committed.given_up,
                plan=described,
                errors=shape.core.errors,
                spark=self._to_spark,
            )
            for table, shape in zip(answers, self.plan.shapes, strict=True)
        ]

    def _describe(self) -> str:
        """The plan, and what of it other queries have read."""
        shared = self._counters.shared
        return self.plan.explain() + (f"\n{shared} reads were scans of other queries" if shared else "")

    def cancel(self, reason: str = "the query was cancelled") -> None:
        """Cancel the query, from any thread: `result` raises a CancelledError. Has no effect after it has ended."""
        self._transaction.cancel(reason)

    def _read(self, read: Read) -> PartialResult:
        """Read one sub-window. The runner's threads call this."""
        window = self.plan.window
        part = window.part(read.version)
        slices = tuple(window.manifest.slices(read.version, read.as_of))
        # Mapped rows stay readable even after their file was deleted.
        rows = None if all(span.whole for span in self.plan.spans) else part.own.read(window.root)
        return PartialResult(part, slices, self._summaries(slices), rows)

    def _summaries(self, slices: Sequence[Slice]) -> Tables:
        tables, shared = self.plan.group.read(slices, lambda: self._scan(slices))
        self._counters.add(shared=shared)
        return tables

    def _scan(self, slices: Sequence[Slice]) -> Tables:
        plan, root = self.plan, self.plan.window.root
        if not plan.access.summarized:
            self._counters.add(sub_windows=1)
            return plan.scan(root, slices, plan.core)
        found = [read_summaries(root, part, plan.core, plan.scan, self._counters) for part in slices]
        return found[0] if len(found) == 1 else merge_tables(plan.core, found)

    def _merge(self, committed: CommittedReads) -> tuple[list[pa.Table], SubWindow] | None:
        """The answers and the youngest sub-window. None if the query cannot continue from `state`: after a gap in time,
        sub-windows have left its window that were not its oldest ones."""
        plan, update = self.plan, committed.commit.as_of
        partials = {partial.part.number: partial for partial in committed.partials}
        passed: dict[int, list[Slice]] = {}
        for insert in committed.commit.passed:
            passed.setdefault(insert.version, []).append(insert.rows)
        for number, inserted in passed.items():
            partials[number] = partials[number].with_inserts(plan.window.root, inserted, plan.core)
        if not plan.access.incremental:
            window = [partials[number] for number in sorted(partials)]
            return _answers(plan, window), window[-1].part
        parts = [plan.window.part(number) for number in Request(plan.length).window(update)]
        continuous = len(plan.spans[0].selections(parts)) == len(parts)
        if self.state is None or not self._request.incremental(update):
            window = [partials[number] for number in self._request.window(update)]
            whole = merge_tables(plan.core, [partial.tables for partial in window]) if continuous else None
            self.state = None if whole is None else MergedState(update, whole)
            return _answers(plan, window), parts[-1]
        if not continuous:
            return None
        added = [partials[number].tables for number in self._request.window(update)]
        expired = [partials[number].tables for number in self._request.expired(update)]
        tables = _advance(plan.core, self.state.tables, added, expired)
        self.state = MergedState(update, tables)
        return [plan.shapes[0].result(tables)], parts[-1]


def _advance(core: Core, tables: Tables, added: Sequence[Tables], expired: Sequence[Tables]) -> Tables:
    """Merge the added sub-windows into a state, and subtract the expired ones."""
    advanced = {}
    for summary in core.summaries:
        grown = summary.merge([tables[summary], *(part[summary] for part in added)])
        advanced[summary] = summary.subtract(grown, [part[summary] for part in expired]) if expired else grown
    return advanced


def _answers(plan: SnapshotPlan, window: Sequence[PartialResult]) -> list[pa.Table]:
    """The answer of every query. Longer windows continue from the merged sub-windows of shorter ones."""
    core = plan.core
    chosen = []
    for number, span in enumerate(plan.spans):
        parts = [partial.part for partial in window[-span.length :]]
        chosen.append((number, span.selections(parts)))
    answers: list[pa.Table] = [None] * len(chosen)
    merged: Tables | None = None
    done: set[int] = set()
    for number, selections in sorted(chosen, key=lambda item: len(item[1])):
        whole = {version for version, selection in selections.items() if selection is None}
        if not done.issubset(whole):
            merged, done = None, set()
        more = [partial.tables for partial in reversed(window) if partial.part.number in whole - done]
        if more:
            merged = merge_tables(core, more if merged is None else [merged, *more])
        done |= whole
        found = [] if merged is None else [merged]
        for partial in window:
            selection = selections.get(partial.part.number)
            if selection is not None:
                assert partial.rows is not None
                found.append(summarize([selection.select(partial.rows)], core))
        found = found or [summarize([plan.window.layout.arrow.empty_table()], core)]
        answers[number] = plan.shapes[number].result(merge_tables(core, found))
    return answers
