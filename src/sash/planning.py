"""From text to a physical plan: parse, check, optimize, plan; every runtime and EXPLAIN use this path."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sash.arguments import check_columns, shown
from sash.display import counted
from sash.errors import CatalogError, UnsupportedSqlError
from sash.optimizer.optimizer import Optimized, optimize
from sash.optimizer.widen_joins import JoinColumns, WidenedJoins
from sash.physical.common_rows import share_windows
from sash.physical.explain import explain
from sash.physical.explain_job import explain_job
from sash.physical.nodes import Output, PhysicalPlan
from sash.physical.planner import plan_job, plan_physical, share_joins
from sash.physical.retractions import EXPIRES
from sash.plan.alike import Template
from sash.plan.annotated import PlanNode, annotated
from sash.plan.catalog import Catalog
from sash.plan.keys import keys
from sash.plan.nodes import Node, Relation, SortKey, Stream, walk
from sash.plan.options import DEFAULT, Mode, Options
from sash.plan.patterns import Pattern, pattern
from sash.plan.relations import refuse_misused_relations
from sash.plan.sketches import refuse_sketches_of_rows
from sash.plan.snapshot_aggregates import exact_aggregates
from sash.plan.tree import tree
from sash.plan.types import Schema
from sash.plan.unbounded import refuse_unbounded
from sash.runtime.analyze import Actual, remarks
from sash.sql import parse_query


@dataclass(frozen=True)
class Planned:
    """A planned query: its text, the logical plan as written, the optimizer's steps, and the physical plan."""

    sql: str
    written: Node
    optimization: Optimized
    physical: PhysicalPlan
    options: Options = DEFAULT
    order: tuple[SortKey, ...] = ()
    """The order in which the rows of the answer are shown; the answer itself is a bag."""
    typed: Schema = ()
    """The columns of the answer, if some have types that only SQL has: operators know their storage."""

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
        return self.typed or self.written.schema

    @property
    def has_expiration(self) -> bool:
        """Whether the answer has a last column with the expiration time of each row."""
        return self.physical.schema[-1:] == (EXPIRES,)

    @property
    def output(self) -> Schema:
        """The columns of the answer, and the expiration time where the answer has it."""
        return (*self.schema, EXPIRES) if self.has_expiration else self.schema

    def with_expiration(self, shards: int | None = None, *, premature: bool = False) -> Planned:
        """The same query, with the expiration times of its rows where these are known beforehand; with `premature`, also
        where rows may be retracted before (above a negation)."""
        physical = plan_physical(self.optimized, shards, self.options, with_expiration=True)
        strict = any(child.expiry == "strict" for child in physical.root.root.inputs)
        return self if strict and not premature else replace(self, physical=physical)

    def with_shards(self, shards: int) -> Planned:
        """The same query, planned for another number of shards."""
        physical = plan_physical(self.optimized, shards, self.options, with_expiration=self.has_expiration)
        return replace(self, physical=physical)

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

    def key(self, names: Sequence[str] | None, *, needed: bool) -> tuple[int, ...] | None:
        """The key columns of the answer, as the user names them or as derived from the plan."""
        if names is None or not needed:
            known = sorted(keys(self.optimized), key=lambda key: (len(key), sorted(key)))
            if needed and not known:
                raise CatalogError("upsert needs rows with a key: select all GROUP BY columns, or use mode='net'")
            return tuple(sorted(known[0])) if known else None
        names = check_columns("key", names)
        columns = [field.name.lower() for field in self.schema]
        missing = [name for name in names if name.lower() not in columns]
        if missing:
            existing = ", ".join(field.name for field in self.schema)
            raise CatalogError(f"key column {shown(missing[0])} is not in the answer; it has {existing}")
        if not names:
            raise CatalogError("key names no columns: leave it out to use the key of the query")
        return tuple(columns.index(name.lower()) for name in names)

    def explain(self, *, all: bool = False, actual: Actual | None = None) -> str:  # noqa: A002  (as in EXPLAIN ALL)
        """The plan as text: update patterns, estimates, rules, stages, partition keys, buffers and legs.

        With `all`, also the plans that were considered and cost more; with `actual`, what each operator did in a run, beside
        the estimates.
        """
        added = {} if actual is None else remarks(self.physical, actual)
        return explain(self.sql, self.optimization, self.physical, self.order, alternatives=all, remarks=added)


def plan_query(
    sql: str,
    catalog: Catalog,
    disable: Collection[str] = frozenset(),
    shards: int | None = None,
    options: Options = DEFAULT,
) -> Planned:
    """Plan a query against the catalog, for a number of shards where it is known.

    `disable` names rules of the optimizer to leave out.
    """
    query = parse_query(sql, catalog)
    try:
        written = exact_aggregates(query.plan)
        refuse_unbounded(written)
        refuse_sketches_of_rows(written)
        optimization = optimize(written, disable=disable)
        refuse_misused_relations(optimization.plan)
        physical = plan_physical(optimization.plan, shards, options)
    except RecursionError:
        raise UnsupportedSqlError("the query is nested too deeply: use fewer subqueries inside each other") from None
    return Planned(sql, written, optimization, physical, options, query.order, query.schema)


@dataclass(frozen=True)
class PlannedQuery:
    """A query of a job: its name, and its plan if it ran alone."""

    name: str
    planned: Planned


@dataclass(frozen=True)
class AlikeQuery:
    """A query that runs with others that differ in constants: its name, its number, its constants, and its plan alone."""

    name: str
    number: int
    values: tuple[Any, ...]
    planned: Planned


@dataclass(frozen=True)
class PlannedTemplate:
    """Alike queries planned as one, with the mode and the key of their output, which has the number of a query first."""

    template: Template
    planned: Planned
    mode: Mode
    key: tuple[int, ...] | None
    queries: tuple[AlikeQuery, ...]

    @property
    def name(self) -> str:
        """The name of the output."""
        return self.template.name

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows of the table of constants: the number of every query, and its constants."""
        return [(query.number, *query.values) for query in self.queries]


def plan_template(template: Template, shards: int | None = None, options: Options = DEFAULT) -> Planned:
    """The plan of all queries of a template; its answers have the number of the query as their first column."""
    optimization = optimize(template.plan)
    physical = plan_physical(optimization.plan, shards, options)
    return Planned(tree(template.shape), template.plan, optimization, physical, options)


@dataclass(frozen=True)
class PlannedJob:
    """Queries planned together. `physical` is the plan that runs, with an output for each of `queries`, in their order.

    Alike queries are one of these; `templates` has the queries that it stands for. `joins` are those that
    could be shared.
    """

    queries: tuple[PlannedQuery, ...]
    physical: PhysicalPlan
    templates: tuple[PlannedTemplate, ...] = ()
    joins: WidenedJoins = field(default_factory=WidenedJoins)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the queries read, by name."""
        return tuple(dict.fromkeys(name for query in self.queries for name in query.planned.streams))

    @property
    def changing(self) -> tuple[str, ...]:
        """The relations that change while the job runs, by name."""
        return tuple(dict.fromkeys(name for query in self.queries for name in query.planned.changing))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the outputs: those of queries, and of templates of alike ones."""
        return tuple(query.name for query in self.queries)

    @cached_property
    def members(self) -> dict[str, tuple[PlannedTemplate, AlikeQuery]]:
        """The alike queries by name, with their templates."""
        return {query.name: (template, query) for template in self.templates for query in template.queries}

    def planned(self, name: str) -> Planned:
        """The query of that name, as planned alone."""
        if name in self.members:
            return self.members[name][1].planned
        return next(query.planned for query in self.queries if query.name == name)

    def output(self, name: str) -> Output:
        """The output of a query; that of its template, if it is one of alike queries."""
        found = self.members[name][0].name if name in self.members else name
        return next(output for output in self.physical.outputs if output.query == found)

    def has_expiration(self, name: str) -> bool:
        """Whether the answer of a query has a last column with the expiration time of each row."""
        return self.physical.stages[self.output(name).stage].root.schema[-1:] == (EXPIRES,)

    def columns(self, name: str) -> Schema:
        """The columns of a query's answer, and the expiration time where it has it.

        Equal queries share an output stage, whose columns have the names of the first; these are the query's own.
        """
        schema = self.planned(name).schema
        return (*schema, EXPIRES) if self.has_expiration(name) else schema

    def explain(self) -> str:
        """The plan of the job as text (EXPLAIN JOB): its queries and stages, what is shared, and what that saves."""
        alike = {template.name: template.queries for template in self.templates}
        alone = {query.name: query.planned.physical for query in self.queries if query.name not in alike}
        alone |= {query.name: query.planned.physical for queries in alike.values() for query in queries}
        texts = {
            query.name: _alike_text(alike[query.name]) if query.name in alike else query.planned.sql
            for query in self.queries
        }
        return explain_job(texts, alone, self.physical, self.joins.compared)


def _alike_text(queries: Sequence[AlikeQuery]) -> str:
    first = queries[0]
    head = f"{counted(len(queries), 'query', 'queries')} that differ in constants, such as {first.name}:"
    return f"{head}\n{first.planned.sql.strip()}"


def plan_together(
    queries: Mapping[str, Planned],
    shards: int | None = None,
    with_expiration: Collection[str] = (),
    templates: Sequence[PlannedTemplate] = (),
    joins: Mapping[str, JoinColumns] | None = None,
) -> PlannedJob:
    """Plan queries, given by name, as one job. `with_expiration` names those whose answers have expiration times.

    `templates` are those of the alike queries among them, and `joins` what the joins of a job have that it goes on from.
    """
    alike = {query.name for template in templates for query in template.queries}
    planned = {name: one for name, one in queries.items() if name not in alike}
    planned |= {template.name: template.planned for template in templates}
    texts = [(name, one.optimized, one.options) for name, one in planned.items()]
    given, widened = share_joins(texts, shards, joins or {})
    physical = share_windows(plan_job(given, shards, with_expiration, widened.shared))
    made = tuple(PlannedQuery(name, one) for name, one in planned.items())
    return PlannedJob(made, physical, tuple(templates), widened)
