"""Histories of reads and writes, and which isolation levels they keep (paper 2, section 3).

A history is written as in the paper: `rQ1[0]` query Q1 reads sub-window 0, `w5[0]` update 5 replaces sub-window 5 mod n,
`c5` and `cQ1` commit, `aQ1` aborts. The updates before the first one that is written have filled the window. Four
things the paper describes in words are written so:

- `rQ1[0:4]`: the read saw the sub-window as of update 4, although others may have come since (an old copy was kept);
- `uQ1[0]`: the query took back its last read of sub-window 0 (undo by re-scan, end of 4.2);
- `i6[3]`: update 6 inserted rows into sub-window 3 of a materialized result, without replacing it (4.3);
- `pQ1[3]`: the query, which had read sub-window 3, was passed what has been inserted there up to now (4.3); `pQ1[3:6]`
  up to update 6.

>>> sorted(classify("rQ1[4] w5[0] c5 rQ1[0] rQ1[3] rQ1[2] w6[1] c6 rQ1[1] cQ1", n=5))
['latest-window-serializable', 'serializable', 'window-serializable']
"""

from __future__ import annotations

from collections.abc import Mapping

from sash.errors import HistoryError
from sash.testing.histories.notation import parse
from sash.testing.histories.serialization_graph import Query, SerializationGraph
from sash.window_store.scheduling.recorder import Recorder

__all__ = ["Recorder", "classify"]


def classify(history: str, n: int, lengths: Mapping[str, int] | None = None) -> set[str]:
    """Which of serializable, window-serializable and latest-window-serializable a history is.

    Queries that were aborted or have not committed do not count. `lengths` says of queries how many of the youngest
    sub-windows they were to read: that they read exactly these is then checked as well.
    """
    if n < 1:
        raise HistoryError(f"a window has at least one sub-window, not {n}")
    graph = SerializationGraph(parse(history), n)
    if not graph.acyclic():
        return set()
    levels = {"serializable"}
    wanted = lengths or {}
    if all(_one_state(query) and _youngest(query, query.newest, wanted) for query in graph.queries):
        levels.add("window-serializable")
        if all(_latest_state(query) and _youngest(query, query.latest, wanted) for query in graph.queries):
            levels.add("latest-window-serializable")
    return levels


def _one_state(query: Query) -> bool:
    """Theorem 1: whatever is serialized before the query is older than all that is serialized after it."""
    return not query.before or not query.after or max(query.before) < min(query.after)


def _latest_state(query: Query) -> bool:
    """Theorem 2: no update that committed before the query is serialized after it."""
    return all(update > query.latest for update in query.after)


def _youngest(query: Query, state: int, lengths: Mapping[str, int]) -> bool:
    """Whether a query whose length is known read just that many of the youngest sub-windows as of the state."""
    length = lengths.get(query.name, 0)
    return not length or query.versions == set(range(state - length + 1, state + 1))
