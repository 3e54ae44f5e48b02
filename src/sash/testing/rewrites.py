"""`show` prints what one rule of the optimizer does to a query; the rules' docstrings use it for their examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sash.optimizer.rules.merge_projections import merge_projections
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.nodes import Node
from sash.plan.statistics import Statistics
from sash.plan.tree import tree
from sash.plan.types import BIGINT, STRING, Field
from sash.sql import parse

_STREAM = (Field("ts", BIGINT), Field("k", BIGINT), Field("v", BIGINT))
_TABLE = (Field("k", BIGINT), Field("name", STRING))
CATALOG = Catalog(
    {
        name: StreamEntry(name, _STREAM, "ts", Statistics(rate, distinct={"k": 50}))
        for name, rate in (("s", 100.0), ("r", 100.0), ("slow", 1.0), ("fast", 1_000.0))
    },
    {"t": RelationEntry("t", _TABLE), "prices": RelationEntry("prices", _TABLE, changes=True, key=(0,))},
)
"""Streams s, r, slow and fast of (ts, k, v); t (k, name), which never changes, and prices (k, name), which does."""


def show(rule: Callable[[Node], Node | Iterable[Node]], sql: str) -> None:
    """Print the plan of the query as written, and after the rule, or its first proposal, has been applied."""
    before = parse(sql, CATALOG)
    if rule is not merge_projections:
        before = merge_projections(before)
    made = rule(before)
    after = next(iter(made)) if isinstance(made, Iterable) else made
    print(tree(before), "=>", tree(merge_projections(after)), sep="\n")  # noqa: T201  (that is what it is for)
