"""The serialization graph of a history: the order of transactions that its conflicts on sub-windows imply.

The graph has dependencies from an update to the queries that read its version, from a query to the next update that
overwrote what the query read, and from each writer of a sub-window to the next one. Implied dependencies are left out.
Only committed transactions are in the graph. Section 3.1.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from sash.errors import HistoryError
from sash.testing.histories.notation import HistoryOperation


@dataclass
class CommittedQuery:
    """A committed query and the updates that conflict with it."""

    name: str
    #: the last update committed before the query
    latest: int
    #: the versions it read: the numbers of the updates that wrote its sub-windows
    versions: set[int] = field(default_factory=set)
    #: the updates serialized directly before and after it, one of each per sub-window read
    before: set[int] = field(default_factory=set)
    after: set[int] = field(default_factory=set)

    @property
    def newest(self) -> int:
        """The youngest version read."""
        return max(self.versions, default=-1)


class SerializationGraph:
    """Built from the operations of a history over n sub-windows. Raises an error for an impossible history."""

    def __init__(self, operations: list[HistoryOperation], n: int) -> None:
        self._n = n
        self._writers: list[list[int]] = [[] for _ in range(n)]
        self._open: dict[str, list[tuple[int, int]]] = {}
        self._ended: set[str] = set()
        written = [operation.transaction for operation in operations if isinstance(operation.transaction, int)]
        before = max(n - 1, *(operation.as_of or 0 for operation in operations), 0)
        self._state = self._committed = written[0] - 1 if written else before
        self._reads: dict[str, list[tuple[int, int]]] = {}
        self.queries: list[CommittedQuery] = []
        for operation in operations:
            self._apply(operation)
        if self._committed != self._state:
            raise HistoryError(f"update {self._state} never commits: write c{self._state}")
        for query in self.queries:
            self._find_dependencies(query)

    def is_acyclic(self) -> bool:
        """Whether the history is serializable."""
        order: TopologicalSorter[int | str] = TopologicalSorter()
        for writers in self._writers:
            for earlier, later in pairwise(writers):
                order.add(later, earlier)
        for query in self.queries:
            order.add(query.name, *query.before)
            for update in query.after:
                order.add(update, query.name)
        try:
            order.prepare()
        except CycleError:
            return False
        return True

    def _apply(self, operation: HistoryOperation) -> None:
        if operation.sub_window is not None and operation.sub_window >= self._n:
            raise HistoryError(f"there is no sub-window {operation.sub_window}: the sub-windows are 0 to {self._n - 1}")
        if isinstance(operation.transaction, int):
            self._apply_update(operation, operation.transaction)
        else:
            self._apply_query(operation, operation.transaction)

    def _apply_update(self, operation: HistoryOperation, number: int) -> None:
        if operation.kind == "w":
            if operation.sub_window != number % self._n:
                raise HistoryError(
                    f"update {number} replaces sub-window {number % self._n}: not {operation.sub_window}"
                )
            if self._state != self._committed or number != self._state + 1:
                raise HistoryError(f"w{number} after update {self._state}: updates must be in order, one at a time")
            self._state = number
        elif number != self._state or self._committed == number:
            raise HistoryError(f"{operation.kind}{number} must follow w{number}, before the next update")
        elif operation.kind == "c":
            self._committed = number
            return
        assert operation.sub_window is not None
        writers = self._writers[operation.sub_window]
        if not writers or writers[-1] != number:
            writers.append(number)

    def _apply_query(self, operation: HistoryOperation, name: str) -> None:
        if name in self._ended:
            raise HistoryError(
                f"{operation.kind}{name} comes after {name} has ended: use another name for each attempt"
            )
        reads = self._open.setdefault(name, [])
        if operation.sub_window is None:
            del self._open[name]
            self._ended.add(name)
            if operation.kind == "c":
                self.queries.append(CommittedQuery(name, self._committed))
                self._reads[name] = reads
            return
        as_of = self._state if operation.as_of is None else operation.as_of
        if as_of > self._state:
            raise HistoryError(f"{name} cannot read as of update {as_of} before that update")
        if operation.kind in "up":
            last = next((at for at in reversed(range(len(reads))) if reads[at][0] == operation.sub_window), None)
            if last is None:
                raise HistoryError(f"{operation.kind}{name}[{operation.sub_window}] without a read before it")
            del reads[last]
        if operation.kind in "rp":
            reads.append((operation.sub_window, as_of))

    def _find_dependencies(self, query: CommittedQuery) -> None:
        for sub_window, as_of in self._reads[query.name]:
            query.versions.add(as_of - (as_of - sub_window) % self._n)
            writers = self._writers[sub_window]
            seen = bisect_right(writers, as_of)
            query.before.update(writers[seen - 1 : seen])
            query.after.update(writers[seen : seen + 1])
