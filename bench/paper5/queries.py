"""Queries 1 to 5 of paper 5 (section 6.1, Figures 6 and 8) as SQL over links."""

from __future__ import annotations

from dataclasses import dataclass

STRATEGIES = ("negative-tuple", "direct", "update-pattern-aware")

JOIN = (
    "SELECT a.src, a.dst, b.dst AS other FROM link1 [{w}] AS a JOIN link2 [{w}] AS b ON a.src = b.src "
    "WHERE a.protocol = '{p}' AND b.protocol = '{p}'"
)
NEGATION = "SELECT src FROM link1 [{w}] EXCEPT ALL SELECT src FROM link2 [{w}]"
DISTINCT_JOIN = (
    "SELECT a.src FROM (SELECT DISTINCT src FROM link1 [{w}]) AS a JOIN (SELECT DISTINCT src FROM link2 [{w}]) AS b "
    "ON a.src = b.src"
)
BELOW = (
    "SELECT t.src, c.dst FROM (SELECT src FROM link1 [{w}] EXCEPT ALL SELECT src FROM link2 [{w}]) AS t "
    "JOIN link3 [{w}] AS c ON t.src = c.src WHERE c.protocol = '{p}'"
)
ABOVE = (
    "SELECT a.src, c.dst FROM link1 [{w}] AS a JOIN link3 [{w}] AS c ON a.src = c.src WHERE c.protocol = '{p}' "
    "EXCEPT ALL "
    "SELECT b.src, c.dst FROM link2 [{w}] AS b JOIN link3 [{w}] AS c ON b.src = c.src WHERE c.protocol = '{p}'"
)
CHOICES = frozenset({"pull_up_negation", "push_down_negation"})
"""The rules that choose between the two forms of Query 5."""


@dataclass(frozen=True)
class PaperQuery:
    """A query of the paper: its figure, its text, and whether its protocol is the unselective one.

    `gain` is the paper's speed-up of UPA at the largest windows over negative tuples and direct. `free` queries have no
    negation. A `fixed` query is run in the form in which it is written.
    """

    name: str
    figure: str
    title: str
    sql: str
    links: tuple[str, ...]
    unselective: bool = False
    gain: tuple[float, float] | None = None
    free: bool = True
    fixed: bool = False

    def text(self, microseconds: int, protocol: str) -> str:
        """The query over windows of this length."""
        return self.sql.format(w=f"RANGE {microseconds} MICROSECONDS", p=protocol)


_TWO, _THREE = ("link1", "link2"), ("link1", "link2", "link3")

CASES = (
    PaperQuery("q1-ftp", "Fig 9", "Query 1: join, selective protocol", JOIN, _TWO, gain=(2, 2)),
    PaperQuery("q1-telnet", "Fig 10", "Query 1: join, unselective protocol", JOIN, _TWO, unselective=True, gain=(10, 10)),
    PaperQuery("q2-src", "Figs 11, 13", "Query 2: DISTINCT sources", "SELECT DISTINCT src FROM link1 [{w}]", ("link1",), gain=(10, 10)),
    PaperQuery("q2-pairs", "Figs 12, 14", "Query 2: DISTINCT pairs", "SELECT DISTINCT src, dst FROM link1 [{w}]", ("link1",), gain=(2, 2)),
    PaperQuery("q3", "Fig 15", "Query 3: negation", NEGATION, _TWO, free=False),
    PaperQuery("q4", "Fig 16", "Query 4: join of DISTINCTs", DISTINCT_JOIN, _TWO, gain=(2, 2)),
    PaperQuery("q5-below", "Fig 17", "Query 5: negation below the join", BELOW, _THREE, free=False, fixed=True),
    PaperQuery("q5-above", "Fig 17", "Query 5: negation above the join", ABOVE, _THREE, free=False, fixed=True),
)  # fmt: skip
