"""Lambdas in queries: names, clauses, plans, and what is refused; values are pinned in `spark_expressions/lambdas.txt`."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest

from sash.errors import SashError, TypeMismatchError, UnknownNameError, UnsupportedSqlError
from sash.operators.scalar import evaluate
from sash.plan.canonical import canonical
from sash.plan.describe import describe
from sash.plan.expressions import Call, Column, Lambda, Literal, Variable, substitute
from sash.plan.nodes import Project
from sash.plan.templates import shape_of
from sash.plan.types import BIGINT, INT
from sash.sql import parse
from sash.sql.render import to_spark_sql
from sash.testing import replay
from tests.sql.plans import catalog


def bound(sql: str) -> Project:
    plan = parse(f"SELECT {sql} AS e FROM sales [NOW]", catalog())
    assert isinstance(plan, Project)
    return plan


def test_text_and_rendering() -> None:
    (made,) = bound("transform(array(qty, 1), (x, i) -> x + i)").expressions
    assert describe(made) == "transform(array(qty, 1), (x, i) -> x + cast(i AS BIGINT))"
    text = to_spark_sql(made, [f"c{i}" for i in range(6)])
    assert "(`variable 0 of a lambda`, `variable 1 of a lambda`) -> " in text
    (made,) = bound("exists(array(qty), x -> x = 1)").expressions
    assert to_spark_sql(made, [f"c{i}" for i in range(6)]) == (
        "exists(array(c3), `variable 0 of a lambda` -> (`variable 0 of a lambda` = CAST('1' AS BIGINT)))"
    )


def test_names_of_variables_do_not_matter() -> None:
    one, other = bound("transform(array(qty), x -> x = 1)"), bound("transform(array(qty), y -> 1 = y)")
    assert canonical(one) == canonical(other)
    assert canonical(one) != canonical(bound("transform(array(qty), y -> 2 = y)"))


def test_a_lambda_is_no_constant_of_a_template() -> None:
    shapes = [shape_of(bound(f"transform(array(qty), x -> {number})")) for number in (1, 2)]
    assert shapes[0].plan == shapes[1].plan
    assert [shape.constants[0].value for shape in shapes] == [1, 2]


def test_a_plan_with_a_lambda_survives_pickling() -> None:
    plan = bound("aggregate(array(qty), 0L, (a, x) -> a + x, a -> a * 2)")
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_a_lambda_moved_into_another_keeps_its_own_variables() -> None:
    """Substitution puts a closed lambda within another that numbers its variables alike."""
    array = pa.list_(BIGINT)
    x = Variable(0, "x", BIGINT)
    doubled = Call(
        "transform", (Column(0, "a", array), Lambda((x,), Call("multiply", (x, Literal(2, BIGINT)), BIGINT))), array
    )
    size = Call("size", (Column(0, "b", array),), INT)
    outer = Call("transform", (Column(1, "c", array), Lambda((x,), size)), pa.list_(INT))
    made = substitute(outer, (doubled, Column(0, "a", array)))
    column = pa.array([[1, 2, 3], [], None, [5]], array)
    assert evaluate(made, [column], 4).to_pylist() == [[3, 3, 3], [], None, [1]]


def test_repeated_columns_of_as_many_elements_as_rows() -> None:
    """Three elements of one row, among three rows: the columns are those of the first row."""
    array = pa.list_(BIGINT)
    x = Variable(0, "x", BIGINT)
    body = Call("add", (x, Column(1, "b", BIGINT)), BIGINT)
    made = Call("transform", (Column(0, "a", array), Lambda((x,), body)), array)
    columns = [pa.array([[1, 2, 3], [], None], array), pa.array([10, 20, 30])]
    assert evaluate(made, columns, 3).to_pylist() == [[11, 12, 13], [], None]


@pytest.mark.parametrize(
    ("sql", "error", "message"),
    [
        ("transform(array(1), (x, y, z) -> x)", TypeMismatchError, "1 or 2 variables, not 3"),
        ("transform(array(1), (x, X) -> x)", TypeMismatchError, "different names"),
        ("transform(1, x -> x)", TypeMismatchError, "transform takes an ARRAY, not INT"),
        ("filter(array(1), x -> x + 1)", TypeMismatchError, "returns a BOOLEAN, not INT"),
        ("aggregate(array(1), 0, (a, x) -> 'b')", TypeMismatchError, "cast one of them"),
        ("aggregate(array(1), 0)", UnknownNameError, "aggregate takes 3 or 4 arguments"),
        ("zip_with(array(1), x -> x)", TypeMismatchError, "takes 3 arguments"),
        ("array_sort(array(1), (p, q) -> p < q)", TypeMismatchError, "returns an INT"),
        ("transform(array(1), x -> nothing)", UnknownNameError, "nothing"),
        ("transform(array(1), x -> (SELECT max(qty) FROM sales [NOW]))", UnsupportedSqlError, "a subquery in a lambda"),
        ("transform(array(1), x -> rank() OVER (ORDER BY qty))", UnsupportedSqlError, "window function in a lambda"),
        ("x -> x", UnknownNameError, "no column x"),
        ("upper(x -> x)", SashError, "upper"),
    ],
)
def test_refusals(sql: str, error: type[SashError], message: str) -> None:
    with pytest.raises(error, match=message):
        bound(sql)


def test_an_aggregate_does_not_see_the_variables() -> None:
    with pytest.raises(SashError, match="x"):
        parse("SELECT transform(array(1), x -> sum(x)) AS e FROM sales [NOW]", catalog())


def test_rows_come_and_go() -> None:
    rows = [{"ts": 1, "k": 1, "v": 5}, {"ts": 2, "k": 1, "v": 3}, {"ts": 4, "k": 2, "v": 8}]
    query = (
        "SELECT k, transform(collect_list(v), (x, i) -> x * 10 + i + k) AS a, exists(collect_list(v), x -> x BETWEEN 4 AND 7) AS e "
        "FROM s [RANGE 4 SECONDS] GROUP BY k"
    )
    result = replay(query, {"s": rows}, unit="s", until=10)
    assert result.at(2) == [{"k": 1, "a": [51, 32], "e": True}]
    assert result.at(4) == [{"k": 1, "a": [51, 32], "e": True}, {"k": 2, "a": [82], "e": False}]
    assert result.at(8) == []
