"""Bound scalar and aggregate expressions: columns are positions, and every expression has a type."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import pyarrow as pa

from sash.plan.compound import LAZY_LEVELS, Compound, balanced, rewrite, walk
from sash.plan.user_code import UserCode


@dataclass(frozen=True)
class Column:
    """The column at `index` of the input."""

    index: int
    name: str
    dtype: pa.DataType


@dataclass(frozen=True)
class Literal:
    """A constant; `value` is the Python value that `pyarrow.scalar(value, dtype)` takes (None for NULL)."""

    value: Any
    dtype: pa.DataType

    @cached_property
    def scalar(self) -> pa.Scalar[Any]:
        """The constant as an Arrow scalar."""
        return pa.scalar(self.value, self.dtype)


_LAZY = frozenset({"and", "or", "coalesce"})


@dataclass(frozen=True, eq=False)
class Call(Compound):
    """A function or operator of Sash's own library, under its canonical lower-case name (see sql/functions.py)."""

    function: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType

    @property
    def laziness(self) -> int:
        """The levels that the call counts for."""
        return LAZY_LEVELS if self.function in _LAZY else 1

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    @property
    def own(self) -> tuple[Any, ...]:
        """The function and the type."""
        return self.function, self.dtype

    @classmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The call of the function with these arguments."""
        return cls(own[0], children, own[1])


@dataclass(frozen=True, eq=False)
class UserCall(Call):
    """A call of a function that the user registered; `function` is its name."""

    code: UserCode

    @property
    def own(self) -> tuple[Any, ...]:
        """The code and the type."""
        return self.code, self.dtype

    @classmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The call of the function with these arguments."""
        return cls(own[0].name, children, own[1], own[0])


ONLY_SASH = frozenset(
    {"variant_parse", "variant_try_parse", "variant_at", "variant_text", "variant_json", "variant_is_null"}
    | {"variant_schema", "variant_cast", "variant_try_cast", "variant_of", "variant_is_valid"}
    | {f"{tried}variant_{name}" for tried in ("", "try_") for name in ("insert", "set", "array_append")}
    | {"variant_delete", "variant_strip_nulls"}
)
"""Functions of variants as Sash stores them, which Spark's engine does not have."""


def runs_in_sash(expression: Expression) -> bool:
    """Whether a function in the expression does not run in Spark's engine: one that the user registered, or Sash's own."""
    return any(
        isinstance(part, UserCall) or (isinstance(part, Call) and part.function in ONLY_SASH)
        for part in walk(expression)
    )


@dataclass(frozen=True, eq=False)
class Cast(Compound):
    """CAST, or if `lenient` TRY_CAST, which returns NULL where CAST fails."""

    argument: Expression
    dtype: pa.DataType
    lenient: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        """The argument."""
        return (self.argument,)

    @property
    def own(self) -> tuple[Any, ...]:
        """The type, and what happens if the cast fails."""
        return self.dtype, self.lenient

    @classmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The cast of this argument."""
        return cls(children[0], *own)


@dataclass(frozen=True, eq=False)
class Case(Compound):
    """CASE WHEN condition THEN value ... ELSE otherwise END."""

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None
    dtype: pa.DataType

    @property
    def laziness(self) -> int:
        """The levels that the expression counts for."""
        return LAZY_LEVELS

    @property
    def children(self) -> tuple[Expression, ...]:
        """Conditions and values in turn, and the value of ELSE."""
        inner = tuple(part for branch in self.branches for part in branch)
        return inner if self.otherwise is None else (*inner, self.otherwise)

    @property
    def own(self) -> tuple[Any, ...]:
        """The number of branches, whether there is an ELSE, and the type."""
        return len(self.branches), self.otherwise is not None, self.dtype

    @classmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The CASE with these conditions and values."""
        count, has_otherwise, dtype = own
        inner = children[: 2 * count]
        branches = tuple(zip(inner[::2], inner[1::2], strict=True))
        return cls(branches, children[-1] if has_otherwise else None, dtype)


@dataclass(frozen=True, eq=False)
class SparkFunction(Compound):
    """An expression that only Spark can evaluate, so it must stay directly above a source.

    `sql` is Spark SQL in which `{0}`, `{1}` ... stand for the argument expressions.
    """

    sql: str
    arguments: tuple[Expression, ...]
    dtype: pa.DataType

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    @property
    def own(self) -> tuple[Any, ...]:
        """The text and the type."""
        return self.sql, self.dtype

    @classmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The same text over these arguments."""
        return cls(own[0], children, own[1])


@dataclass(frozen=True)
class Variable:
    """A variable of a lambda function, bound by the nearest lambda around it that has the same number."""

    number: int
    name: str = field(compare=False)
    dtype: pa.DataType


@dataclass(frozen=True, eq=False)
class Lambda(Compound):
    """`(x, y) -> body`, an argument of a higher-order function; its type is that of the body."""

    variables: tuple[Variable, ...]
    body: Expression

    @property
    def dtype(self) -> pa.DataType:
        """The type of the body."""
        return self.body.dtype

    @property
    def laziness(self) -> int:
        """The levels that the expression counts for: the body is evaluated on rows of its own."""
        return LAZY_LEVELS

    @property
    def children(self) -> tuple[Expression, ...]:
        """The body."""
        return (self.body,)

    @property
    def own(self) -> tuple[Any, ...]:
        """The variables."""
        return (self.variables,)

    @classmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The lambda with this body."""
        return cls(own[0], children[0])


Expression = Column | Literal | Call | Cast | Case | SparkFunction | Variable | Lambda


@dataclass(frozen=True)
class AggregateDetail:
    """What only some aggregates have.

    `descending` is the direction of WITHIN GROUP (ORDER BY x DESC), for mode and percentiles. `order` is, for each argument
    after the first of an aggregate of rows, whether it is descending and whether NULLs come first; `separator` is between
    the texts of listagg, in UTF-8, `fractions` are those of a percentile that returns an array, `limit` the bins of histogram_numeric, or the k of min_by and max_by, if they return an array. `user` is the code of an aggregate that the user registered;
    if it is `filtered`, the last argument is a BOOLEAN: rows for which it is not true are left out.
    """

    descending: bool = False
    order: tuple[tuple[bool, bool], ...] = ()
    separator: bytes = b""
    fractions: tuple[float, ...] | None = None
    user: UserCode | None = None
    filtered: bool = False
    limit: int | None = None


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a GROUP BY; its arguments are columns of the input.

    `function` is one of SUPPORTED; and, over a kept window only, of APPROXIMATE. The second argument of first and last, if
    there is one, is a BOOLEAN: rows for which it is not true are left out. `parameter` is PERCENTILE's p or top-k's k,
    `precision` the precision required of an estimate.
    """

    function: str
    arguments: tuple[Column, ...]
    dtype: pa.DataType
    distinct: bool = False
    parameter: float | None = None
    precision: float | None = None
    detail: AggregateDetail | None = None


APPROXIMATE = frozenset({"approx_count_distinct", "approx_percentile", "approx_top_k"})
"""Approximate aggregates, available in snapshots of a kept window only."""

TIMED = frozenset({"first", "last"})
"""Aggregates of the earliest or latest row, which may be NULL."""

COLLECTED = frozenset({"collect_list", "collect_set", "listagg"})
"""Aggregates that return all values of a group, in order."""

USER = "user"
"""The function of calls of aggregates that users registered."""

ORDERED = frozenset({"min_by", "max_by", USER}) | TIMED | COLLECTED
"""Aggregates that break ties by the rows' times and then by all input columns, in order."""

COMOMENTS = frozenset(
    {"corr", "covar_pop", "covar_samp", "regr_intercept", "regr_r2", "regr_slope", "regr_sxx", "regr_sxy", "regr_syy"}
)
"""Aggregates of pairs of numbers."""

SUMS = frozenset({"sum", "avg", "try_sum", "try_avg"})
SPREADS = frozenset({"var_pop", "var_samp", "stddev_pop", "stddev_samp"})
SHAPES = frozenset({"skewness", "kurtosis"})
BITS = frozenset({"bit_and", "bit_or", "bit_xor"})
PERCENTILES = frozenset({"median", "percentile", "percentile_disc"})
"""Percentiles as doubles; percentile_value is one of the values."""


STEPWISE = frozenset({"count", "count_star"}) | SUMS | SPREADS | SHAPES | BITS | COMOMENTS
"""Aggregates that add or remove a row in one step, with a fixed amount of state per group."""

SUPPORTED = STEPWISE | PERCENTILES | ORDERED | {"min", "max", "mode", "percentile_value", "histogram_numeric"}
"""All aggregates of a standing query."""


def is_higher_order(expression: Expression) -> bool:
    """Whether the expression is a call with a lambda among its arguments."""
    return isinstance(expression, Call) and any(isinstance(argument, Lambda) for argument in expression.arguments)


def columns_of(expression: Expression) -> frozenset[int]:
    """The positions of all input columns that the expression reads."""
    return frozenset(node.index for node in walk(expression) if isinstance(node, Column))


def remap(expression: Expression, positions: dict[int, int]) -> Expression:
    """The expression with every column moved to its new position."""
    return rewrite(
        expression, lambda node: replace(node, index=positions[node.index]) if isinstance(node, Column) else None
    )


def substitute(expression: Expression, inputs: tuple[Expression, ...]) -> Expression:
    """The expression with every column replaced by the expression that makes it."""
    return rewrite(expression, lambda node: inputs[node.index] if isinstance(node, Column) else None)


def conjuncts(predicate: Expression) -> list[Expression]:
    """The parts of a conjunction."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return [part for argument in predicate.arguments for part in conjuncts(argument)]
    return [predicate]


def conjunction(parts: list[Expression]) -> Expression | None:
    """The conjunction of the parts; None if there are none."""
    return balanced(parts, lambda left, right: Call("and", (left, right), pa.bool_())) if parts else None
