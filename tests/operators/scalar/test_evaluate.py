"""What holds for every expression, and the laziness of CASE, COALESCE, AND and OR."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sash.errors import EvaluationError
from sash.operators.scalar import evaluate, supports
from sash.plan.expressions import Call, Case, Cast, Column, Expression, Literal, SparkFunction, substitute
from sash.plan.types import BIGINT, BOOLEAN, DATE, DOUBLE, INT, NULL, STRING
from tests.operators.scalar.build import ROWS, call, case, lit, table
from tests.operators.scalar.cases import ALL

TABLE = table()
COLUMNS = [column.combine_chunks() for column in TABLE.columns]
X = Column(0, "x", INT)
ZERO = lit(0, INT)
INVERSE = call("int_divide", BIGINT, lit(10, BIGINT), Cast(X, BIGINT))


def run(expression: Expression, *values: list[object], dtype: pa.DataType = INT) -> list[object]:
    columns = [pa.array(column, dtype) for column in values]
    result = evaluate(expression, columns, len(columns[0]) if columns else 1)
    assert result.type == expression.dtype
    return result.to_pylist()


def values(array: pa.Array) -> list[str]:
    """Values that compare: NaN too, and timestamps outside Python's years."""
    return [repr(each) for each in (array.view(pa.int64()) if pa.types.is_timestamp(array.type) else array).to_pylist()]


@pytest.mark.parametrize(("text", "expression"), ALL, ids=[text for text, _ in ALL])
def test_slices_and_constants_give_the_same(text: str, expression: Expression) -> None:
    whole = evaluate(expression, COLUMNS, ROWS)
    whole.validate(full=True)
    part = evaluate(expression, [column.slice(13, 50) for column in COLUMNS], 50)
    assert values(part) == values(whole.slice(13, 50))
    constants = tuple(Literal(column[17].as_py(), column.type) for column in COLUMNS)
    constant = evaluate(substitute(expression, constants), [], 3)
    assert (constant.type, values(constant)) == (expression.dtype, values(whole.slice(17, 1)) * 3)
    assert len(evaluate(expression, [column.slice(0, 0) for column in COLUMNS], 0)) == 0


@pytest.mark.parametrize(("text", "expression"), ALL, ids=[text for text, _ in ALL])
def test_untyped_nulls_are_nulls(text: str, expression: Expression) -> None:
    typed = evaluate(expression, [pa.nulls(2, column.type) for column in COLUMNS], 2)
    untyped = evaluate(substitute(expression, tuple(Literal(None, NULL) for _ in COLUMNS)), [], 2)
    assert values(typed) == values(untyped)


def test_case_fails_only_in_the_branch_taken() -> None:
    guarded = case(BIGINT, call("eq", BOOLEAN, X, ZERO), lit(-1, BIGINT), INVERSE)
    assert run(guarded, [0, 5, None]) == [-1, 2, None]
    with pytest.raises(EvaluationError, match="division by zero"):
        run(INVERSE, [0, 5, None])


def test_case_conditions_fail_only_on_rows_left() -> None:
    second = call("gt", BOOLEAN, INVERSE, lit(3, BIGINT))
    expression = case(STRING, call("eq", BOOLEAN, X, ZERO), lit("zero"), second, lit("big"))
    assert run(expression, [0, 2, 5, None]) == ["zero", "big", None, None]


def test_case_without_a_match_is_null() -> None:
    assert run(Case(((lit(False), X),), None, INT), [1, 2]) == [None, None]


def test_case_branches_of_other_types_take_the_type_of_the_case() -> None:
    expression = case(DOUBLE, call("gt", BOOLEAN, X, ZERO), X, lit(None, NULL))
    assert run(expression, [1, -1]) == [1.0, None]


def test_and_or_are_short() -> None:
    nonzero, zero = call("ne", BOOLEAN, X, ZERO), call("eq", BOOLEAN, X, ZERO)
    large = call("gt", BOOLEAN, INVERSE, lit(1, BIGINT))
    assert run(call("and", BOOLEAN, nonzero, large), [0, 5, 100, None]) == [False, True, False, None]
    assert run(call("or", BOOLEAN, zero, large), [0, 5, 100, None]) == [True, True, False, None]
    with pytest.raises(EvaluationError):
        run(call("and", BOOLEAN, large, nonzero), [0, 5])


def test_and_or_in_three_valued_logic() -> None:
    a, b = Column(0, "a", BOOLEAN), Column(1, "b", BOOLEAN)
    left, right = [True, True, True, False, False, None, None], [True, False, None, False, None, None, False]
    assert run(call("and", BOOLEAN, a, b), left, right, dtype=BOOLEAN) == [True, False, None, False, False, None, False]
    assert run(call("or", BOOLEAN, a, b), left, right, dtype=BOOLEAN) == [True, True, True, False, None, None, None]


def test_coalesce_evaluates_only_what_is_missing() -> None:
    y = Column(1, "y", BIGINT)
    expression = call("coalesce", BIGINT, y, INVERSE)
    columns = [pa.array([0, 5, 0], INT), pa.array([7, None, 9], BIGINT)]
    assert evaluate(expression, columns, 3).to_pylist() == [7, 2, 9]
    assert run(call("coalesce", INT, lit(1, INT), Call("divide", (lit(1.0), lit(0.0)), DOUBLE)), [1]) == [1]


def test_nothing_fails_on_no_rows() -> None:
    assert evaluate(call("divide", DOUBLE, 1.0, 0.0), [], 0).type == DOUBLE


def test_constants_fill_all_rows() -> None:
    assert evaluate(call("concat", STRING, "a", "b"), [], 3).to_pylist() == ["ab"] * 3
    assert evaluate(Call("concat", (), STRING), [], 2).to_pylist() == ["", ""]


def test_supports_names_what_it_does_not_have() -> None:
    assert supports(INVERSE) is None
    assert supports(SparkFunction("regexp_count({0}, 'a')", (X,), INT)) == "regexp_count({0}, 'a')"
    assert supports(call("not", BOOLEAN, call("no_such_thing", BOOLEAN, X))) == "no_such_thing"
    assert supports(call("add", INT, X)) == "add with 1 arguments"
    assert supports(Cast(X, DATE)) == "CAST(INT AS DATE)"
