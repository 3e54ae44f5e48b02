"""The joins of a leg with small tables: looked up where its rows are packed, not in Spark's own engine.

All rows of a stream go there anyway, for their times, and finding a row's match by hash takes some nanoseconds; Spark would
collect, hash and broadcast the table anew for every batch, which takes longer than the rest of its planning. A large table
is better broadcast, once per executor; and what only Spark can compute keeps the joins below it with Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from sash.physical.shapes import needs_spark
from sash.plan.nodes import Join, Node
from sash.runtime.legs import LegRunner
from sash.spark.legs import relation_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL = 50_000
"""So many rows a table may have: it is indexed in every task, at some 50 ns each."""


@dataclass(frozen=True)
class Lookups:
    """The part of a leg from `node` down to, but without, `below`, whose rows Spark gives; with the tables of its joins."""

    node: Node
    below: Node
    tables: Mapping[Node, pa.Table]

    def runner(self) -> LegRunner:
        """What runs it."""
        return LegRunner(self.node, self.tables, self.below)


def lookups_of(node: Node, relations: Mapping[str, DataFrame]) -> Lookups | None:
    """As much of a leg as can be run where rows are packed, down to its lowest join with a small table."""
    chain = [node]
    while chain[-1].children:
        chain.append(chain[-1].children[0])
    tables: dict[Node, pa.Table] = {}
    found: Lookups | None = None
    for part in chain[:-1]:
        if needs_spark(part):
            break
        if isinstance(part, Join):
            table = relation_table(part.right, relations, SMALL + 1)
            if table.num_rows > SMALL:
                break
            tables[part.right] = table
            found = Lookups(node, part.left, dict(tables))
    return found
