"""LATERAL subqueries and subqueries in ON: joins in which one side, or the condition, depends on the other side's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.compound import rewrite, walk
from sash.plan.expressions import Case, Column, Expression, columns_of, conjunction, remap
from sash.plan.nodes import JoinKind, Node
from sash.sql.correlation import OuterScope, numbers_at, outer_references, references_of
from sash.sql.functions import call
from sash.sql.joins import Branch, Tree, build, width
from sash.sql.ordering import project
from sash.sql.scope import shift
from sash.sql.source import SqlText
from sash.sql.subqueries import Subqueries, as_it_is
from sash.sql.subquery_joins import number_of, place
from sash.sql.unnesting import TRUE, Pulled, Unnesting, columns, named


def lateral_join(
    source: SqlText, left: Tree, plan: Node, own: OuterScope, kind: JoinKind, has_condition: bool, where: exp.Expr
) -> tuple[Branch, tuple[Expression, ...]]:
    """The join of FROM so far with a subquery that refers to its columns, and the columns of the subquery in the join."""
    if kind not in ("inner", "left"):
        raise source.error(
            UnsupportedSqlError,
            f"Sash does not run {kind.upper()} JOIN LATERAL; LATERAL takes CROSS, INNER or LEFT JOIN",
            where,
        )
    unnesting = Unnesting(source, own.depth, left, own.references, where)
    pulled = unnesting.pull(plan)
    border = width(left)
    if pulled.otherwise is not None and not has_condition:
        return _with_row_otherwise(left, unnesting, pulled, border)
    pulled = unnesting.plain(pulled)
    if kind == "left":
        pulled = _with_columns(unnesting.settled(pulled))
    outputs = tuple(place(unnesting, output, border) for output in pulled.outputs)
    conditions = [place(unnesting, part, border) for part in pulled.predicates]
    return Branch(left, pulled.node, kind, conditions, null_safe=True), outputs


def _with_row_otherwise(
    left: Tree, unnesting: Unnesting, pulled: Pulled, border: int
) -> tuple[Branch, tuple[Expression, ...]]:
    """The join with a global aggregate, which has exactly one row for every row on the left."""
    assert pulled.otherwise is not None
    marked = named(pulled.node, (*columns(pulled.node), TRUE))
    there = call("is_not_null", [shift(columns(marked)[-1], border)])
    outputs = tuple(
        Case(((there, place(unnesting, output, border)),), place(unnesting, other, border), output.dtype)
        for output, other in zip(pulled.outputs, pulled.otherwise, strict=True)
    )
    conditions = [place(unnesting, part, border) for part in pulled.predicates]
    return Branch(left, marked, "left", conditions, null_safe=True), outputs


def _with_columns(pulled: Pulled) -> Pulled:
    """The subquery with plain columns as its outputs, so that a left join can make them NULL."""
    if all(isinstance(output, Column) for output in pulled.outputs):
        return pulled
    node = named(pulled.node, (*columns(pulled.node), *pulled.outputs))
    return replace(pulled, node=node, outputs=columns(node)[-len(pulled.outputs) :])


def join_on(branch: Branch, subqueries: Subqueries, parts: Sequence[Expression], on: exp.Expr) -> Node:
    """The join on these further conditions, which have subqueries."""
    if branch.kind == "inner":
        predicate = conjunction(list(parts))
        assert predicate is not None
        return subqueries.filter(build(branch), predicate, as_it_is)
    sides = _Sides(branch, subqueries, on)
    for part in parts:
        sides.add(part)
    return sides.joined()


class _Sides:
    """The two sides of a join other than an inner one, joined with the subqueries that refer to them."""

    def __init__(self, branch: Branch, subqueries: Subqueries, on: exp.Expr) -> None:
        self._branch = branch
        self._subqueries = subqueries
        self._on = on
        self._border = width(branch.left)
        self._left, self._right = build(branch.left), build(branch.right)
        self._widths = len(self._left.schema), len(self._right.schema)
        self._made: dict[Expression, tuple[str, Expression]] = {}
        self._conditions: list[Expression] = []

    def add(self, part: Expression) -> None:
        """Add a condition; one that concerns the side without padding alone selects its rows."""
        kind = self._branch.kind
        sides = self._sides_of(part)
        if kind in ("left", "semi", "anti") and sides <= {"right"}:
            shifted = shift(part, -self._border)
            self._right = self._subqueries.filter(self._right, shifted, lambda each, _: shift(each, -self._border))
        elif kind == "right" and sides <= {"left"}:
            self._left = self._subqueries.filter(self._left, part, as_it_is)
        else:
            self._conditions.append(part)

    def joined(self) -> Node:
        """The join, with the columns of both sides as they were."""
        for part in self._conditions:
            for each in walk(part):
                if number_of(each) is not None and each not in self._made:
                    self._attach(each)
        left, right = self._left, self._right
        border = len(left.schema)
        moved = {
            index: index if index < self._border else index + border - self._border for index in range(self._total)
        }

        def change(part: Expression) -> Expression | None:
            if part not in self._made:
                return remap(part, moved) if isinstance(part, Column) else None
            side, value = self._made[part]
            return value if side == "left" else shift(value, border)

        conditions = [rewrite(part, change) for part in (*self._branch.conditions, *self._conditions)]
        made = build(replace(self._branch, left=left, right=right, conditions=conditions))
        kept = [*range(self._border)]
        if self._branch.kind not in ("semi", "anti"):
            kept += [moved[index] for index in range(self._border, self._total)]
        places = columns(made)
        return project(made, [made.schema[index].name for index in kept], [places[index] for index in kept])

    @property
    def _total(self) -> int:
        return sum(self._widths)

    def _sides_of(self, part: Expression) -> set[str]:
        """The sides whose columns the condition reads, in subqueries too."""
        read = set(columns_of(part))
        for each in walk(part):
            if (found := number_of(each)) is not None:
                read |= self._read_by(found[0])
        return {"left" if column < self._border else "right" for column in read}

    def _read_by(self, number: int) -> set[int]:
        subquery, own = self._subqueries.found[number], self._subqueries.own
        used = numbers_at(own.depth, outer_references(subquery.plan) | references_of(subquery.operands))
        return {column for each in used for column in columns_of(own.references[each])}

    def _attach(self, placeholder: Expression) -> None:
        found = number_of(placeholder)
        assert found is not None
        sides = {"left" if column < self._border else "right" for column in self._read_by(found[0])}
        if len(sides) > 1:
            raise self._subqueries.source.error(
                UnsupportedSqlError,
                f"a subquery in ON of {self._branch.kind.upper()} JOIN may refer to one side of the join, not to both",
                self._on,
            )
        if sides == {"right"}:
            self._right, (value,) = self._subqueries.attach(
                self._right, [placeholder], lambda each, _: shift(each, -self._border)
            )
        else:
            self._left, (value,) = self._subqueries.attach(self._left, [placeholder], as_it_is)
        self._made[placeholder] = ("right" if sides == {"right"} else "left", value)
