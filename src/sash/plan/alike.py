"""The plan of alike queries: what they share, and the table of constants in which they differ."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sash.errors import UnboundedStateError
from sash.plan.compound import children, walk
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Call, Column, Expression, Literal, columns_of, conjunction, remap, substitute
from sash.plan.lifting import Lifted, LiftingError, columns, equality, lift, with_columns
from sash.plan.nodes import Alike, Node, Project, Relation
from sash.plan.statistics import declared
from sash.plan.templates import (
    Parameter,
    Shape,
    is_parameter,
    parameters_of,
    replace_parameters,
    shape_of,
    varying,
    with_constants,
)
from sash.plan.types import BIGINT, Field, Schema
from sash.plan.unbounded import refuse_unbounded

QUERY = Field("_query", BIGINT)
"""The number of a query: the first column of the constants, and of the answers of alike queries."""

PREFIX = "_constants_of_"
"""The relation of constants has the name of its template after this."""

COMPARISONS = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""Comparisons, and their names with the sides exchanged."""

_COLUMNWISE = frozenset(
    {"eq", "ne", "eq_null_safe", "in", "and", "or", "not", "add", "subtract", "multiply", "divide", *COMPARISONS}
)
"""Functions that take a column where a query has a constant."""


@dataclass(frozen=True)
class Template:
    """Alike queries as one plan.

    `shape` has parameters where the queries differ; `parameters` are their numbers, in the order of the columns of
    `relation`, which has a row (number of the query, constants) for every query. `plan` gives the answers of all queries, with
    the number of the query as the first column. `variant` is a text of what else alike queries agree on.
    """

    shape: Node
    parameters: tuple[int, ...]
    relation: Relation
    plan: Node
    variant: str

    @property
    def name(self) -> str:
        """The name of the output of all queries together."""
        return self.relation.name.removeprefix(PREFIX)

    @property
    def constants(self) -> Schema:
        """The columns of the constants, without the number of the query."""
        return self.relation.schema[1:]

    def constants_of(self, query: Node) -> tuple[Expression, ...] | None:
        """The constants of a query of this template; None for any other query."""
        found = shape_of(query)
        return self.constants_in(found) if self.accepts(found) else None

    def accepts(self, shape: Shape) -> bool:
        """Whether a query of this shape is one of this template."""
        return filled_plan(shape, self.parameters) == self.shape

    def constants_in(self, shape: Shape) -> tuple[Expression, ...]:
        """The constants of a query of this template, given its shape."""
        return tuple(shape.constants[number] for number in self.parameters)


def make_template(shape: Node, *, net: bool, variant: str = "") -> Template:
    """The template of a shape that has parameters only where queries differ. Raises LiftingError.

    `variant` distinguishes templates of one shape. With `net`, only the answers at the end of each batch matter.
    """
    names, answer, core = _answer(shape)
    lifted, answer = _narrowed(lift(core), answer)
    literals = {
        part.value.number: part for one in (*lifted.conditions, *answer) for part in walk(one) if is_parameter(part)
    }
    parameters = tuple(sorted(literals))
    conditions, left = _computed(lifted)
    for condition in conditions:
        _refuse_functions(condition)
    border = len(left.schema)
    schema = (QUERY, *(Field(f"_constant{number}", literals[number].dtype) for number in parameters))
    placed: dict[int, Expression] = {
        number: Column(border + 1 + n, schema[1 + n].name, schema[1 + n].dtype) for n, number in enumerate(parameters)
    }
    keys, rest = _divided(conditions, parameters)
    everywhere = lifted.otherwise is None
    name = _name(shape, net, variant)
    known = declared(name, tuple(field.name for field in schema), rate=0)
    relation = Relation(
        name, schema, changes=True, waits=False, timed=False, constants=True, everywhere=everywhere, statistics=known
    )
    tested = conjunction([replace_parameters(part, placed) for part in rest])
    alike = Alike(left, relation, keys, tested, lifted.otherwise, net)
    number = Column(border, QUERY.name, QUERY.dtype)
    made = (number, *(replace_parameters(one, placed) for one in answer))
    return Template(shape, parameters, relation, Project(alike, (QUERY.name, *names), made), variant)


def _answer(shape: Node) -> tuple[tuple[str, ...], tuple[Expression, ...], Node]:
    """The columns of the answer, computed for each query by the projections at the top, and the plan below these."""
    projections: list[Project] = []
    node = shape
    while isinstance(node, Project):
        projections.append(node)
        node = node.child
    made: tuple[Expression, ...] = columns(node)
    for projection in reversed(projections):
        made = tuple(substitute(one, made) for one in projection.expressions)
    return tuple(field.name for field in shape.schema), made, node


def _narrowed(lifted: Lifted, answer: tuple[Expression, ...]) -> tuple[Lifted, tuple[Expression, ...]]:
    """The lifted plan with the columns that the answer and the conditions read, and the answer's columns over it."""
    needed = sorted({column for one in (*lifted.conditions, *answer) for column in columns_of(one)}) or [0]
    if len(needed) == len(lifted.node.schema):
        return lifted, answer
    places = {column: position for position, column in enumerate(needed)}
    chosen = tuple(columns(lifted.node)[column] for column in needed)
    otherwise = None if lifted.otherwise is None else tuple(lifted.otherwise[column] for column in needed)
    narrow = Lifted(
        Project(lifted.node, tuple(column.name for column in chosen), chosen),
        tuple(remap(condition, places) for condition in lifted.conditions),
        otherwise,
    )
    return narrow, tuple(remap(one, places) for one in answer)


def _computed(lifted: Lifted) -> tuple[list[Expression], Node]:
    """The conditions, in which a computed value that is compared with a parameter is a column of the plan."""
    added: list[Expression] = []
    conditions: list[Expression] = []
    for condition in lifted.conditions:
        compared = comparison(condition)
        # An expression that may fail sees the rows that it sees in each query if there is no other condition.
        safe = compared is not None and (not may_fail(compared[1]) or len(lifted.conditions) == 1)
        if compared is not None and safe and lifted.otherwise is None and not isinstance(compared[1], Column):
            function, value, parameter = compared
            column = Column(len(lifted.node.schema) + len(added), "", value.dtype)
            added.append(value)
            conditions.append(Call(function, (column, parameter), condition.dtype))
        else:
            conditions.append(condition)
    return conditions, with_columns(lifted.node, added)


def comparison(condition: Expression) -> tuple[str, Expression, Expression] | None:
    """The function, the value and the parameter of a comparison of a value with a parameter; None for other conditions."""
    equal = equality(condition)
    if equal is not None:
        return "eq", *equal
    if isinstance(condition, Call) and condition.function in COMPARISONS:
        one, other = condition.arguments
        if is_parameter(other) and not parameters_of([one]):
            return condition.function, one, other
        if is_parameter(one) and not parameters_of([other]):
            return COMPARISONS[condition.function], other, one
    return None


def _refuse_functions(condition: Expression) -> None:
    for part in walk(condition):
        found = parameters_of(one for one in children(part) if is_parameter(one))
        if found and not (isinstance(part, Call) and part.function in _COLUMNWISE):
            raise LiftingError(found)


def _divided(
    conditions: Sequence[Expression], parameters: tuple[int, ...]
) -> tuple[tuple[tuple[int, int], ...], list[Expression]]:
    """The pairs of columns of both inputs that must be equal, and the other conditions."""
    keys, rest = [], []
    for condition in conditions:
        equal = equality(condition)
        if equal is not None and isinstance(equal[0], Column) and isinstance(equal[1], Literal):
            assert isinstance(equal[1].value, Parameter)
            keys.append((equal[0].index, 1 + parameters.index(equal[1].value.number)))
        else:
            rest.append(condition)
    return tuple(keys), rest


def filled_plan(shape: Shape, parameters: Collection[int]) -> Node:
    """The plan with all constants but these."""
    return with_constants(shape.plan, {n: one for n, one in enumerate(shape.constants) if n not in parameters})


def filled_name(shape: Shape, parameters: Collection[int], net: bool, variant: str) -> str:
    """The name of the template of a shape, if queries differ in these parameters."""
    return _name(filled_plan(shape, parameters), net, variant).removeprefix(PREFIX)


def _name(shape: Node, net: bool, variant: str) -> str:
    return f"{PREFIX}alike_{hashlib.sha256(f'{shape!r} {net} {variant}'.encode()).hexdigest()[:12]}"


LEAST = 8
"""Fewer alike queries than this run separately: what they share is computed for all constants, not only for theirs."""


@dataclass(frozen=True)
class AlikeQueries:
    """A template, and the positions of the queries that it stands for."""

    template: Template
    members: tuple[int, ...]


def find_alike(queries: Sequence[tuple[Shape, bool, str]], least: int = LEAST) -> list[AlikeQueries]:
    """The alike queries among these, in groups of at least `least`; each query is in one group at most.

    A query is given by its shape, whether only its answers at the end of each batch matter, and a text of what else must be
    equal in alike queries.
    """
    groups: dict[tuple[Node, bool, str], list[int]] = {}
    for position, (shape, net, variant) in enumerate(queries):
        groups.setdefault((shape.plan, net, variant), []).append(position)
    found: list[AlikeQueries] = []
    for (_, net, variant), members in groups.items():
        found += _templates([queries[n][0] for n in members], members, net, variant, least)
    return found


def _templates(
    shapes: Sequence[Shape], members: Sequence[int], net: bool, variant: str, least: int
) -> list[AlikeQueries]:
    """Templates for queries of one shape. Where a difference cannot be lifted, those that agree on it are a group."""
    if len(members) < least:
        return []
    different = varying([shape.constants for shape in shapes])
    try:
        template = make_template(filled_plan(shapes[0], different), net=net, variant=variant)
        refuse_unbounded(template.plan)
    except UnboundedStateError:
        return []
    except LiftingError as problem:
        obstacles = sorted(problem.parameters & different)
        agreeing: dict[tuple[Expression, ...], list[int]] = {}
        for n, shape in enumerate(shapes):
            agreeing.setdefault(tuple(shape.constants[number] for number in obstacles), []).append(n)
        if len(agreeing) == 1:
            return []
        parts = [([shapes[n] for n in chosen], [members[n] for n in chosen]) for chosen in agreeing.values()]
        return [one for few, at in parts for one in _templates(few, at, net, variant, least)]
    return [AlikeQueries(template, tuple(members))] if template.parameters else []
