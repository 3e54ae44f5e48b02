"""Joins of a leg with small tables, which run in scatter instead of Spark's engine.

All rows of a stream go through scatter anyway, for their times, and a lookup by hash takes some nanoseconds. Spark would
collect, hash and broadcast the table anew for every batch, which takes longer than the rest of its planning. Large tables
are still broadcast by Spark, once per executor, and so are those below an expression that only Spark can compute.
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
"""The largest table that is looked up, in rows: every task indexes it, at some 50 ns per row."""


@dataclass(frozen=True)
class Lookups:
    """The part of a leg from `node` down to its input `below`, which Spark computes, with the tables of its joins."""

    node: Node
    below: Node
    tables: Mapping[Node, pa.Table]

    def runner(self) -> LegRunner:
        """Create a runner for this part of the leg."""
        return LegRunner(self.node, self.tables, self.below)


def find_lookups(node: Node, relations: Mapping[str, DataFrame]) -> Lookups | None:
    """Find the part of a leg that can run in scatter: from its top to its lowest join with a small table."""
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
