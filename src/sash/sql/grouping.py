"""GROUP BY with GROUPING SETS, ROLLUP and CUBE.

Every input row becomes one row per grouping set, in which the keys that are not in the set are NULL, and one aggregation by
all keys and the number of the set (grouping id) computes the groups of all sets. So a set without rows has no group, not
even the empty set, as in Spark.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from sash.errors import UnsupportedSqlError
from sash.plan.compound import fold
from sash.plan.expressions import Call, Cast, Column, Expression, Literal, Variable
from sash.plan.nodes import Expand, Node
from sash.plan.types import BIGINT, INT, TINYINT
from sash.sql.source import SqlText

MOST_SETS = 4_096
"""The largest number of grouping sets of a query."""

_ANALYTICS = (exp.Rollup, exp.Cube, exp.GroupingSets)
_ID, _POSITION = "grouping_id", "grouping_set"

BindKey = Callable[[exp.Expr], Expression]


@dataclass(frozen=True)
class Grouping:
    """The keys of a GROUP BY, and its grouping sets as positions of keys; None without GROUPING SETS, ROLLUP and CUBE.

    GROUPING SETS (()) is a `grand_total`: an aggregate without keys, which has a row even if there are no input rows.
    """

    keys: list[Expression]
    sets: list[frozenset[int]] | None = None
    grand_total: bool = False

    @property
    def width(self) -> int:
        """The number of key columns of the aggregation."""
        return len(self.keys) + len(self.identity)

    @property
    def identity(self) -> list[str]:
        """The names of the columns that tell groups of different sets apart; equal sets have different positions."""
        if self.sets is None:
            return []
        return [_ID] if len(set(self.sets)) == len(self.sets) else [_ID, _POSITION]

    def id_of(self, chosen: frozenset[int]) -> int:
        """The grouping id: a bit per key, from the last one up, that is set if the key is not in the set."""
        count = len(self.keys)
        return sum(1 << (count - 1 - position) for position in range(count) if position not in chosen)

    def expand(self, child: Node, keys: Sequence[Column], kept: Sequence[Column]) -> Node:
        """The rows of the child for every set: the columns `kept`, the keys, and the columns of `identity`."""
        assert self.sets is not None
        lists = []
        for number, chosen in enumerate(self.sets):
            made: list[Expression] = [
                key if position in chosen else _null(key.dtype) for position, key in enumerate(keys)
            ]
            identity = [Literal(self.id_of(chosen), BIGINT), Literal(number, INT)][: len(self.identity)]
            lists.append((*kept, *made, *identity))
        names = (*(column.name for column in kept), *(key.name for key in keys), *self.identity)
        return Expand(child, names, tuple(lists))

    def call(self, source: SqlText, part: Call, node: exp.Expr) -> Expression:
        """GROUPING(key) or GROUPING_ID(...) over the output of the aggregation."""
        if self.grand_total and part.function == "grouping_id" and not part.arguments:
            return Literal(0, BIGINT)
        if self.sets is None:
            raise source.error(
                UnsupportedSqlError,
                f"{part.function.upper()} needs GROUP BY with GROUPING SETS, ROLLUP or CUBE",
                node,
            )
        number = Column(len(self.keys), _ID, BIGINT)
        if part.function == "grouping_id":
            if part.arguments and list(part.arguments) != self.keys:
                raise source.error(
                    UnsupportedSqlError, "GROUPING_ID takes all columns of GROUP BY in their order, or none", node
                )
            return number
        if part.arguments[0] not in self.keys:
            raise source.error(UnsupportedSqlError, "GROUPING takes a column of GROUP BY", node)
        bit = 1 << (len(self.keys) - 1 - self.keys.index(part.arguments[0]))
        quotient = Call("int_divide", (number, Literal(bit, BIGINT)), BIGINT)
        return Cast(Call("modulo", (quotient, Literal(2, BIGINT)), BIGINT), TINYINT)


def _null(dtype: pa.DataType) -> Expression:
    return Literal(None, dtype) if pa.types.is_null(dtype) else Cast(Literal(None, pa.null()), dtype)


_COMMUTATIVE = frozenset({"add", "multiply", "and", "or", "eq", "eq_null_safe"})
_LARGEST = 200
"""The largest expression, in parts, that is compared with keys whatever the order of its operands is."""


def normal(expression: Expression) -> Expression:
    """The expression with the operands of commutative operators in one order: `1 + k` and `k + 1` are the same key."""
    if not isinstance(expression, Call) or expression.parts > _LARGEST:
        return expression
    return fold(expression, _sorted)


def _sorted(part: Expression, inner: list[Expression]) -> Expression:
    if isinstance(part, Column | Literal | Variable):
        return part
    if isinstance(part, Call) and part.function in _COMMUTATIVE:
        return part.over(tuple(sorted(inner, key=repr)))
    return part.over(tuple(inner))


def grouping_call(name: str, arguments: list[Expression]) -> Call:
    """GROUPING or GROUPING_ID over the rows of FROM, until `Grouping.call` gives it its meaning."""
    return Call(name, tuple(arguments), TINYINT if name == "grouping" else BIGINT)


def read_grouping(source: SqlText, group: exp.Expr, bind: BindKey) -> Grouping:
    """The keys and sets of a GROUP BY."""
    source.refuse_all_but(group, "expressions", "rollup", "cube", "grouping_sets", "all")
    elements: list[exp.Expr] = list(group.expressions)
    for name in ("rollup", "cube", "grouping_sets"):
        for clause in group.args.get(name) or []:
            if isinstance(clause, exp.GroupingSets) and elements:
                return _chosen(source, clause, elements, bind)
            elements = [clause if clause.expressions else type(clause)(expressions=elements)]
    if not any(isinstance(element, _ANALYTICS) for element in elements):
        return Grouping(_distinct([bind(element) for element in elements]))
    parts = [_sets(source, element) if isinstance(element, _ANALYTICS) else [[element]] for element in elements]
    count = 1
    for part in parts:
        count *= len(part)
        if count > MOST_SETS:
            raise source.error(UnsupportedSqlError, f"a query may have {MOST_SETS:,} grouping sets", group)
    sets = [[node for units in combination for node in units] for combination in itertools.product(*parts)]
    return _bound(sets, [_mentioned(element) for element in elements], bind)


def _chosen(source: SqlText, clause: exp.GroupingSets, keys: list[exp.Expr], bind: BindKey) -> Grouping:
    """GROUP BY a, b GROUPING SETS (...): the sets are of these keys."""
    return _bound(_sets(source, clause), [keys, _mentioned(clause)], bind)


def _bound(sets: list[list[exp.Expr]], mentioned: list[list[exp.Expr]], bind: BindKey) -> Grouping:
    keys: list[Expression] = []
    known: dict[Expression, int] = {}
    positions: dict[int, int] = {}
    for node in itertools.chain.from_iterable(mentioned):
        key = bind(node)
        positions[id(node)] = known.setdefault(normal(key), len(keys))
        if positions[id(node)] == len(keys):
            keys.append(key)
    made = [frozenset(positions[id(node)] for node in chosen) for chosen in sets]
    return Grouping([], grand_total=True) if not keys and len(made) == 1 else Grouping(keys, made)


def _distinct(keys: list[Expression]) -> list[Expression]:
    return list({normal(key): key for key in reversed(keys)}.values())[::-1]


def _sets(source: SqlText, node: exp.Expr) -> list[list[exp.Expr]]:
    """The sets that ROLLUP, CUBE or GROUPING SETS stands for."""
    units = [_unit(one) for one in node.expressions]
    if isinstance(node, exp.Rollup):
        chosen = [units[:count] for count in range(len(units), -1, -1)]
        return [[one for unit in prefix for one in unit] for prefix in chosen]
    if isinstance(node, exp.Cube):
        if 2 ** len(units) > MOST_SETS:
            raise source.error(UnsupportedSqlError, f"a query may have {MOST_SETS:,} grouping sets", node)
        subsets = itertools.product(*([unit, []] for unit in units))
        return [[one for unit in subset for one in unit] for subset in subsets]
    return [
        found
        for one in node.expressions
        for found in (_sets(source, one) if isinstance(one, _ANALYTICS) else [_unit(one)])
    ]


def _unit(node: exp.Expr) -> list[exp.Expr]:
    """The columns in parentheses that are in a set together; or a single one."""
    if isinstance(node, exp.Tuple):
        return list(node.expressions)
    return [node.this if isinstance(node, exp.Paren) else node]


def _mentioned(node: exp.Expr) -> list[exp.Expr]:
    """The keys in an element of GROUP BY, in order."""
    if not isinstance(node, _ANALYTICS):
        return [node]
    return [key for one in node.expressions for key in (_mentioned(one) if isinstance(one, _ANALYTICS) else _unit(one))]
