"""Subqueries in expressions: IN, EXISTS, scalar subqueries, and comparisons with ANY and ALL.

While expressions are bound, a subquery is a placeholder, `subquery(number, column)`. Then `Subqueries.filter` and
`Subqueries.attach` join the subqueries with the plan of the query around them, and the placeholders become columns:

- EXISTS and IN as conditions of WHERE, HAVING or ON are semi joins, NOT EXISTS an anti join, and NOT IN three anti joins:
  with the equal rows, with the rows that have a NULL, and for rows with a NULL of their own with all rows;
- elsewhere each is a mark: a left join with the distinct values of the subquery, and a test whether there is a match;
- a scalar subquery is a left join with its only row, and fails if there are two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan.compound import balanced, children, rewrite, walk
from sash.plan.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
)
from sash.plan.nodes import Aggregate, Filter, Node
from sash.plan.types import BIGINT, BOOLEAN, INT
from sash.sql.coercion import coerce, common_type
from sash.sql.correlation import OuterScope, Scopes, numbers_at, outer_references, references_of
from sash.sql.functions import call
from sash.sql.naming import REFERENCES
from sash.sql.nullability import STRICT
from sash.sql.ordering import project
from sash.sql.source import SqlText
from sash.sql.subquery_joins import SUBQUERY, Subquery, SubqueryJoins, Translate, number_of
from sash.sql.unnesting import TRUE, columns, named


@dataclass
class Subqueries:
    """The subqueries in the expressions of one query; `query` binds a nested query, given the queries around it."""

    source: SqlText
    query: Callable[[exp.Expr, Scopes], Node]
    around: Scopes
    own: OuterScope
    found: list[Subquery] = field(default_factory=list)
    knows_null: bool = False
    """Whether IN is NULL where it is neither true nor false; in Spark it is false then, but for ON of outer joins."""

    def exists(self, node: exp.Expr, query: exp.Expr) -> Expression:
        """EXISTS (query)."""
        return self._placeholder(Subquery("exists", self._bound(query, node), node=node), 0, BOOLEAN)

    def contains(
        self, values: Sequence[Expression], node: exp.Expr, query: exp.Expr, knows_null: bool = False
    ) -> Expression:
        """`values IN (query)`."""
        plan = self._bound(query, node)
        if len(plan.schema) != len(values):
            raise self.source.error(
                TypeMismatchError, f"IN compares {len(values)} columns with a subquery of {len(plan.schema)}", node
            )
        for value, column in zip(values, columns(plan), strict=True):
            call("eq", [value, column])
        operands = tuple(self.own.reference(value) for value in values)
        return self._placeholder(Subquery("in", plan, operands, knows_null or self.knows_null, node), 0, BOOLEAN)

    def scalar(self, node: exp.Expr) -> Expression:
        """The only value of a query; NULL if it has no row."""
        plan = self._bound(node, node)
        self._check_single_column(plan, "a scalar subquery", node)
        return self._placeholder(Subquery("scalar", plan, node=node), 0, plan.schema[0].dtype)

    def compare(self, function: str, value: Expression, node: exp.Expr, every: bool) -> Expression:
        """`value = ANY (query)`, `value < ALL (query)` and so on, from the smallest and the largest value of the query."""
        if function == "eq" and not every:
            return self.contains([value], node, node, knows_null=True)
        if function == "ne" and every:
            return call("not", [self.contains([value], node, node, knows_null=True)])
        if not every:
            return call("not", [self.compare(_NEGATED[function], value, node, every=True)])
        plan = self._bound(node, node)
        self._check_single_column(plan, "the subquery after ANY or ALL", node)
        dtype = common_type(value, columns(plan)[0])
        if dtype is None:
            call(function, [value, columns(plan)[0]])
            raise AssertionError(function)
        plan = named(plan, [coerce(columns(plan)[0], dtype)])
        (column,) = columns(plan)
        calls = (
            AggregateCall("count_star", (), BIGINT),
            AggregateCall("count", (column,), BIGINT),
            AggregateCall("min", (column,), dtype),
            AggregateCall("max", (column,), dtype),
        )
        subquery = Subquery("scalar", Aggregate(plan, (), ("rows", "values", "least", "greatest"), calls), node=node)
        rows, known, least, greatest = (
            self._placeholder(subquery, place, part.dtype) for place, part in enumerate(calls)
        )
        tests = [call(function, [value, bound]) for bound in _BOUNDS[function](least, greatest)]
        holds = balanced(tests, lambda one, other: call("and", [one, other]))
        unknown = call("or", [call("is_null", [value]), call("lt", [known, rows])])
        branches = (
            (call("eq", [rows, Literal(0, BIGINT)]), TRUE),
            (call("not", [holds]), Literal(False, BOOLEAN)),
            (unknown, Literal(None, BOOLEAN)),
        )
        return Case(branches, TRUE, BOOLEAN)

    def _bound(self, query: exp.Expr, node: exp.Expr) -> Node:
        """The plan of the query; the node of its expression notes the outer columns that it refers to, for its name."""
        while isinstance(query, exp.Paren) or (isinstance(query, exp.Subquery) and not _has_modifiers(query)):
            query = query.this
        plan = self.query(query, (*self.around, self.own))
        used = [self.own.references[number] for number in numbers_at(self.own.depth, outer_references(plan))]
        node.meta[REFERENCES] = [each.name for each in used if isinstance(each, Column)]
        return plan

    def _check_single_column(self, plan: Node, what: str, node: exp.Expr) -> None:
        if len(plan.schema) != 1:
            raise self.source.error(TypeMismatchError, f"{what} has one column, not {len(plan.schema)}", node)

    def _placeholder(self, subquery: Subquery, column: int, dtype: pa.DataType) -> Expression:
        if subquery not in self.found:
            self.found.append(subquery)
        number = self.found.index(subquery)
        return Call(SUBQUERY, (Literal(number, INT), Literal(column, INT)), dtype)

    def filter(self, node: Node, predicate: Expression, translate: Translate) -> Node:
        """The rows of the node for which the predicate is true; its subqueries become semi and anti joins."""
        parts = conjuncts(self._with_not_in(predicate))
        plain = conjunction([part for part in parts if not has_subquery(part)])
        below = node if plain is None else Filter(node, plain)
        rest = []
        joins = SubqueryJoins(self.source, self.own, below, translate)
        for part in parts:
            negated = isinstance(part, Call) and part.function == "not"
            inner = part.arguments[0] if isinstance(part, Call) and negated else part
            found = number_of(inner)
            subquery = None if found is None else self.found[found[0]]
            nested = subquery is not None and any(map(has_subquery, self._operands(subquery)))
            if found is not None and subquery is not None and subquery.kind != "scalar" and not nested:
                below = joins.semi(below, subquery, negated != (found[1] == 1))
            elif (compared := self._compared(part)) is not None and (
                kept := joins.compared(below, *compared)
            ) is not None:
                below = kept
            elif has_subquery(part):
                rest.append(part)
        remaining = conjunction(rest)
        if remaining is None:
            return below
        needed = frozenset(number for part in rest for number in _needed(part))
        wide, (made,) = self.attach(below, [remaining], translate, needed)
        return project(Filter(wide, made), [f.name for f in node.schema], list(columns(node)))

    def _compared(self, part: Expression) -> tuple[Subquery, Expression, Expression, str] | None:
        """A comparison with an expression over a scalar subquery and no column: the subquery, that expression, the other side
        and the function, which has them in this order."""
        negated = isinstance(part, Call) and part.function == "not"
        inner = part.arguments[0] if isinstance(part, Call) and negated else part
        if not isinstance(inner, Call) or inner.function not in _NEGATED:
            return None
        function = _NEGATED[inner.function] if negated else inner.function
        for (side, other), named_function in zip(
            (inner.arguments, inner.arguments[::-1]), (function, _TURNED[function]), strict=True
        ):
            found = [number for one in walk(side) if (number := number_of(one)) is not None]
            if len(found) == 1 and not columns_of(side) and not has_subquery(other):
                subquery = self.found[found[0][0]]
                return (subquery, side, other, named_function) if subquery.kind == "scalar" else None
        return None

    def attach(
        self,
        node: Node,
        expressions: Sequence[Expression],
        translate: Translate,
        needed: frozenset[int] = frozenset(),
    ) -> tuple[Node, list[Expression]]:
        """The node, which keeps its columns, joined with the subqueries of the expressions, and these over its columns.

        Rows for which a scalar subquery among the `needed` ones is NULL may be left out.
        """
        expressions = [self._with_not_in(each) for each in expressions]
        made: dict[int, list[Expression]] = {}

        def change(part: Expression) -> Expression | None:
            found = number_of(part)
            return None if found is None else made[found[0]][found[1]]

        def translated(expression: Expression, where: exp.Expr) -> Expression:
            return rewrite(translate(expression, where), change)

        joins = SubqueryJoins(self.source, self.own, node, translated)
        for number, used in self._used(expressions):
            node, made[number] = joins.values(node, self.found[number], used, number in needed)
        return node, [rewrite(each, change) for each in expressions]

    def _used(self, expressions: Sequence[Expression]) -> list[tuple[int, set[int]]]:
        """The subqueries in the expressions, and in the operands of these, with their columns; the innermost first."""
        used: dict[int, set[int]] = {}
        pending = list(expressions)
        while pending:
            for part in walk(pending.pop()):
                if (found := number_of(part)) is not None:
                    if found[0] not in used:
                        pending.extend(self._operands(self.found[found[0]]))
                    used.setdefault(found[0], set()).add(found[1])
        return sorted(used.items())

    def _with_not_in(self, expression: Expression) -> Expression:
        """The expression with NOT pushed down to subqueries, and NOT of an IN as a value of its own, as Spark has it."""
        if not has_subquery(expression):
            return expression

        def change(part: Expression) -> Expression | None:
            if not isinstance(part, Call) or part.function != "not":
                return None
            inner = part.arguments[0]
            if isinstance(inner, Call) and inner.function == "not":
                return self._with_not_in(inner.arguments[0])
            if isinstance(inner, Call) and inner.function in ("and", "or"):
                negated = [self._with_not_in(Call("not", (each,), BOOLEAN)) for each in inner.arguments]
                return Call("or" if inner.function == "and" else "and", tuple(negated), BOOLEAN)
            found = number_of(inner)
            if found is None or self.found[found[0]].kind != "in" or self.found[found[0]].knows_null:
                return None
            return Call(SUBQUERY, (Literal(found[0], INT), Literal(1, INT)), BOOLEAN)

        return rewrite(expression, change)

    def _operands(self, subquery: Subquery) -> list[Expression]:
        """The left side of IN as it is written."""
        used = numbers_at(self.own.depth, references_of(subquery.operands))
        return [self.own.references[number] for number in used]


_TURNED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
_NEGATED = {"eq": "ne", "ne": "eq", "lt": "ge", "le": "gt", "gt": "le", "ge": "lt"}
_BOUNDS: dict[str, Callable[[Expression, Expression], list[Expression]]] = {
    "eq": lambda least, greatest: [least, greatest],
    "lt": lambda least, _: [least],
    "le": lambda least, _: [least],
    "gt": lambda _, greatest: [greatest],
    "ge": lambda _, greatest: [greatest],
}
COMPARISONS = frozenset(_NEGATED)
"""The operators that may precede ANY and ALL."""


def as_it_is(expression: Expression, _: exp.Expr) -> Expression:
    """The translation of references to a query that has the columns of its FROM clause."""
    return expression


def _has_modifiers(node: exp.Subquery) -> bool:
    return any(value for name, value in node.args.items() if name != "this")


def has_subquery(expression: Expression) -> bool:
    """Whether there is a subquery in the expression."""
    return any(isinstance(part, Call) and part.function == SUBQUERY for part in walk(expression))


def _needed(predicate: Expression) -> Iterator[int]:
    """The scalar subqueries for which the predicate is not true if they are NULL: those below strict functions alone."""
    pending = [predicate]
    while pending:
        part = pending.pop()
        if (isinstance(part, Call) and part.function in STRICT) or isinstance(part, Cast):
            pending.extend(children(part))
        elif (found := number_of(part)) is not None and part is not predicate:
            yield found[0]
