"""Joins that queries of a job share although they read other columns of them.

Alone, a query gives its joins only the columns that it reads (`push_down_projection`), so COUNT(*) and SUM(price) over one
join are two joins. Here the largest inner joins of all queries are compared as if nothing had been dropped. Those that join
the same inputs in the same way can be one join with the columns that any of them reads, above which every query picks its
own. The caller decides whether that pays: rows are kept and matched once, but the results go to other stages.

A job that goes on from a checkpoint has logs with the columns of its old joins. A wider join would begin with empty windows,
so the joins of queries that the old job had get no columns beyond those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from sash.optimizer.rewriting import columns
from sash.optimizer.rules.merge_projections import merge_projections
from sash.optimizer.rules.push_down_projection import prune
from sash.plan.canonical import canonical
from sash.plan.expressions import Column, Expression, columns_of, remap, substitute
from sash.plan.nodes import Filter, Join, Node, Project, with_children
from sash.plan.patterns import looked_up_side
from sash.plan.tree import tree

JoinColumns = Mapping[str, Sequence[int]]
"""The columns that the joins of a query have, as positions among all columns of their inputs, by a digest of the join."""

Costs = Callable[[Mapping[str, Node], frozenset[Node]], float]
"""The cost of running these queries, given by name, together, if they share the joins with these canonical forms."""


@dataclass(frozen=True)
class WideJoin:
    """A join that queries could share: the names of its columns, and what the queries cost with and without it."""

    queries: tuple[str, ...]
    columns: tuple[str, ...]
    together: float
    apart: float

    @property
    def pays(self) -> bool:
        """Whether the queries share it."""
        return self.together < self.apart


@dataclass(frozen=True)
class WidenedJoins:
    """The plans of the queries, the canonical forms of the joins that they share, the joins that were compared, and the
    columns that the joins of each query have."""

    plans: Mapping[str, Node] = field(default_factory=dict)
    shared: frozenset[Node] = frozenset()
    compared: tuple[WideJoin, ...] = ()
    columns: Mapping[str, JoinColumns] = field(default_factory=dict)


def widen_joins(plans: Mapping[str, Node], known: Mapping[str, JoinColumns], costs: Costs) -> WidenedJoins:
    """Let queries, given by name, share joins that differ in columns, where they cost less then.

    `known` has the queries of an earlier job, and the columns of their joins.
    """
    groups: dict[Node, list[_Reader]] = {}
    for name, plan in plans.items():
        for join in _joins(plan):
            opened = _opened(join)
            groups.setdefault(canonical(opened.node), []).append(_Reader(name, join, opened))
    made, shared = dict(plans), set[Node]()
    compared: list[WideJoin] = []
    has: dict[str, dict[str, Sequence[int]]] = {name: {} for name in plans}
    for form, readers in groups.items():
        digest = _digest(form)
        limits = {name: joins.get(digest, ()) for name, joins in known.items()}
        for together in _parts(readers, limits):
            for one in together:
                has[one.query][digest] = sorted(one.read)
            names = tuple(dict.fromkeys(one.query for one in together))
            if len(names) < 2 or len({canonical(one.join) for one in together}) < 2:
                continue
            read = frozenset[int]().union(*(one.read for one in together))
            wide = canonical(prune(together[0].opened.node, read)[0])
            apart = {name: plans[name] for name in names}
            joined = {
                name: merge_projections(_replaced(plans[name], {one.join: one.over(read) for one in together}))
                for name in names
            }
            shown = tuple(field.name for field in prune(together[0].opened.node, read)[0].schema)
            compared.append(WideJoin(names, shown, costs(joined, frozenset({wide})), costs(apart, frozenset())))
            if compared[-1].pays:
                shared.add(wide)
                for one in together:
                    has[one.query][digest] = sorted(read)
                    made[one.query] = _replaced(made[one.query], {one.join: one.over(read)})
    merged = {name: plan if plan is plans[name] else merge_projections(plan) for name, plan in made.items()}
    return WidenedJoins(merged, frozenset(shared), tuple(compared), has)


@dataclass(frozen=True)
class _Opened:
    """A join of inputs with all of their columns, and the columns of the original join as expressions over it."""

    node: Node
    outputs: tuple[Expression, ...]


@dataclass(frozen=True)
class _Reader:
    """A join of a query."""

    query: str
    join: Join
    opened: _Opened

    @cached_property
    def read(self) -> frozenset[int]:
        """The columns that the join has."""
        return frozenset[int]().union(*map(columns_of, self.opened.outputs))

    def over(self, read: frozenset[int]) -> Node:
        """The join as columns of the one that has all these."""
        wide, at = prune(self.opened.node, read)
        names = tuple(field.name for field in self.join.schema)
        return Project(wide, names, tuple(remap(output, at) for output in self.opened.outputs))


def _parts(readers: Sequence[_Reader], limits: Mapping[str, Sequence[int]]) -> Iterator[list[_Reader]]:
    """The readers of one join in parts that may share it; a query with a limit gets no columns beyond it."""
    parts: dict[frozenset[int], list[_Reader]] = {}
    free = [one for one in readers if one.query not in limits]
    for one in readers:
        if one.query in limits:
            limit = frozenset(limits[one.query])
            if not one.read <= limit:
                limit = one.read
            parts.setdefault(limit, []).append(one)
    alone: list[_Reader] = []
    for one in free:
        fitting = [limit for limit in parts if one.read <= limit]
        (parts[min(fitting, key=len)] if fitting else alone).append(one)
    yield from parts.values()
    if alone:
        yield alone


def _joins(node: Node) -> Iterator[Join]:
    """The largest inner joins of a plan. Those below other joins are left alone."""
    if isinstance(node, Join) and _is_opened(node):
        yield node
    else:
        for child in node.children:
            yield from _joins(child)


def _is_opened(join: Join) -> bool:
    """Whether it is an inner join that keeps the rows of both sides."""
    return join.kind == "inner" and looked_up_side(join) is None


def _opened(node: Node) -> _Opened:
    match node:
        case Project() if all(isinstance(made, Column) for made in node.expressions):
            below = _opened(node.child)
            return _Opened(below.node, tuple(substitute(made, below.outputs) for made in node.expressions))
        case Filter():
            below = _opened(node.child)
            return _Opened(Filter(below.node, substitute(node.predicate, below.outputs)), below.outputs)
        case Join() if _is_opened(node):
            left, right = _opened(node.left), _opened(node.right)
            border = len(left.node.schema)
            moved = {position: position + border for position in range(len(right.node.schema))}
            outputs = (*left.outputs, *(remap(output, moved) for output in right.outputs))
            keys = tuple((_position(left.outputs[a]), _position(right.outputs[b])) for a, b in node.keys)
            condition = None if node.condition is None else substitute(node.condition, outputs)
            return _Opened(Join(left.node, right.node, "inner", keys, condition), outputs)
        case _:
            return _Opened(node, columns(node))


def _position(column: Expression) -> int:
    assert isinstance(column, Column)
    return column.index


def _digest(form: Node) -> str:
    return hashlib.sha256(tree(form).encode()).hexdigest()[:12]


def _replaced(plan: Node, by: Mapping[Node, Node]) -> Node:
    if plan in by:
        return by[plan]
    children = tuple(_replaced(child, by) for child in plan.children)
    if all(new is old for new, old in zip(children, plan.children, strict=True)):
        return plan
    return with_children(plan, children)
