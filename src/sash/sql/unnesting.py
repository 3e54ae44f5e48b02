"""Unnesting of correlated subqueries: the plan of a subquery without references to the query around it.

Predicates with such references are pulled up to the top of the subquery, where they become conditions of its join with
the query around it. An equality of a column of the subquery and an expression of the outer query passes GROUP BY,
DISTINCT and set operators as a further key. Where a reference is used otherwise, the subquery is evaluated for all
distinct values of the outer columns, its domain: the part that uses them is joined with the domain, whose columns
then equal the outer ones (Neumann and Kemper: Unnesting Arbitrary Queries, BTW 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.compound import balanced
from sash.plan.describe import describe
from sash.plan.empty_groups import value_of_nothing
from sash.plan.expressions import (
    Call,
    Case,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    substitute,
)
from sash.plan.nodes import (
    Aggregate,
    AssignWindows,
    Distinct,
    Except,
    Expand,
    Filter,
    Intersect,
    Join,
    Node,
    Over,
    Project,
    TopK,
    Union,
)
from sash.plan.types import BOOLEAN, INT
from sash.plan.window_calls import WHOLE, WindowCall
from sash.sql.correlation import (
    numbers_at,
    outer_reference,
    outer_references,
    references_of,
    replace_references,
)
from sash.sql.functions import call
from sash.sql.joins import Branch, Tree, build, width
from sash.sql.ordering import MOST_ROWS, project
from sash.sql.scope import shift
from sash.sql.source import SqlText

TRUE = Literal(True, BOOLEAN)


@dataclass(frozen=True)
class Pulled:
    """A subquery without correlated predicates: its rows are those of `node` for which the `predicates` are true.

    `outputs` are its columns. They and the predicates are over the columns of the node and references to the outer query.
    A global aggregate has the row `otherwise` where no row satisfies the predicates; at most one does.
    """

    node: Node
    outputs: tuple[Expression, ...]
    predicates: tuple[Expression, ...] = ()
    otherwise: tuple[Expression, ...] | None = None


@dataclass(frozen=True)
class _Lifted:
    """Rows with the columns of a subquery, then the keys by which its predicates compare them with the outer query."""

    node: Node
    keys: tuple[Expression, ...]
    tests: tuple[tuple[str, Expression], ...]
    rest: tuple[Expression, ...]

    def predicates(self, first: int) -> tuple[Expression, ...]:
        """The predicates over a node that has the keys from position `first` on."""
        made = [
            Call(function, (Column(first + place, describe(key), key.dtype), outer), BOOLEAN)
            for place, (key, (function, outer)) in enumerate(zip(self.keys, self.tests, strict=True))
        ]
        return (*made, *self.rest)


def named(node: Node, expressions: Sequence[Expression]) -> Node:
    """The node with these output columns, named after what they are."""
    return project(node, [describe(expression) for expression in expressions], list(expressions))


def columns(node: Node) -> tuple[Column, ...]:
    """All columns of a node."""
    return tuple(Column(i, f.name, f.dtype) for i, f in enumerate(node.schema))


@dataclass(frozen=True)
class Unnesting:
    """Unnests subqueries of the query at `depth`, whose FROM clause is `outer`; `references` are over its columns."""

    source: SqlText
    depth: int
    outer: Tree
    references: Sequence[Expression]
    where: exp.Expr | None = None

    def pull(self, node: Node) -> Pulled:
        """The subquery with its correlated predicates pulled up."""
        if not self._numbers(outer_references(node)):
            return Pulled(node, columns(node))
        match node:
            case Filter():
                return self._filter(node)
            case Project():
                child = self.pull(node.child)
                outputs = tuple(substitute(expression, child.outputs) for expression in node.expressions)
                otherwise = child.otherwise
                if otherwise is not None:
                    otherwise = tuple(substitute(expression, otherwise) for expression in node.expressions)
                return Pulled(child.node, outputs, child.predicates, otherwise)
            case Join():
                return self._join(node)
            case Aggregate():
                return self._aggregate(node)
            case Distinct():
                lifted = self._lift(self.settled(self.pull(node.child)))
                width = len(node.schema)
                return Pulled(Distinct(lifted.node), columns(node), lifted.predicates(width))
            case Union() | Except() | Intersect():
                return self._set_operation(node)
            case Expand():
                rows: list[Node] = [Project(node.child, node.names, made) for made in node.lists]
                return self.pull(balanced(rows, Union))
            case AssignWindows():
                child = self.settled(self.pull(node.child))
                below = named(child.node, (*columns(child.node), child.outputs[node.time]))
                made = AssignWindows(below, len(below.schema) - 1, node.windows)
                return Pulled(made, (*child.outputs, *columns(made)[-2:]), child.predicates)
            case TopK():
                return self._top(node)
            case Over():
                lifted = self._lift(self.settled(self.pull(node.child)))
                width = len(node.child.schema)
                partition = (*node.partition, *range(width, width + len(lifted.keys)))
                over = replace(node, child=lifted.node, partition=partition)
                outputs = (*columns(over)[:width], *columns(over)[width + len(lifted.keys) :])
                return Pulled(over, outputs, lifted.predicates(width))
            case _:
                raise self.source.error(
                    UnsupportedSqlError,
                    f"Sash does not run {_CONSTRUCTS.get(type(node).__name__, type(node).__name__)} in a subquery that refers "
                    "to columns of the query around it",
                    self.where,
                )

    def domain(self, numbers: Sequence[int]) -> Node:
        """The distinct values of these references; perhaps more, if a part of FROM has all their columns."""
        values = [self.references[number] for number in numbers]
        tree = self.outer
        while isinstance(tree, Branch):
            border = width(tree.left)
            read = [column for value in values for column in columns_of(value)]
            if tree.kind not in ("right", "full") and all(column < border for column in read):
                tree = tree.left
            elif tree.kind in ("inner", "right") and all(column >= border for column in read):
                tree, values = tree.right, [shift(value, -border) for value in values]
            else:
                break
        return Distinct(named(build(tree), values))

    def bound(self, pulled: Pulled, numbers: Sequence[int] = ()) -> Pulled:
        """The subquery evaluated for every row of the domain of its references and of those with these `numbers`."""
        used = self._numbers(references_of((*pulled.outputs, *pulled.predicates, *(pulled.otherwise or ()))))
        numbers = sorted({*used, *numbers})
        domain = self.domain(numbers)
        if pulled.otherwise is None:
            border = len(pulled.node.schema)
            given: dict[int, Expression] = {n: _moved(c, border) for n, c in zip(numbers, columns(domain), strict=True)}
            conditions = [replace_references(part, self.depth, given) for part in pulled.predicates]
            joined = build(Branch(pulled.node, domain, "inner", conditions, null_safe=True))
            outputs = [replace_references(output, self.depth, given) for output in pulled.outputs]
        else:
            border = len(domain.schema)
            given = dict(zip(numbers, columns(domain), strict=True))
            marked = named(pulled.node, (*columns(pulled.node), TRUE))
            conditions = [replace_references(shift(part, border), self.depth, given) for part in pulled.predicates]
            joined = build(Branch(domain, marked, "left", conditions, null_safe=True))
            there = call("is_not_null", [Column(border + len(pulled.node.schema), "there", BOOLEAN)])
            outputs = [
                replace_references(Case(((there, shift(output, border)),), other, output.dtype), self.depth, given)
                for output, other in zip(pulled.outputs, pulled.otherwise, strict=True)
            ]
        width = len(outputs)
        node = named(joined, (*outputs, *given.values()))
        predicates = tuple(
            call("eq_null_safe", [column, outer_reference(self.depth, number, column.dtype)])
            for number, column in zip(numbers, columns(node)[width:], strict=True)
        )
        return Pulled(node, columns(node)[:width], predicates)

    def test_of(self, predicate: Expression) -> tuple[Expression, str, Expression] | None:
        """The two sides of an equality of the subquery and the outer query, with its function; None for others."""
        if not isinstance(predicate, Call) or predicate.function not in ("eq", "eq_null_safe"):
            return None
        for inner, outer in (predicate.arguments, predicate.arguments[::-1]):
            if columns_of(inner) and not self.is_correlated(inner) and not columns_of(outer):
                return inner, predicate.function, outer
        return None

    def is_correlated(self, *expressions: Expression) -> bool:
        """Whether one of the expressions has a reference to the outer query."""
        return bool(self._numbers(references_of(expressions)))

    def plain(self, pulled: Pulled) -> Pulled:
        """The subquery without a row that is there otherwise."""
        return pulled if pulled.otherwise is None else self.bound(pulled)

    def _numbers(self, references: frozenset[tuple[int, int]]) -> tuple[int, ...]:
        return numbers_at(self.depth, references)

    def settled(self, pulled: Pulled) -> Pulled:
        """The subquery with outputs that have no references."""
        return self.bound(pulled) if pulled.otherwise is not None or self.is_correlated(*pulled.outputs) else pulled

    def liftable(self, pulled: Pulled) -> bool:
        """Whether the predicates are equalities, or conditions on the outer query alone."""
        return all(not columns_of(part) or self.test_of(part) is not None for part in pulled.predicates)

    def _lift(self, pulled: Pulled) -> _Lifted:
        """The rows of the subquery with the keys of its predicates, which are made equalities if they are not."""
        if not self.liftable(pulled):
            pulled = self.bound(pulled)
        tests = [test for part in pulled.predicates if (test := self.test_of(part)) is not None]
        keys = tuple(inner for inner, _, _ in tests)
        rest = tuple(part for part in pulled.predicates if not columns_of(part))
        node = named(pulled.node, (*pulled.outputs, *keys))
        return _Lifted(node, keys, tuple((function, outer) for _, function, outer in tests), rest)

    def _filter(self, node: Filter) -> Pulled:
        child = self.plain(self.pull(node.child))
        parts = conjuncts(substitute(node.predicate, child.outputs))
        local = conjunction([part for part in parts if not self.is_correlated(part)])
        below = child.node if local is None else Filter(child.node, local)
        pulled = tuple(part for part in parts if self.is_correlated(part))
        return Pulled(below, child.outputs, (*child.predicates, *pulled))

    def _aggregate(self, node: Aggregate) -> Pulled:
        lifted = self._lift(self.settled(self.pull(node.child)))
        width, own = len(node.child.schema), len(node.keys)
        keys = (*node.keys, *range(width, width + len(lifted.keys)))
        made = Aggregate(lifted.node, keys, node.names, node.aggregates)
        all_columns = columns(made)
        outputs = (*all_columns[:own], *all_columns[own + len(lifted.keys) :])
        otherwise = None
        if not node.keys:
            otherwise = tuple(value_of_nothing(aggregate) for aggregate in node.aggregates)
        return Pulled(made, outputs, lifted.predicates(own), otherwise)

    def _top(self, node: TopK) -> Pulled:
        """LIMIT for every value of the keys: the rows by their number in the order."""
        lifted = self._lift(self.settled(self.pull(node.child)))
        width = len(node.schema)
        if not lifted.keys:
            return Pulled(replace(node, child=lifted.node), columns(node), lifted.predicates(width))
        call = WindowCall("row_number", (), INT, node.order, WHOLE)
        partition = tuple(range(width, width + len(lifted.keys)))
        over = Over(lifted.node, partition, tuple(range(width)), ("row_number",), (call,))
        number = columns(over)[-1]
        parts: list[Expression] = []
        if node.offset + node.limit < MOST_ROWS:
            parts.append(Call("le", (number, Literal(node.offset + node.limit, INT)), BOOLEAN))
        if node.offset:
            parts.append(Call("gt", (number, Literal(node.offset, INT)), BOOLEAN))
        predicate = conjunction(parts)
        made = over if predicate is None else Filter(over, predicate)
        return Pulled(made, columns(node), lifted.predicates(width))

    def _set_operation(self, node: Union | Except | Intersect) -> Pulled:
        sides = [self.settled(self.pull(child)) for child in node.children]
        lifted = [self._lift(side) for side in sides]
        if any(one.tests != lifted[0].tests or one.rest != lifted[0].rest for one in lifted):
            numbers = self._numbers(outer_references(node))
            lifted = [self._lift(self.bound(side, numbers)) for side in sides]
        left, right = lifted
        made = replace(node, left=left.node, right=right.node)
        return Pulled(made, columns(node), left.predicates(len(node.schema)))

    def _join(self, node: Join) -> Pulled:
        correlated = [bool(self._numbers(outer_references(child))) for child in node.children]
        in_condition = node.condition is not None and self.is_correlated(node.condition)
        if node.kind == "inner":
            return self._combined(node, self.plain(self.pull(node.left)), self.plain(self.pull(node.right)))
        if node.kind in ("left", "semi", "anti") and not correlated[1] and not in_condition:
            return self._combined(node, self.settled(self.pull(node.left)), self.pull(node.right))
        if node.kind == "right" and not correlated[0] and not in_condition:
            return self._combined(node, self.pull(node.left), self.settled(self.pull(node.right)))
        return self._bound_join(node)

    def _combined(self, node: Join, left: Pulled, right: Pulled) -> Pulled:
        """The join of two subqueries, of which neither uses a reference but in predicates that can be pulled up."""
        border = len(left.node.schema)
        outputs = (*left.outputs, *(shift(output, border) for output in right.outputs))
        parts = _conditions(node, outputs)
        local = [part for part in parts if not self.is_correlated(part)]
        predicates = (
            *left.predicates,
            *(shift(part, border) for part in right.predicates),
            *(part for part in parts if self.is_correlated(part)),
        )
        made = build(Branch(left.node, right.node, node.kind, local, null_safe=True))
        if node.kind in ("semi", "anti"):
            outputs = left.outputs
        return Pulled(made, outputs, predicates)

    def _bound_join(self, node: Join) -> Pulled:
        """An outer, semi or anti join that depends on the outer query: both sides for every row of the domain."""
        numbers = self._numbers(outer_references(node))
        left, right = (self.bound(self.pull(child), numbers) for child in node.children)
        border = len(left.node.schema)
        own = len(node.left.schema), len(node.right.schema)
        left_domain = columns(left.node)[own[0] :]
        right_domain = tuple(_moved(column, border) for column in columns(right.node)[own[1] :])
        given: dict[int, Expression] = dict(zip(numbers, left_domain, strict=True))
        outputs = (*left.outputs, *(shift(output, border) for output in right.outputs))
        conditions = [replace_references(part, self.depth, given) for part in _conditions(node, outputs)]
        conditions += [call("eq_null_safe", pair) for pair in zip(left_domain, right_domain, strict=True)]
        made = build(Branch(left.node, right.node, node.kind, conditions, null_safe=True))
        domain: Sequence[Expression] = left_domain
        if node.kind == "right":
            domain = right_domain
        elif node.kind == "full":
            raise self.source.error(
                UnsupportedSqlError,
                "Sash does not run FULL JOIN in a subquery whose joined tables refer to columns of the query around it",
                self.where,
            )
        predicates = tuple(
            call("eq_null_safe", [column, outer_reference(self.depth, number, column.dtype)])
            for number, column in zip(numbers, domain, strict=True)
        )
        return Pulled(made, left.outputs if node.kind in ("semi", "anti") else outputs, predicates)


_CONSTRUCTS = {"Generate": "a generator such as explode", "Over": "OVER", "TopK": "LIMIT"}


def _conditions(node: Join, outputs: Sequence[Expression]) -> list[Expression]:
    """The conditions of a join over other columns."""
    border = len(node.left.schema)
    keys = [call("eq", [outputs[left], outputs[border + right]]) for left, right in node.keys]
    rest = [] if node.condition is None else conjuncts(substitute(node.condition, tuple(outputs)))
    return [*keys, *rest]


def _moved(column: Column, by: int) -> Column:
    return replace(column, index=column.index + by)
