"""From text to a physical plan: parse, check, optimize, lower; the one path that every runtime and EXPLAIN shares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sash.optimizer.optimizer import optimize
from sash.physical.explain import explain
from sash.physical.nodes import PhysicalPlan
from sash.physical.stages import plan_stages
from sash.plan.annotated import PlanNode, annotated
from sash.plan.catalog import Catalog
from sash.plan.nodes import Node, Relation, Stream, walk
from sash.plan.options import DEFAULT, Options
from sash.plan.patterns import Pattern, pattern, refuse_unbounded
from sash.plan.relations import refuse_misused_relations
from sash.plan.types import Schema
from sash.sql import parse


@dataclass(frozen=True)
class Planned:
    """A query planned: its text, the logical plan as written and as optimized, and the physical plan."""

    sql: str
    written: Node
    optimized: Node
    rules: tuple[str, ...]
    physical: PhysicalPlan
    options: Options = DEFAULT

    @property
    def schema(self) -> Schema:
        """The columns of the answer."""
        return self.written.schema

    @property
    def plan(self) -> PlanNode:
        """The optimized logical plan, to be walked."""
        return annotated(self.optimized)

    @property
    def pattern(self) -> Pattern:
        """The update pattern of the answer."""
        return pattern(self.optimized)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, by name."""
        return tuple(dict.fromkeys(node.name for node in walk(self.written) if isinstance(node, Stream)))

    @property
    def changing(self) -> tuple[str, ...]:
        """The relations that change while the query runs, by name."""
        found = (node.name for node in walk(self.written) if isinstance(node, Relation) and node.changes)
        return tuple(dict.fromkeys(found))

    def explain(self) -> str:
        """The plan as text: update patterns, stages, partition keys, buffers, and what runs straight above the sources."""
        return explain(self.sql, self.optimized, self.rules, self.physical)


def plan_query(
    sql: str,
    catalog: Catalog,
    disable: Collection[str] = frozenset(),
    shards: int | None = None,
    options: Options = DEFAULT,
) -> Planned:
    """Plan a query against the catalog, for so many shards if that is known.

    `disable` names rules of the optimizer that are not to be used.
    """
    written = parse(sql, catalog)
    refuse_unbounded(written)
    optimized, rules = optimize(written, disable=disable)
    refuse_misused_relations(optimized)
    return Planned(sql, written, optimized, rules, plan_stages(optimized, shards), options)
