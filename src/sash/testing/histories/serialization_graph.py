"""The serialization graph of a history: who came before whom, by the sub-windows they have in common.

An edge leads from update i to a query that saw what i wrote, from a query to the next update that wrote over what it
saw, and from each writer of a sub-window to the next one. Edges that follow from these are left out. Only committed
transactions are in it. Section 3.1.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from sash.errors import HistoryError
from sash.testing.histories.notation import Operation


@dataclass
class Query:
    """A committed query and the updates that conflict with it."""

    name: str
    #: the last update that had committed when the query did
    latest: int
    #: the versions it read: numbers of the updates that had written its sub-windows
    versions: set[int] = field(default_factory=set)
    #: updates serialized right before and right after it, one of each per sub-window read
    before: set[int] = field(default_factory=set)
    after: set[int] = field(default_factory=set)

    @property
    def newest(self) -> int:
        """The youngest version read."""
        return max(self.versions, default=-1)


class SerializationGraph:
    """Built from the operations of a history over n sub-windows; refuses histories that cannot have happened."""

    def __init__(self, operations: list[Operation], n: int) -> None:
        self._n = n
        self._writers: list[list[int]] = [[] for _ in range(n)]
        self._open: dict[str, list[tuple[int, int]]] = {}
        self._ended: set[str] = set()
        written = [operation.transaction for operation in operations if isinstance(operation.transaction, int)]
        before = max(n - 1, *(operation.as_of or 0 for operation in operations), 0)
        self._state = self._committed = written[0] - 1 if written else before
        self._reads: dict[str, list[tuple[int, int]]] = {}
        self.queries: list[Query] = []
        for operation in operations:
            self._take(operation)
        if self._committed != self._state:
            raise HistoryError(f"update {self._state} never commits: write c{self._state}")
        for query in self.queries:
            self._relate(query)

    def acyclic(self) -> bool:
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

    def _take(self, operation: Operation) -> None:
        if operation.sub_window is not None and operation.sub_window >= self._n:
            raise HistoryError(f"there is no sub-window {operation.sub_window}: they are 0 to {self._n - 1}")
        if isinstance(operation.transaction, int):
            self._take_update(operation, operation.transaction)
        else:
            self._take_query(operation, operation.transaction)

    def _take_update(self, operation: Operation, number: int) -> None:
        if operation.kind == "w":
            if operation.sub_window != number % self._n:
                raise HistoryError(
                    f"update {number} replaces sub-window {number % self._n}: not {operation.sub_window}"
                )
            if self._state != self._committed or number != self._state + 1:
                raise HistoryError(f"w{number} after update {self._state}: updates come one by one, in order")
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

    def _take_query(self, operation: Operation, name: str) -> None:
        if name in self._ended:
            raise HistoryError(f"{operation.kind}{name} comes after {name} has ended: name each attempt anew")
        reads = self._open.setdefault(name, [])
        if operation.sub_window is None:
            del self._open[name]
            self._ended.add(name)
            if operation.kind == "c":
                self.queries.append(Query(name, self._committed))
                self._reads[name] = reads
            return
        as_of = self._state if operation.as_of is None else operation.as_of
        if as_of > self._state:
            raise HistoryError(f"{name} cannot see update {as_of} before it is made")
        if operation.kind in "up":
            last = next((at for at in reversed(range(len(reads))) if reads[at][0] == operation.sub_window), None)
            if last is None:
                raise HistoryError(f"{operation.kind}{name}[{operation.sub_window}] without a read before it")
            del reads[last]
        if operation.kind in "rp":
            reads.append((operation.sub_window, as_of))

    def _relate(self, query: Query) -> None:
        for sub_window, as_of in self._reads[query.name]:
            query.versions.add(as_of - (as_of - sub_window) % self._n)
            writers = self._writers[sub_window]
            seen = bisect_right(writers, as_of)
            query.before.update(writers[seen - 1 : seen])
            query.after.update(writers[seen : seen + 1])
