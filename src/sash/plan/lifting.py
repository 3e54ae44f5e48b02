"""Lifting: predicates with parameters move to the top of a plan, so that everything below them is shared by alike queries.

A predicate passes an operator if it selects whole groups or values of it. An equality with a parameter passes every GROUP BY
and DISTINCT: what it compares becomes one more grouping column. The lifted plan therefore has the answers of all possible
constants, and a query that is added is complete at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from sash.plan.empty_groups import value_of_nothing
from sash.plan.expression_safety import may_fail, respects_equality
from sash.plan.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    columns_of,
    conjunction,
    conjuncts,
    remap,
    substitute,
)
from sash.plan.nodes import (
    Aggregate,
    Alike,
    AssignWindows,
    Distinct,
    Except,
    Expand,
    Filter,
    Final,
    Generate,
    Intersect,
    Join,
    Lifetime,
    Node,
    Over,
    Project,
    Relation,
    Sessions,
    Stream,
    TopK,
    Union,
)
from sash.plan.patterns import looked_up_side
from sash.plan.templates import parameters_of

Expressions = tuple[Expression, ...]


class LiftingError(Exception):
    """Predicates with these parameters cannot be moved to the top of the plan."""

    def __init__(self, parameters: frozenset[int]) -> None:
        super().__init__(f"parameters {sorted(parameters)}")
        self.parameters = parameters


@dataclass(frozen=True)
class Lifted:
    """A plan without parameters, and the predicates with parameters to be tested on its rows.

    The plan has the columns of the original one, followed by those that only predicates need. `otherwise` is the row of a
    global aggregate without input, as constant expressions: a query has it while no row satisfies its equalities.
    """

    node: Node
    conditions: Expressions = ()
    otherwise: Expressions | None = None


def lift(node: Node) -> Lifted:
    """The plan with its parameters lifted to the top. Raises LiftingError."""
    match node:
        case Stream() | Relation():
            return Lifted(node)
        case Filter():
            return _filter(node)
        case Project():
            return _project(node)
        case Expand():
            return _expand(node)
        case Generate():
            if found := parameters_of([node.array]):
                raise LiftingError(found)
            return Lifted(replace(node, child=_fixed(node.child)))
        case AssignWindows() | Lifetime():
            return _in_time(node)
        case Sessions() | Final():
            return Lifted(replace(node, child=_fixed(node.child)))
        case Join():
            return _join(node)
        case Aggregate():
            return _aggregate(node)
        case Distinct():
            return _distinct(node)
        case TopK() | Over():
            return Lifted(replace(node, child=_fixed(node.child)))
        case Union() | Except() | Intersect():
            return Lifted(replace(node, left=_fixed(node.left), right=_fixed(node.right)))
        case Alike():
            raise AssertionError("queries are not alike twice")


def _expand(node: Expand) -> Lifted:
    found = parameters_of(expression for made in node.lists for expression in made)
    if found:
        raise LiftingError(found)
    return Lifted(replace(node, child=_fixed(node.child)))


def _fixed(node: Node) -> Node:
    """The node, which must have no parameters."""
    below = lift(node)
    if below.conditions:
        raise LiftingError(parameters_of(below.conditions))
    return below.node


def columns(node: Node) -> tuple[Column, ...]:
    """A column expression for every output column of the node."""
    return tuple(Column(position, field.name, field.dtype) for position, field in enumerate(node.schema))


def with_columns(node: Node, added: Sequence[Expression]) -> Node:
    """The node with computed columns after its own."""
    if not added:
        return node
    own = columns(node)
    names = (*(column.name for column in own), *(f"_lifted{len(own) + n}" for n in range(len(added))))
    return Project(node, names, (*own, *added))


def _filter(node: Filter) -> Lifted:
    """A part that may fail is tested after the parameters, as in the query itself, where it sees fewer rows."""
    found = parameters_of([node.predicate])
    if found and _joins_streams(node.child):
        raise LiftingError(found)
    below = lift(node.child)
    lifted, kept = list(below.conditions), list[Expression]()
    for part in conjuncts(node.predicate):
        guarded = bool(lifted) and may_fail(part)
        (lifted if guarded or below.otherwise is not None or parameters_of([part]) else kept).append(part)
    predicate = conjunction(kept)
    made = below.node if predicate is None else Filter(below.node, predicate)
    return replace(below, node=made, conditions=tuple(lifted))


def _joins_streams(node: Node) -> bool:
    """Whether the rows are those of a join of streams: a predicate on them saves most of its work below the join."""
    match node:
        case Filter() | Project():
            return _joins_streams(node.child)
        case Join():
            return looked_up_side(node) is None or any(map(_joins_streams, node.children))
        case _:
            return False


def _refuse_failing(expressions: Iterable[Expression], conditions: Expressions) -> None:
    """Above a lifted predicate, expressions are computed for rows that no query may have: they must not fail."""
    if conditions and any(map(may_fail, expressions)):
        raise LiftingError(parameters_of(conditions))


def _project(node: Project) -> Lifted:
    found = parameters_of(node.expressions)
    if found:
        raise LiftingError(found)
    below = lift(node.child)
    _refuse_failing(node.expressions, below.conditions)
    read = sorted({column for condition in below.conditions for column in columns_of(condition)})
    places: dict[int, int] = {}
    for position, expression in enumerate(node.expressions):
        if isinstance(expression, Column):
            places.setdefault(expression.index, position)
    carried = [column for column in read if column not in places]
    places |= {column: len(node.expressions) + n for n, column in enumerate(carried)}
    available = columns(below.node)
    expressions = (*node.expressions, *(available[column] for column in carried))
    names = (*node.names, *(f"_lifted{places[column]}" for column in carried))
    otherwise = below.otherwise
    if otherwise is not None:
        otherwise = tuple(substitute(expression, otherwise) for expression in expressions)
    conditions = tuple(remap(condition, places) for condition in below.conditions)
    return Lifted(Project(below.node, names, expressions), conditions, otherwise)


def _in_time(node: AssignWindows | Lifetime) -> Lifted:
    """Rows are assigned to windows, and begin and end, one by one; the columns that predicates need come last."""
    found = parameters_of([e for e in (node.start, node.end) if e is not None]) if isinstance(node, Lifetime) else None
    if found:
        raise LiftingError(found)
    below = lift(node.child)
    if below.otherwise is not None:
        raise LiftingError(parameters_of(below.conditions))
    made = replace(node, child=below.node)
    own, wide = len(node.child.schema), len(below.node.schema)
    if wide == own or isinstance(made, Lifetime):
        return Lifted(made, below.conditions)
    order = [*range(own), *range(wide, len(made.schema)), *range(own, wide)]
    available = columns(made)
    moved = Project(made, tuple(available[n].name for n in order), tuple(available[n] for n in order))
    places = {n: place for place, n in enumerate(order)}
    return Lifted(moved, tuple(remap(condition, places) for condition in below.conditions))


def _join(node: Join) -> Lifted:
    """A join with a table; predicates of a side whose rows the join may pad or drop do not pass."""
    left, right = lift(node.left), lift(node.right)
    parts = [] if node.condition is None else conjuncts(node.condition)
    compared = [part for part in parts if parameters_of([part])]
    pending = (*left.conditions, *right.conditions, *compared)
    if not pending:
        return Lifted(replace(node, left=left.node, right=right.node))
    passes_left, passes_right = node.kind != "right", node.kind in ("inner", "right")
    refused = [
        *(() if passes_left else left.conditions),
        *(() if passes_right else right.conditions),
        *(() if node.kind == "inner" else compared),
    ]
    own = [part for part in parts if part not in compared]
    combined = left.otherwise is not None or right.otherwise is not None
    if looked_up_side(node) is None or combined or node.kind == "full":
        refused = list(pending)
    if refused:
        raise LiftingError(parameters_of(refused))
    _refuse_failing(own, pending)
    border, width = len(node.left.schema), len(left.node.schema)
    inner = {
        index: index if index < border else index - border + width for index in range(border + len(right.node.schema))
    }
    joined = Join(left.node, right.node, node.kind, node.keys, conjunction([remap(part, inner) for part in own]))
    only_left = node.kind in ("semi", "anti")
    first = [*range(border), *(() if only_left else range(width, width + len(node.right.schema)))]
    order = [*first, *(index for index in range(len(joined.schema)) if index not in first)]
    places = {index: position for position, index in enumerate(order)}
    available = columns(joined)
    ordered = Project(joined, tuple(available[n].name for n in order), tuple(available[n] for n in order))
    conditions = [remap(part, places) for part in left.conditions]
    conditions += [
        remap(part, {n: places[n + width] for n in range(len(right.node.schema))}) for part in right.conditions
    ]
    conditions += [remap(part, {index: places[inner[index]] for index in columns_of(part)}) for part in compared]
    return Lifted(ordered, tuple(conditions))


@dataclass
class _Passing:
    """The conditions that pass a GROUP BY or DISTINCT, and the input columns that become grouping columns for them."""

    whole: list[Expression]
    equalities: list[tuple[int, Expression]]
    node: Node


def _passing(below: Lifted, grouped: frozenset[int]) -> _Passing:
    """Divide the conditions by how they pass an operator that groups by these columns of its input."""
    if below.otherwise is not None:
        raise LiftingError(parameters_of(below.conditions))
    found = _Passing([], [], below.node)
    computed: list[Expression] = []
    for condition in below.conditions:
        equal = equality(condition)
        if columns_of(condition) <= grouped and respects_equality(condition) and grouped:
            found.whole.append(condition)
        elif equal is not None and respects_equality(equal[0]) and not may_fail(equal[0]):
            compared, parameter = equal
            if isinstance(compared, Column):
                column = compared.index
            else:
                column = len(below.node.schema) + len(computed)
                computed.append(compared)
            found.equalities.append((column, parameter))
        else:
            raise LiftingError(parameters_of([condition]) or parameters_of(below.conditions))
    found.node = with_columns(below.node, computed)
    return found


def equality(condition: Expression) -> tuple[Expression, Expression] | None:
    """The two sides of an equality with a parameter, the parameter second; None for any other condition."""
    if isinstance(condition, Call) and condition.function == "eq":
        for compared, other in (condition.arguments, condition.arguments[::-1]):
            is_plain = isinstance(other, Literal) and bool(parameters_of([other]))
            if is_plain and not parameters_of([compared]) and compared.dtype == other.dtype:
                return compared, other
    return None


def _equal(column: Column, parameter: Expression) -> Expression:
    return Call("eq", (column, parameter), pa.bool_())


def _aggregate(node: Aggregate) -> Lifted:
    below = lift(node.child)
    if not below.conditions:
        return Lifted(replace(node, child=below.node))
    passing = _passing(below, frozenset(node.keys))
    added = [column for column, _ in passing.equalities if column not in node.keys]
    keys = tuple(dict.fromkeys((*node.keys, *added)))
    grouped = Aggregate(passing.node, keys, node.names, node.aggregates)
    width, own, calls = len(keys), len(node.keys), len(node.aggregates)
    order = [*range(own), *range(width, width + calls), *range(own, width)]
    available = columns(grouped)
    made = Project(grouped, tuple(available[n].name for n in order), tuple(available[n] for n in order))
    places = {keys.index(column): order.index(keys.index(column)) for column in keys}
    result = columns(made)
    conditions = [
        remap(part, {column: places[keys.index(column)] for column in columns_of(part)}) for part in passing.whole
    ]
    conditions += [_equal(result[places[keys.index(column)]], parameter) for column, parameter in passing.equalities]
    otherwise = None
    if not node.keys:
        empty = map(value_of_nothing, node.aggregates)
        otherwise = (*empty, *(Literal(None, field.dtype) for field in made.schema[calls:]))
    return Lifted(made, tuple(conditions), otherwise)


def _distinct(node: Distinct) -> Lifted:
    below = lift(node.child)
    if not below.conditions:
        return Lifted(Distinct(below.node))
    own = range(len(node.schema))
    passing = _passing(below, frozenset(own))
    chosen = list(dict.fromkeys((*own, *(column for column, _ in passing.equalities))))
    available = columns(passing.node)
    made = Distinct(
        Project(passing.node, tuple(available[n].name for n in chosen), tuple(available[n] for n in chosen))
    )
    result = columns(made)
    equalities = [_equal(result[chosen.index(column)], parameter) for column, parameter in passing.equalities]
    return Lifted(made, (*passing.whole, *equalities))
