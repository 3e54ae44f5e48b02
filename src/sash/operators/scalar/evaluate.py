"""Evaluates scalar expressions over the columns of a batch, with Spark's ANSI semantics.

An expression that can fail on a value is evaluated only on the rows that need it: the branch of a CASE that a row
takes, the arguments of COALESCE up to the first that is not NULL, the right side of AND and OR if the left one does not
determine the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError
from sash.operators.scalar.arrays import Array, Datum, Numbers, broadcast, kernel, nulls, scatter
from sash.operators.scalar.casts import can_cast, cast, cast_datum, may_fail
from sash.operators.scalar.failing_row import every, name_row
from sash.operators.scalar.functions import FUNCTIONS
from sash.operators.scalar.lambdas import FAILING, HIGHER_ORDER
from sash.operators.scalar.user_functions import call_user
from sash.plan.compound import Compound, walk
from sash.plan.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    Literal,
    SparkFunction,
    UserCall,
    Variable,
    is_higher_order,
)
from sash.plan.types import type_name
from sash.state.columns import gather

_LAZY = {"and", "or", "coalesce"}
_SHALLOW = 50
"""The levels of an expression that is evaluated by plain recursion."""
_NEVER_FAIL_ON_FLOATS = {"add", "subtract", "multiply", "negate", "abs", "round"}


def evaluate(expression: Expression, columns: Sequence[Array], rows: int) -> Array:
    """The value of the expression in each of the `rows` rows, an array of exactly `expression.dtype`."""
    return evaluate_all((expression,), columns, rows)[0]


def evaluate_all(
    expressions: Sequence[Expression], columns: Sequence[Array], rows: int, chosen: Numbers | None = None
) -> list[Array]:
    """The value of each expression in each of the `rows` rows; these are all, or those at the positions `chosen`."""
    if rows == 0:
        return [pa.array([], expression.dtype) for expression in expressions]
    try:
        return _evaluate_all(expressions, columns, rows, chosen)
    except Exception as problem:
        places = every(rows) if chosen is None else chosen
        name_row(
            problem, expressions, columns, places, lambda some: _evaluate_all(expressions, columns, len(some), some)
        )
        raise


def _evaluate_all(
    expressions: Sequence[Expression], columns: Sequence[Array], rows: int, chosen: Numbers | None
) -> list[Array]:
    given = _EvaluatedRows(columns, rows, chosen)
    return [broadcast(cast_datum(_evaluate(each, given), each.dtype), rows) for each in expressions]


def supports(expression: Expression) -> str | None:
    """None if `evaluate` can evaluate the expression, otherwise the name of the first unsupported part."""
    for node in walk(expression):
        match node:
            case SparkFunction():
                return node.sql
            case UserCall():
                continue
            case Call() if is_higher_order(node):
                if node.function not in HIGHER_ORDER:
                    return node.function
            case Call() if node.function in _LAZY:
                continue
            case Call():
                function = FUNCTIONS.get(node.function)
                if function is None:
                    return node.function
                if not function.least <= len(node.arguments) <= function.most:
                    return f"{node.function} with {len(node.arguments)} arguments"
            case Cast() if not can_cast(node.argument.dtype, node.dtype):
                return f"CAST({type_name(node.argument.dtype)} AS {type_name(node.dtype)})"
    return None


class _EvaluatedRows:
    """The rows under evaluation: the columns of a batch, or of some of its rows, gathered when first read."""

    def __init__(
        self,
        columns: Sequence[Array],
        count: int,
        chosen: Numbers | None = None,
        variables: Mapping[int, _Chosen] | None = None,
    ) -> None:
        self.count = count
        self._columns = columns
        self._chosen = chosen
        self._variables = dict(variables or {})
        self._gathered: dict[int, Array] = {}

    def column(self, index: int) -> Array:
        if self._chosen is None:
            return self._columns[index]
        if index not in self._gathered:
            (self._gathered[index],) = gather((self._columns[index],), self._chosen)
        return self._gathered[index]

    def choose(self, rows: Numbers) -> _EvaluatedRows:
        """Some of these rows, by position."""
        if len(rows) == self.count:
            return self
        return self.repeat(rows)

    def variable(self, number: int) -> Array:
        """The values of a lambda's variable."""
        values, chosen = self._variables[number]
        if chosen is not None:
            (values,) = gather((values,), chosen)
            self._variables[number] = values, None
        return values

    def repeat(self, rows: Numbers, values: Mapping[int, Array] | None = None) -> _EvaluatedRows:
        """These rows, by position, each perhaps several times; with these values of variables."""
        variables: dict[int, _Chosen] = {
            number: (each, _composed(chosen, rows)) for number, (each, chosen) in self._variables.items()
        }
        variables |= {number: (each, None) for number, each in (values or {}).items()}
        return _EvaluatedRows(self._columns, len(rows), _composed(self._chosen, rows), variables)


_Chosen: TypeAlias = tuple[Array, Numbers | None]
"""Values, and the positions of those that count; None if all do."""


def _composed(chosen: Numbers | None, rows: Numbers) -> Numbers:
    return rows if chosen is None else chosen[rows]


class _Body:
    """The body of a lambda, over rows that are under evaluation."""

    def __init__(self, function: Lambda, rows: _EvaluatedRows) -> None:
        self.count = len(function.variables)
        self.fails = _can_fail(function.body)
        self._function = function
        self._rows = rows

    def __call__(self, rows: Numbers, values: Sequence[Array]) -> Array:
        body, count = self._function.body, len(rows)
        if not count:
            return pa.array([], body.dtype)
        given = {variable.number: each for variable, each in zip(self._function.variables, values, strict=True)}
        return broadcast(cast_datum(_evaluate(body, self._rows.repeat(rows, given)), body.dtype), count)


def _evaluate(expression: Expression, rows: _EvaluatedRows) -> Datum:
    """An array, or a scalar if the value is the same in every row; there is at least one row."""
    if _is_strict(expression) and expression.levels > _SHALLOW:
        return _evaluate_deep(expression, rows)
    match expression:
        case Column(index=index):
            return rows.column(index)
        case Literal():
            return expression.scalar
        case Cast(argument=argument, dtype=dtype, lenient=lenient):
            return _cast(_evaluate(argument, rows), dtype, lenient)
        case Call(function="and" | "or"):
            return _connect(expression, rows)
        case Call(function="coalesce"):
            return _coalesce(expression, rows)
        case Call() if is_higher_order(expression):
            return _call_higher_order(expression, rows)
        case Call():
            return _call(expression, [_evaluate(argument, rows) for argument in expression.arguments])
        case Case():
            return _case(expression, rows)
        case SparkFunction(sql=sql):
            raise EvaluationError(f"only Spark can evaluate {sql}; use it directly above a source")
        case Variable(number=number):
            return rows.variable(number)
        case Lambda():
            raise EvaluationError("a lambda is not a value; use it as an argument of a function")


def _is_strict(expression: Expression) -> TypeGuard[Call | Cast]:
    """Whether the operands are evaluated on all rows."""
    if isinstance(expression, Call):
        return expression.function not in _LAZY and not is_higher_order(expression)
    return isinstance(expression, Cast)


def _evaluate_deep(expression: Expression, rows: _EvaluatedRows) -> Datum:
    """Evaluates the deepest operand of a deep expression first, then that of the operator around it, and so on outwards."""
    around: list[tuple[Call | Cast, int]] = []
    while _is_strict(expression):
        inner = expression.children
        depths = [part.levels if isinstance(part, Compound) else 0 for part in inner]
        if max(depths, default=0) == 0:
            break
        place = depths.index(max(depths))
        around.append((expression, place))
        expression = inner[place]
    value = _evaluate(expression, rows)
    for outer, place in reversed(around):
        if isinstance(outer, Cast):
            value = _cast(value, outer.dtype, outer.lenient)
        else:
            others = enumerate(outer.arguments)
            value = _call(outer, [value if at == place else _evaluate(argument, rows) for at, argument in others])
    return value


def _cast(value: Datum, dtype: pa.DataType, lenient: bool) -> Datum:
    if isinstance(value, pa.Array):
        return cast(value, dtype, lenient)
    constant: Datum = cast(broadcast(value, 1), dtype, lenient)[0]
    return constant


def _call(call: Call, arguments: list[Datum]) -> Datum:
    if isinstance(call, UserCall):
        return call_user(call.code, arguments)
    function = FUNCTIONS.get(call.function)
    if function is None:
        raise EvaluationError(f"unknown function {call.function}; see supports()")
    if function.strict and any(_is_null_constant(argument) for argument in arguments):
        return pa.scalar(None, call.dtype)
    constant = bool(arguments) and not any(isinstance(argument, pa.Array) for argument in arguments)
    if constant:
        arguments = [broadcast(arguments[0], 1), *arguments[1:]]
    try:
        result = cast_datum(function.run(arguments, call.dtype), call.dtype)
    except pa.ArrowInvalid as error:
        raise _explain(call, str(error)) from None
    except (pa.ArrowCapacityError, MemoryError):
        raise EvaluationError(f"{call.function}: the result is too large; make shorter text") from None
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        types = ", ".join(type_name(argument.type) for argument in arguments)
        raise EvaluationError(f"{call.function} does not take ({types}); cast its arguments ({error})") from None
    return result[0] if constant and isinstance(result, pa.Array) else result


def _call_higher_order(call: Call, rows: _EvaluatedRows) -> Array:
    """A function whose lambdas are evaluated over elements."""
    values = [part for part in call.arguments if not isinstance(part, Lambda)]
    bodies = [_Body(part, rows) for part in call.arguments if isinstance(part, Lambda)]
    arguments = [broadcast(_evaluate(part, rows), rows.count) for part in values]
    return HIGHER_ORDER[call.function](arguments, bodies, call.dtype)


def _explain(call: Call, reason: str) -> EvaluationError:
    if "by zero" in reason:
        return EvaluationError(
            f"{call.function}: division by zero; make the divisor NULLIF(divisor, 0) to get NULL instead"
        )
    if pa.types.is_temporal(call.dtype):
        return EvaluationError(f"{call.function}: the result does not fit {type_name(call.dtype)} ({reason})")
    return EvaluationError(
        f"{call.function}: the result does not fit {type_name(call.dtype)} ({reason}); cast the arguments to a wider type "
        "such as DECIMAL or DOUBLE"
    )


def _is_null_constant(datum: Datum) -> bool:
    return bool(pa.types.is_null(datum.type) or (isinstance(datum, pa.Scalar) and not datum.is_valid))


def _can_fail(expression: Expression) -> bool:
    for node in walk(expression):
        match node:
            case SparkFunction() | UserCall():
                return True
            case Cast(argument=argument, dtype=dtype, lenient=False) if may_fail(argument.dtype, dtype):
                return True
            case Call(function=name) if is_higher_order(node):
                if name in FAILING:
                    return True
            case Call(function=name, dtype=dtype) if name not in _LAZY:
                harmless = name in _NEVER_FAIL_ON_FLOATS and pa.types.is_floating(dtype)
                if FUNCTIONS[name].fails and not harmless:
                    return True
    return False


def _connect(call: Call, rows: _EvaluatedRows) -> Datum:
    """AND and OR, in three-valued logic."""
    conjunction = call.function == "and"
    result = cast_datum(_evaluate(call.arguments[0], rows), pa.bool_())
    for argument in call.arguments[1:]:
        if _can_fail(argument):
            decided = kernel("equal", broadcast(result, rows.count), pa.scalar(not conjunction))
            undecided = kernel("coalesce", kernel("invert", decided), pa.scalar(True))
            part: Datum = _evaluate_where(argument, rows, undecided)
        else:
            part = _evaluate(argument, rows)
        part = cast_datum(part, pa.bool_())
        result = pc.call_function("and_kleene" if conjunction else "or_kleene", [result, part])
    return result


def _coalesce(call: Call, rows: _EvaluatedRows) -> Datum:
    """The first argument that is not NULL."""
    result = cast_datum(_evaluate(call.arguments[0], rows), call.dtype)
    for argument in call.arguments[1:]:
        if isinstance(result, pa.Scalar) and result.is_valid:
            return result
        if _can_fail(argument):
            missing = kernel("is_null", broadcast(result, rows.count))
            part: Datum = _evaluate_where(argument, rows, missing)
        else:
            part = _evaluate(argument, rows)
        result = pc.call_function("coalesce", [result, cast_datum(part, call.dtype)])
    return result


def _case(case: Case, rows: _EvaluatedRows) -> Datum:
    """CASE: row by row the first branch whose condition holds."""
    remaining = np.arange(rows.count)
    pieces: list[Array] = []
    positions: list[Numbers] = []

    def take(value: Expression, chosen: Numbers) -> None:
        if len(chosen):
            piece = broadcast(_evaluate(value, rows.choose(chosen)), len(chosen))
            pieces.append(cast(piece, case.dtype))
            positions.append(chosen)

    for condition, value in case.branches:
        if not len(remaining):
            break
        holds = broadcast(_evaluate(condition, rows.choose(remaining)), len(remaining))
        holds = kernel("coalesce", cast(holds, pa.bool_()), pa.scalar(False))
        mask = holds.to_numpy(zero_copy_only=False)
        take(value, remaining[mask])
        remaining = remaining[~mask]
    if case.otherwise is not None:
        take(case.otherwise, remaining)
    if len(pieces) == 1 and len(pieces[0]) == rows.count:
        return pieces[0]
    return scatter(pieces, positions, rows.count, case.dtype)


def _evaluate_where(expression: Expression, rows: _EvaluatedRows, mask: Array) -> Array:
    """The value where the mask is true, NULL elsewhere."""
    chosen = np.flatnonzero(mask.to_numpy(zero_copy_only=False))
    if not len(chosen):
        return nulls(rows.count, expression.dtype)
    piece = broadcast(_evaluate(expression, rows.choose(chosen)), len(chosen))
    return piece if len(chosen) == rows.count else scatter([piece], [chosen], rows.count, expression.dtype)
