"""Classifies histories of reads and writes by isolation level (paper 2, section 3).

The notation is that of the paper: in `rQ1[0]` query Q1 reads sub-window 0, in `w5[0]` update 5 replaces sub-window
5 mod n, `c5` and `cQ1` commit, `aQ1` aborts. The updates before the first one in the history have filled the window. Four
operations that the paper describes in text have a notation of their own:

- `rQ1[0:4]`: the query read sub-window 0 as of update 4, even if later updates replaced it (an old copy was retained);
- `uQ1[0]`: the query undid its last read of sub-window 0, to repeat it (end of 4.2);
- `i6[3]`: update 6 inserted rows into sub-window 3 of a kept result, without replacing it (4.3);
- `pQ1[3]`: the query, which had read sub-window 3, received the rows inserted there so far (4.3); `pQ1[3:6]` those up to
  update 6.

>>> sorted(classify("rQ1[4] w5[0] c5 rQ1[0] rQ1[3] rQ1[2] w6[1] c6 rQ1[1] cQ1", n=5))
['latest-window-serializable', 'serializable', 'window-serializable']
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from sash.errors import HistoryError
from sash.window_store.scheduling.recorder import Recorder

__all__ = ["CommittedQuery", "HistoryOperation", "Recorder", "SerializationGraph", "classify", "parse_history"]

OPERATION = re.compile(r"([rwcauip])(Q\w*|\d+)(?:\[(\d+)(?::(\d+))?\])?")


@dataclass(frozen=True)
class HistoryOperation:
    """One operation of a history. `transaction` is the number of an update or the name of a query."""

    kind: str
    transaction: int | str
    sub_window: int | None = None
    as_of: int | None = None


def parse_history(history: str) -> list[HistoryOperation]:
    """The operations of a history, in order."""
    return [_operation(word) for word in history.split()]


def _operation(word: str) -> HistoryOperation:
    found = OPERATION.fullmatch(word)
    if found is None:
        raise HistoryError(f"{word!r} is not an operation: write rQ1[0], w5[0], c5, cQ1 or aQ1")
    kind, name, sub_window, as_of = found.groups()
    if (sub_window is not None) != (kind in "rwuip"):
        raise HistoryError(f"{word!r}: reads and writes name a sub-window, commits and aborts do not")
    if name.isdigit() != (kind in "wi") and kind != "c":
        raise HistoryError(f"{word!r}: queries (Q1) read and abort, updates (5) write")
    if as_of is not None and kind not in "rp":
        raise HistoryError(f"{word!r}: only a read can be as of an update")
    numbers = (None if text is None else int(text) for text in (sub_window, as_of))
    return HistoryOperation(kind, int(name) if name.isdigit() else name, *numbers)


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
    """The order of transactions that the conflicts of a history on n sub-windows imply (section 3.1).

    It has dependencies from an update to the queries that read its version, from a query to the next update that overwrote
    what the query read, and from each writer of a sub-window to the next one. Implied dependencies are left out. Only
    committed transactions are in the graph. Raises an error for an impossible history.
    """

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


def classify(history: str, n: int, lengths: Mapping[str, int] | None = None) -> set[str]:
    """The levels of a history: a subset of serializable, window-serializable and latest-window-serializable.

    Only committed queries count. `lengths` are the numbers of youngest sub-windows that queries had to read: for these
    queries `classify` also checks that they read exactly those sub-windows.
    """
    if n < 1:
        raise HistoryError(f"a window has at least one sub-window, not {n}")
    graph = SerializationGraph(parse_history(history), n)
    if not graph.is_acyclic():
        return set()
    levels = {"serializable"}
    wanted = lengths or {}
    if all(_one_state(query) and _youngest(query, query.newest, wanted) for query in graph.queries):
        levels.add("window-serializable")
        if all(_latest_state(query) and _youngest(query, query.latest, wanted) for query in graph.queries):
            levels.add("latest-window-serializable")
    return levels


def _one_state(query: CommittedQuery) -> bool:
    """Theorem 1: every update serialized before the query is older than every update serialized after it."""
    return not query.before or not query.after or max(query.before) < min(query.after)


def _latest_state(query: CommittedQuery) -> bool:
    """Theorem 2: no update that committed before the query is serialized after it."""
    return all(update > query.latest for update in query.after)


def _youngest(query: CommittedQuery, state: int, lengths: Mapping[str, int]) -> bool:
    """Whether a query of known length read exactly that many of the youngest sub-windows as of the state."""
    length = lengths.get(query.name, 0)
    return not length or query.versions == set(range(state - length + 1, state + 1))
