"""Subqueries in expressions: IN, EXISTS, scalar subqueries, and comparisons with ANY and ALL.

While expressions are bound, a subquery is a placeholder, `subquery(number, column)`. Then `Subqueries.filter` and
`Subqueries.attach` join the subqueries with the plan of the query around them, and the placeholders become columns:

- EXISTS and IN as conditions of WHERE, HAVING or ON are semi joins, NOT EXISTS an anti join, and NOT IN three anti joins:
  with the equal rows, with the rows that have a NULL, and for rows with a NULL of their own with all rows;
- elsewhere each is a mark: a left join with the distinct values of the subquery, and a test whether there is a match;
- a scalar subquery is a left join with its only row, and fails if there are two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

import pyarrow as pa
from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan.compound import balanced, rewrite, walk
from sash.plan.expressions import AggregateCall, Call, Case, Column, Expression, Literal, conjunction, conjuncts
from sash.plan.nodes import Aggregate, Distinct, Filter, JoinKind, Node, Project, TopK
from sash.plan.types import BIGINT, BOOLEAN, INT
from sash.sql.coercion import coerce, common_type
from sash.sql.correlation import OuterScope, Scopes, numbers_at, outer_references, references_of, replace_references
from sash.sql.functions import call
from sash.sql.joins import Branch, build
from sash.sql.naming import REFERENCES
from sash.sql.nullability import never_null
from sash.sql.ordering import project
from sash.sql.scope import shift
from sash.sql.source import SqlText
from sash.sql.unnesting import TRUE, Pulled, Unnesting, columns, named

SUBQUERY = "subquery"
Kind = OneOf["exists", "in", "scalar"]
Translate = Callable[[Expression, exp.Expr], Expression]


@dataclass(frozen=True)
class Subquery:
    """A subquery of an expression; `operands` are the left side of IN, as references to the query around it."""

    kind: Kind
    plan: Node
    operands: tuple[Expression, ...] = ()
    node: exp.Expr = field(default_factory=exp.Expression, compare=False)


@dataclass
class Subqueries:
    """The subqueries in the expressions of one query; `query` binds a nested query, given the queries around it."""

    source: SqlText
    query: Callable[[exp.Expr, Scopes], Node]
    around: Scopes
    own: OuterScope
    found: list[Subquery] = field(default_factory=list)

    def exists(self, node: exp.Expr, query: exp.Expr) -> Expression:
        """EXISTS (query)."""
        return self._placeholder(Subquery("exists", self._bound(query, node), node=node), 0, BOOLEAN)

    def contains(self, values: Sequence[Expression], node: exp.Expr, query: exp.Expr) -> Expression:
        """`values IN (query)`."""
        plan = self._bound(query, node)
        if len(plan.schema) != len(values):
            raise self.source.error(
                TypeMismatchError, f"IN compares {len(values)} columns with a subquery of {len(plan.schema)}", node
            )
        for value, column in zip(values, columns(plan), strict=True):
            call("eq", [value, column])
        operands = tuple(self.own.reference(value) for value in values)
        return self._placeholder(Subquery("in", plan, operands, node), 0, BOOLEAN)

    def scalar(self, node: exp.Expr) -> Expression:
        """The only value of a query; NULL if it has no row."""
        plan = self._bound(node, node)
        self._check_single_column(plan, "a scalar subquery", node)
        return self._placeholder(Subquery("scalar", plan, node=node), 0, plan.schema[0].dtype)

    def compare(self, function: str, value: Expression, node: exp.Expr, every: bool) -> Expression:
        """`value = ANY (query)`, `value < ALL (query)` and so on, from the smallest and the largest value of the query."""
        if function == "eq" and not every:
            return self.contains([value], node, node)
        if function == "ne" and every:
            return call("not", [self.contains([value], node, node)])
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
        parts = conjuncts(predicate)
        plain = conjunction([part for part in parts if not has_subquery(part)])
        below = node if plain is None else Filter(node, plain)
        rest = []
        for part in parts:
            negated = isinstance(part, Call) and part.function == "not"
            inner = part.arguments[0] if isinstance(part, Call) and negated else part
            found = _number_of(inner)
            subquery = None if found is None else self.found[found[0]]
            if subquery is not None and subquery.kind != "scalar":
                below = self._joins(below, translate).semi(below, subquery, negated)
            elif has_subquery(part):
                rest.append(part)
        remaining = conjunction(rest)
        if remaining is None:
            return below
        wide, (made,) = self.attach(below, [remaining], translate, _positive(remaining))
        return project(Filter(wide, made), [f.name for f in node.schema], list(columns(node)))

    def attach(
        self,
        node: Node,
        expressions: Sequence[Expression],
        translate: Translate,
        positive: frozenset[int] = frozenset(),
    ) -> tuple[Node, list[Expression]]:
        """The node joined with the subqueries of the expressions, and the expressions over its columns.

        The node keeps its columns. `positive` are subqueries for which NULL means the same as false.
        """
        numbers = {found[0] for each in expressions for part in walk(each) if (found := _number_of(part)) is not None}
        made: dict[int, list[Expression]] = {}
        for number in sorted(numbers):
            joins, subquery = self._joins(node, translate), self.found[number]
            node, made[number] = joins.values(node, subquery, number in positive)

        def change(part: Expression) -> Expression | None:
            found = _number_of(part)
            return None if found is None else made[found[0]][found[1]]

        return node, [rewrite(each, change) for each in expressions]

    def _joins(self, node: Node, translate: Translate) -> _Joins:
        return _Joins(self.source, self.own, node, translate)


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


def _number_of(expression: Expression) -> tuple[int, int] | None:
    """The number and column of a placeholder."""
    if not isinstance(expression, Call) or expression.function != SUBQUERY:
        return None
    number, column = expression.arguments
    assert isinstance(number, Literal)
    assert isinstance(column, Literal)
    return number.value, column.value


def has_subquery(expression: Expression) -> bool:
    """Whether there is a subquery in the expression."""
    return any(isinstance(part, Call) and part.function == SUBQUERY for part in walk(expression))


def _positive(predicate: Expression) -> frozenset[int]:
    """The subqueries below AND and OR alone, where NULL is as good as false; those also used elsewhere are not."""
    everywhere: list[int] = [found[0] for part in walk(predicate) if (found := _number_of(part)) is not None]
    direct = []
    pending = [predicate]
    while pending:
        part = pending.pop()
        if isinstance(part, Call) and part.function in ("and", "or"):
            pending.extend(part.arguments)
        elif (found := _number_of(part)) is not None:
            direct.append(found[0])
    return frozenset(number for number in direct if direct.count(number) == everywhere.count(number))


class _Joins:
    """Joins a node with subqueries. References are translated to expressions over the node's columns."""

    def __init__(self, source: SqlText, own: OuterScope, node: Node, translate: Translate) -> None:
        self._source = source
        self._own = own
        self._node = node
        self._translate = translate

    def _unnesting(self, subquery: Subquery, plan: Node) -> Unnesting:
        """The unnesting of a subquery; only the references that it uses are translated."""
        used = numbers_at(self._own.depth, outer_references(plan) | references_of(subquery.operands))
        references = [
            self._translate(reference, subquery.node) if number in used else reference
            for number, reference in enumerate(self._own.references)
        ]
        return Unnesting(self._source, self._own.depth, self._node, references, subquery.node)

    def semi(self, node: Node, subquery: Subquery, negated: bool) -> Node:
        """The rows of the node for which the subquery is true, or if `negated` false."""
        plan = _without_limit(subquery.plan) if subquery.kind == "exists" else subquery.plan
        unnesting = self._unnesting(subquery, plan)
        pulled = unnesting.pull(plan)
        kind: JoinKind = "anti" if negated else "semi"
        if subquery.kind == "exists":
            if pulled.otherwise is not None:
                return Filter(node, Literal(not negated, BOOLEAN))
            return _joined(node, kind, unnesting, pulled, ())
        pulled = unnesting.plain(pulled)
        pairs = list(zip(subquery.operands, pulled.outputs, strict=True))
        node = _joined(node, kind, unnesting, pulled, [call("eq", pair) for pair in pairs])
        if not negated:
            return node
        maybe = _maybe_equal(pairs)
        if (missing := _missing_output(pulled)) is not None:
            incomplete = replace(pulled, predicates=(*pulled.predicates, missing))
            node = _joined(node, "anti", unnesting, _with_local_filter(unnesting, incomplete), maybe)
        unknown = _missing_operand(unnesting, subquery.operands)
        if unknown is not None:
            node = _joined(node, "anti", unnesting, *_keyed_by(pulled, unknown, maybe))
        return node

    def values(self, node: Node, subquery: Subquery, positive: bool) -> tuple[Node, list[Expression]]:
        """The node with further columns, and the values of the subquery over them."""
        plan = _without_limit(subquery.plan) if subquery.kind == "exists" else subquery.plan
        unnesting = self._unnesting(subquery, plan)
        pulled = unnesting.pull(plan)
        match subquery.kind:
            case "scalar":
                return _scalar(node, unnesting, pulled)
            case "exists":
                if pulled.otherwise is not None:
                    return node, [TRUE]
                node, mark = _mark(node, unnesting, pulled, ())
                return node, [mark]
            case "in":
                return _in_value(node, unnesting, unnesting.plain(pulled), subquery.operands, positive)


def _without_limit(plan: Node) -> Node:
    """The plan without a LIMIT that does not matter to EXISTS."""
    while isinstance(plan, TopK) and plan.limit > 0 and plan.offset == 0:
        plan = plan.child
    return plan


def _place(unnesting: Unnesting, expression: Expression, border: int) -> Expression:
    """An expression of a subquery over the columns of a join, in which those of the subquery start at `border`."""
    given = dict(enumerate(unnesting.references))
    return replace_references(shift(expression, border), unnesting.depth, given)


def _joined(node: Node, kind: JoinKind, unnesting: Unnesting, pulled: Pulled, conditions: Sequence[Expression]) -> Node:
    """The join of the node with the subquery, on its predicates and further conditions."""
    border = len(node.schema)
    parts = [_place(unnesting, part, border) for part in (*pulled.predicates, *conditions)]
    return build(Branch(node, pulled.node, kind, parts, null_safe=True))


def _with_local_filter(unnesting: Unnesting, pulled: Pulled) -> Pulled:
    """The subquery with the predicates that have no references applied."""
    local = conjunction([part for part in pulled.predicates if not unnesting.is_correlated(part)])
    if local is None:
        return pulled
    rest = tuple(part for part in pulled.predicates if unnesting.is_correlated(part))
    return replace(pulled, node=Filter(pulled.node, local), predicates=rest)


def _keyed_by(
    pulled: Pulled, condition: Expression, conditions: Sequence[Expression]
) -> tuple[Pulled, Sequence[Expression]]:
    """The subquery with a column TRUE, which must equal the condition: so only rows that satisfy it meet any row."""
    wide = named(pulled.node, (*columns(pulled.node), TRUE))
    equal = call("eq", [condition, Column(len(pulled.node.schema), "true", BOOLEAN)])
    return replace(pulled, node=wide), (*conditions, equal)


def _missing_output(pulled: Pulled) -> Expression | None:
    """The condition that a column of the subquery is NULL; None if none can be."""
    return _any_null([output for output in pulled.outputs if not never_null(output, pulled.node)])


def _missing_operand(unnesting: Unnesting, operands: Sequence[Expression]) -> Expression | None:
    """The condition that an operand of IN is NULL; None if none can be."""
    given = dict(enumerate(unnesting.references))
    known = [never_null(replace_references(each, unnesting.depth, given), unnesting.outer) for each in operands]
    return _any_null([each for each, never in zip(operands, known, strict=True) if not never])


def _any_null(expressions: Sequence[Expression]) -> Expression | None:
    tests = [call("is_null", [each]) for each in expressions]
    return balanced(tests, lambda one, other: call("or", [one, other])) if tests else None


def _maybe_equal(pairs: Sequence[tuple[Expression, Expression]]) -> list[Expression]:
    """The condition that no pair is known to differ; without one, for a single pair of which one is NULL."""
    if len(pairs) == 1:
        return []
    made = []
    for one, other in pairs:
        equal = call("eq", [one, other])
        made.append(call("or", [equal, call("or", [call("is_null", [one]), call("is_null", [other])])]))
    return made


def _mark(
    node: Node,
    unnesting: Unnesting,
    pulled: Pulled,
    conditions: Sequence[Expression],
    only: Expression | None = None,
) -> tuple[Node, Expression]:
    """The node with a column that tells whether the subquery has a row, on its predicates and further conditions.

    `only` is a condition on the outer query: where it is not true, the mark is not needed.
    """
    predicates = (*pulled.predicates, *conditions)
    tests = [unnesting.test_of(part) for part in predicates if _has_columns(part)]
    border = len(node.schema)
    outside = [_place(unnesting, part, border) for part in predicates if not _has_columns(part)]
    if all(test is not None for test in tests):
        found = [test for test in tests if test is not None]
        right: Node = Distinct(named(pulled.node, (*(inner for inner, _, _ in found), TRUE)))
        places = columns(right)
        equalities: list[Expression] = [
            Call(function, (_place(unnesting, places[place], border), _place(unnesting, outer, border)), BOOLEAN)
            for place, (_, function, outer) in enumerate(found)
        ]
    else:
        numbers = sorted(numbers_at(unnesting.depth, references_of((*predicates, *([] if only is None else [only])))))
        right = unnesting.domain(numbers)
        given: dict[int, Expression] = dict(zip(numbers, columns(right), strict=True))
        if only is not None:
            right = Filter(right, replace_references(only, unnesting.depth, given))
        parts = [
            replace_references(shift(part, len(numbers)), unnesting.depth, given)
            for part in predicates
            if _has_columns(part)
        ]
        right = build(Branch(right, pulled.node, "semi", parts, null_safe=True))
        right = named(right, (*columns(right), TRUE))
        equalities = [
            call("eq_null_safe", [unnesting.references[number], shift(column, border)])
            for number, column in zip(numbers, columns(right)[:-1], strict=True)
        ]
    made = build(Branch(node, right, "left", equalities, null_safe=True))
    last = columns(made)[-1]
    narrow = project(made, [f.name for f in (*node.schema, made.schema[-1])], [*columns(node), last])
    mark = call("is_not_null", [columns(narrow)[-1]])
    return narrow, balanced([mark, *outside], lambda one, other: call("and", [one, other]))


def _has_columns(expression: Expression) -> bool:
    return any(isinstance(part, Column) for part in walk(expression))


def _in_value(
    node: Node, unnesting: Unnesting, pulled: Pulled, operands: Sequence[Expression], positive: bool
) -> tuple[Node, list[Expression]]:
    """IN as a value: true, false or NULL."""
    border = len(node.schema)
    pairs = list(zip(operands, pulled.outputs, strict=True))
    node, equal = _mark(node, unnesting, pulled, [call("eq", pair) for pair in pairs])
    if positive:
        return node, [equal]
    maybe = _maybe_equal(pairs)
    unknown: list[Expression] = []
    missing = _missing_output(pulled)
    if missing is not None:
        incomplete = replace(pulled, predicates=(*pulled.predicates, missing))
        node, mark = _mark(node, unnesting, _with_local_filter(unnesting, incomplete), maybe)
        unknown.append(mark)
    if (condition := _missing_operand(unnesting, operands)) is not None:
        node, mark = _mark(node, unnesting, pulled, maybe, condition)
        unknown.append(call("and", [_place(unnesting, condition, border), mark]))
    branches: list[tuple[Expression, Expression]] = [(equal, TRUE)]
    branches += [(each, Literal(None, BOOLEAN)) for each in unknown]
    return node, [Case(tuple(branches), Literal(False, BOOLEAN), BOOLEAN)]


def _scalar(node: Node, unnesting: Unnesting, pulled: Pulled) -> tuple[Node, list[Expression]]:
    """The values of the only row of a subquery."""
    border = len(node.schema)
    if not pulled.predicates and not unnesting.is_correlated(*pulled.outputs):
        return _uncorrelated(node, pulled)
    if pulled.otherwise is not None:
        marked = named(pulled.node, (*columns(pulled.node), TRUE))
        made = _joined(node, "left", unnesting, replace(pulled, node=marked), ())
        there = call("is_not_null", [columns(made)[-1]])
        values: list[Expression] = [
            _case(there, _place(unnesting, output, border), _place(unnesting, other, border))
            for output, other in zip(pulled.outputs, pulled.otherwise, strict=True)
        ]
        return made, values
    if unnesting.is_correlated(*pulled.outputs) or not unnesting.liftable(pulled):
        pulled = unnesting.bound(pulled)
    tests = [test for part in pulled.predicates if (test := unnesting.test_of(part)) is not None]
    below = named(pulled.node, (*pulled.outputs, *(inner for inner, _, _ in tests)))
    width = len(pulled.outputs)
    single = _single(below, width, tuple(range(width, width + len(tests))))
    conditions = [
        Call(function, (column, outer), BOOLEAN)
        for column, (_, function, outer) in zip(columns(single), tests, strict=False)
    ]
    rest = [part for part in pulled.predicates if not _has_columns(part)]
    made = _joined(node, "left", unnesting, Pulled(single, (), (*conditions, *rest)), ())
    count, *found = columns(made)[border + len(tests) :]
    return made, [Call("single_value", (count, value), value.dtype) for value in found]


def _case(condition: Expression, then: Expression, otherwise: Expression) -> Expression:
    return Case(((condition, then),), otherwise, then.dtype)


def _single(below: Node, width: int, by: tuple[int, ...]) -> Aggregate:
    """The number of rows and the values of a row, by key."""
    values = columns(below)[:width]
    calls = (
        AggregateCall("count_star", (), BIGINT),
        *(AggregateCall("max", (value,), value.dtype) for value in values),
    )
    return Aggregate(below, by, ("rows", *(value.name for value in values)), calls)


def _uncorrelated(node: Node, pulled: Pulled) -> tuple[Node, list[Expression]]:
    """A cross join with the only row, which a global aggregate always has."""
    border = len(node.schema)
    below = named(pulled.node, pulled.outputs)
    if not _always_one_row(below):
        single = _single(below, len(below.schema), ())
        count, *values = columns(single)
        below = named(single, [Call("single_value", (count, value), value.dtype) for value in values])
    made = build(Branch(node, below, "inner"))
    return made, list(columns(made)[border:])


def _always_one_row(plan: Node) -> bool:
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, Aggregate) and not plan.keys
