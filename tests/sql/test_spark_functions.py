from __future__ import annotations

import pyarrow as pa
import pytest

from sash.errors import SqlSyntaxError, UnknownNameError, UnsupportedSqlError
from sash.plan.expressions import Column, SparkFunction
from sash.plan.nodes import Filter, Node, Project
from sash.plan.types import INT, STRING
from sash.sql import parse
from sash.sql.render import to_spark_sql
from tests.sql.plans import catalog


class Typer:
    """Spark's part: knows xpath_string and xpath, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def __call__(self, source: str, sql: str) -> pa.DataType | str | None:
        self.asked.append((source, sql))
        known = {"xpath_string": STRING, "size": INT, "xpath": pa.list_(STRING), "xpath_number": pa.float64()}
        known |= {"transform": pa.list_(STRING)}
        known |= {"stamp": "timestamp_other"}
        return known.get(sql.partition("(")[0].lower())


def bind(text: str) -> tuple[Node, Typer]:
    typer = Typer()
    names = catalog()
    names.spark_type = typer
    return parse(text, names), typer


def test_an_unknown_function_over_a_stream_is_left_to_spark() -> None:
    plan, typer = bind("SELECT xpath_string(name) AS x FROM sales WHERE xpath_string(name) = 'A1'")
    native = SparkFunction("xpath_string({0})", (Column(4, "name", STRING),), STRING)
    assert isinstance(plan, Project)
    assert plan.expressions == (native,)
    assert isinstance(plan.child, Filter)
    assert typer.asked == [("sales", "xpath_string(`name`)")] * 2


def test_a_call_whose_lambda_needs_spark_is_left_to_spark_as_a_whole() -> None:
    text = "SELECT transform(array(name), x -> transform(array(x), y -> xpath_string(y, item))[0]) AS x FROM"
    plan, typer = bind(f"{text} sales [NOW]")
    assert isinstance(plan, Project)
    assert isinstance(plan.expressions[0], SparkFunction)
    asked = "transform(array(`name`), x -> transform(array(x), y -> xpath_string(y, `item`))[0])"
    assert typer.asked == [("sales", asked)]
    with pytest.raises(UnsupportedSqlError, match="transform is not in Sash's library"):
        bind(f"{text} (SELECT DISTINCT name, item FROM sales [NOW])")


def test_a_call_is_left_to_spark_and_may_stand_in_an_expression() -> None:
    plan, typer = bind("SELECT upper(xpath(name, '{,}')[size(xpath(name, 'b')) - 1]) AS x FROM sales [NOW]")
    assert isinstance(plan, Project)
    text = to_spark_sql(plan.expressions[0], [f"c{i}" for i in range(6)])
    assert text == "upper(xpath(c4, '{,}')[(size(xpath(c4, 'b')) - 1)])"
    assert sorted(typer.asked) == [("sales", "xpath(`name`, 'b')"), ("sales", "xpath(`name`, '{,}')")]


def test_the_type_is_asked_over_the_columns_of_the_source() -> None:
    plan, typer = bind("SELECT xpath_string(n) AS x FROM (SELECT item, upper(name) AS n FROM sales WHERE qty > 1) s")
    assert isinstance(plan, Project)
    assert plan.expressions == (SparkFunction("xpath_string({0})", (Column(1, "n", STRING),), STRING),)
    assert typer.asked == [("sales", "xpath_string(upper(`name`))")]


def test_group_by_and_aggregates_over_a_native_function() -> None:
    plan, _ = bind(
        "SELECT xpath_string(name) AS x, max(xpath_number(qty, item)) AS m FROM sales GROUP BY xpath_string(name)"
    )
    assert [str(field) for field in plan.schema] == ["x STRING", "m DOUBLE"]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELECT sndex(name) FROM sales", UnknownNameError, "no function sndex"),
        ("SELECT stamp(name) FROM sales", UnsupportedSqlError, "not a supported column type"),
        ("SELECT xpath_string(max(name)) FROM sales", UnsupportedSqlError, "move it into a subquery"),
        (
            "SELECT xpath_string(m) FROM (SELECT max(name) AS m FROM sales) x",
            UnsupportedSqlError,
            "move it into a subquery",
        ),
        (
            "SELECT xpath_string(name) FROM (SELECT DISTINCT name FROM sales) x",
            UnsupportedSqlError,
            "move it into a subquery",
        ),
        (
            "SELECT xpath_string(s.name) FROM sales s JOIN items i ON TRUE",
            UnsupportedSqlError,
            "move it into a subquery",
        ),
        (
            "SELECT qty FROM sales s JOIN items i ON xpath_string(label) = name",
            UnsupportedSqlError,
            "move it into a subquery",
        ),
        (
            "SELECT xpath_string(name) FROM sales [ROWS 5]",
            UnsupportedSqlError,
            "DataFrame that sales is registered with",
        ),
        ("SELECT uuid() AS u FROM sales", UnsupportedSqlError, "is not deterministic"),
    ],
)
def test_where_spark_cannot_run_it(query: str, error: type[SqlSyntaxError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        bind(query)
    assert type(caught.value) is error
    assert caught.value.line == 1
