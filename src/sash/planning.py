"""From text to a physical plan: parse, check, optimize, lower; the one path that every runtime and EXPLAIN shares."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sash.optimizer.optimizer import Optimized, optimize_in_steps
from sash.physical.explain import explain
from sash.physical.nodes import PhysicalPlan
from sash.physical.stages import plan_stages
from sash.physical.strategies.registry import strategy_of
from sash.plan.catalog import Catalog
from sash.plan.nodes import Node, Stream, walk
from sash.plan.options import DEFAULT, Options
from sash.plan.patterns import Pattern, pattern, refuse_unbounded
from sash.plan.types import Schema
from sash.sql import parse


@dataclass(frozen=True)
class Planned:
    """A query planned: its text, the logical plan as written, how it was optimized, and the physical plan."""

    sql: str
    written: Node
    optimization: Optimized
    physical: PhysicalPlan
    options: Options = DEFAULT

    @property
    def optimized(self) -> Node:
        """The logical plan that runs."""
        return self.optimization.plan

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of the optimizer that changed the plan."""
        return self.optimization.rules

    @property
    def schema(self) -> Schema:
        """The columns of the answer."""
        return self.written.schema

    @property
    def pattern(self) -> Pattern:
        """The update pattern of the answer."""
        return pattern(self.optimized)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads, by name."""
        return tuple(dict.fromkeys(node.name for node in walk(self.written) if isinstance(node, Stream)))

    def explain(self, *, all: bool = False) -> str:  # noqa: A002  (as in EXPLAIN ALL)
        """The plan as text: update patterns, estimates, rules, stages, partition keys, buffers, and what runs straight
        above the sources. With `all`, also the plans that were considered and cost more."""
        return explain(self.sql, self.optimization, self.physical, alternatives=all)


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
    optimization = optimize_in_steps(written, disable=disable)
    physical = plan_stages(optimization.plan, shards, strategy_of(options.strategy))
    return Planned(sql, written, optimization, physical, options)
