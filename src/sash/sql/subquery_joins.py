"""The joins that subqueries in expressions become; see `subqueries.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf

from sqlglot import exp

from sash.plan.compound import balanced, rewrite, walk
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import AggregateCall, Call, Case, Column, Expression, Literal, columns_of, conjunction
from sash.plan.nodes import ONE_ROW, Aggregate, Distinct, Filter, JoinKind, Node, Project, TopK
from sash.plan.types import BIGINT, BOOLEAN
from sash.sql.correlation import OuterScope, numbers_at, outer_references, references_of, replace_references
from sash.sql.functions import call
from sash.sql.joins import Branch, build
from sash.sql.nullability import always_null, never_null
from sash.sql.ordering import project
from sash.sql.scope import shift
from sash.sql.source import SqlText
from sash.sql.unnesting import TRUE, Pulled, Unnesting, columns, named

SUBQUERY = "subquery"
"""The function of a placeholder: `subquery(number, column)`."""

Kind = OneOf["exists", "in", "scalar"]
Translate = Callable[[Expression, exp.Expr], Expression]


@dataclass(frozen=True)
class Subquery:
    """A subquery of an expression; `operands` are the left side of IN, as references to the query around it.

    With `knows_null`, IN is NULL where it is neither true nor false. Otherwise, as in Spark, it is false then, and NOT IN,
    which is its column 1, is false too.
    """

    kind: Kind
    plan: Node
    operands: tuple[Expression, ...] = ()
    knows_null: bool = False
    node: exp.Expr = field(default_factory=exp.Expression, compare=False)


@dataclass(frozen=True)
class SubqueryJoins:
    """Joins nodes with subqueries. A reference is translated to an expression over the columns of the node.

    `base` is the node before it was joined with any subquery. The domain of references is taken from it where it can be:
    else every subquery would double the plan.
    """

    source: SqlText
    own: OuterScope
    base: Node
    translate: Translate

    def _unnesting(self, node: Node, subquery: Subquery, plan: Node) -> Unnesting:
        """The unnesting of a subquery; only the references that it uses are translated."""
        used = numbers_at(self.own.depth, outer_references(plan) | references_of(subquery.operands))
        references = list(self.own.references)
        for number in used:
            references[number] = self.translate(references[number], subquery.node)
        read = [column for number in used for column in columns_of(references[number])]
        outer = self.base if all(column < len(self.base.schema) for column in read) else node
        return Unnesting(self.source, self.own.depth, outer, references, subquery.node)

    def semi(self, node: Node, subquery: Subquery, negated: bool) -> Node:
        """The rows of the node for which the subquery is true, or if `negated` false."""
        plan = _without_limit(subquery.plan) if subquery.kind == "exists" else subquery.plan
        unnesting = self._unnesting(node, subquery, plan)
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

    def values(
        self, node: Node, subquery: Subquery, used: Collection[int], needed: bool = False
    ) -> tuple[Node, list[Expression]]:
        """The node with further columns, and the values of the subquery over them; `used` are the columns that matter.

        With `needed`, rows for which a scalar subquery is NULL may be left out.
        """
        plan = _without_limit(subquery.plan) if subquery.kind == "exists" else subquery.plan
        unnesting = self._unnesting(node, subquery, plan)
        pulled = unnesting.pull(plan)
        match subquery.kind:
            case "scalar":
                return _scalar(node, unnesting, pulled, needed)
            case "exists":
                if pulled.otherwise is not None:
                    return node, [TRUE]
                node, mark = _mark(node, unnesting, pulled, ())
                return node, [mark]
            case "in":
                return _in_values(node, unnesting, unnesting.plain(pulled), subquery, used)

    def compared(
        self, node: Node, subquery: Subquery, side: Expression, other: Expression, function: str
    ) -> Node | None:
        """The rows of the node for which `side function other` is true, where `side` is over the value of a scalar subquery.

        None if the subquery refers to the query around it, or `side` may fail, which matters only if the node has rows.
        """
        unnesting = self._unnesting(node, subquery, subquery.plan)
        pulled = unnesting.pull(subquery.plan)
        if pulled.predicates or unnesting.is_correlated(*pulled.outputs):
            return None
        border = len(node.schema)
        below = _single_row(pulled)
        value = rewrite(side, lambda part: _value(part, [shift(column, border) for column in columns(below)]))
        if may_fail(value):
            return None
        return build(Branch(node, below, "semi", [call(function, [value, other])]))


def _value(part: Expression, values: Sequence[Expression]) -> Expression | None:
    """The value of a scalar subquery that a placeholder stands for."""
    found = number_of(part)
    return None if found is None else values[found[1]]


def number_of(expression: Expression) -> tuple[int, int] | None:
    """The number and column of a placeholder."""
    if not isinstance(expression, Call) or expression.function != SUBQUERY:
        return None
    number, column = expression.arguments
    assert isinstance(number, Literal)
    assert isinstance(column, Literal)
    return number.value, column.value


def _without_limit(plan: Node) -> Node:
    """The plan without a LIMIT that does not matter to EXISTS."""
    while isinstance(plan, TopK) and plan.limit > 0 and plan.offset == 0:
        plan = plan.child
    return plan


def place(unnesting: Unnesting, expression: Expression, border: int) -> Expression:
    """An expression of a subquery over the columns of a join, in which those of the subquery start at `border`."""
    given = dict(enumerate(unnesting.references))
    return replace_references(shift(expression, border), unnesting.depth, given)


def _joined(node: Node, kind: JoinKind, unnesting: Unnesting, pulled: Pulled, conditions: Sequence[Expression]) -> Node:
    """The join of the node with the subquery, on its predicates and further conditions."""
    border = len(node.schema)
    parts = [place(unnesting, part, border) for part in (*pulled.predicates, *conditions)]
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
    known = [never_null(replace_references(each, unnesting.depth, given), build(unnesting.outer)) for each in operands]
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
    outside = [place(unnesting, part, border) for part in predicates if not _has_columns(part)]
    if all(test is not None for test in tests):
        found = [test for test in tests if test is not None]
        right: Node = Distinct(named(pulled.node, (*(inner for inner, _, _ in found), TRUE)))
        equalities: list[Expression] = [
            Call(function, (shift(key, border), place(unnesting, outer, border)), BOOLEAN)
            for key, (_, function, outer) in zip(columns(right), found, strict=False)
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


def _in_values(
    node: Node, unnesting: Unnesting, pulled: Pulled, subquery: Subquery, used: Collection[int]
) -> tuple[Node, list[Expression]]:
    """IN and NOT IN as values."""
    border, operands = len(node.schema), subquery.operands
    pairs = list(zip(operands, pulled.outputs, strict=True))
    node, equal = _mark(node, unnesting, pulled, [call("eq", pair) for pair in pairs])
    if not subquery.knows_null and 1 not in used:
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
        unknown.append(call("and", [place(unnesting, condition, border), mark]))
    if not subquery.knows_null:
        maybe_equal = balanced([equal, *unknown], lambda one, other: call("or", [one, other]))
        return node, [equal, call("not", [maybe_equal])]
    branches: list[tuple[Expression, Expression]] = [(equal, TRUE)]
    branches += [(each, Literal(None, BOOLEAN)) for each in unknown]
    return node, [Case(tuple(branches), Literal(False, BOOLEAN), BOOLEAN)]


def _scalar(node: Node, unnesting: Unnesting, pulled: Pulled, needed: bool) -> tuple[Node, list[Expression]]:
    """The values of the only row of a subquery; if they are `needed`, by an inner join."""
    border = len(node.schema)
    values: list[Expression]
    if needed and pulled.otherwise is not None and all(map(always_null, pulled.otherwise)):
        made = _joined(node, "inner", unnesting, pulled, ())
        return made, [place(unnesting, output, border) for output in pulled.outputs]
    if not pulled.predicates and not unnesting.is_correlated(*pulled.outputs):
        return _uncorrelated(node, pulled)
    if pulled.otherwise is not None:
        marked = named(pulled.node, (*columns(pulled.node), TRUE))
        made = _joined(node, "left", unnesting, replace(pulled, node=marked), ())
        there = call("is_not_null", [columns(made)[-1]])
        values = [
            _case(there, place(unnesting, output, border), place(unnesting, other, border))
            for output, other in zip(pulled.outputs, pulled.otherwise, strict=True)
        ]
        return made, values
    if pulled.node == ONE_ROW:
        tests = conjunction([place(unnesting, part, border) for part in pulled.predicates])
        values = [place(unnesting, output, border) for output in pulled.outputs]
        return node, [each if tests is None else Case(((tests, each),), None, each.dtype) for each in values]
    if unnesting.is_correlated(*pulled.outputs) or not unnesting.liftable(pulled):
        pulled = unnesting.bound(pulled)
    keys = [test for part in pulled.predicates if (test := unnesting.test_of(part)) is not None]
    below = named(pulled.node, (*pulled.outputs, *(inner for inner, _, _ in keys)))
    width = len(pulled.outputs)
    single = _single(below, width, tuple(range(width, width + len(keys))))
    conditions = [
        Call(function, (column, outer), BOOLEAN)
        for column, (_, function, outer) in zip(columns(single), keys, strict=False)
    ]
    rest = [part for part in pulled.predicates if not _has_columns(part)]
    made = _joined(node, "inner" if needed else "left", unnesting, Pulled(single, (), (*conditions, *rest)), ())
    count, *found = columns(made)[border + len(keys) :]
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
    made = build(Branch(node, _single_row(pulled), "inner"))
    return made, list(columns(made)[border:])


def _single_row(pulled: Pulled) -> Node:
    """The only row of an uncorrelated scalar subquery, as a global aggregate."""
    below = named(pulled.node, pulled.outputs)
    if _always_one_row(below):
        return below
    single = _single(below, len(below.schema), ())
    count, *values = columns(single)
    return named(single, [Call("single_value", (count, value), value.dtype) for value in values])


def _always_one_row(plan: Node) -> bool:
    while isinstance(plan, Project):
        plan = plan.child
    return isinstance(plan, Aggregate) and not plan.keys
