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

from collections.abc import Mapping

from sash.errors import HistoryError
from sash.testing.histories.notation import parse_history
from sash.testing.histories.serialization_graph import CommittedQuery, SerializationGraph


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
