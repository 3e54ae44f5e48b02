"""TUMBLE, HOP, CUMULATE and window(...): what they are bound to, and what is refused."""

from __future__ import annotations

import pytest

from sash.errors import SashError
from sash.plan.catalog import Catalog
from sash.plan.nodes import Aligned, AssignWindows, Lifetime, Node, Range, Stream, Unbounded, walk
from sash.plan.patterns import Pattern, pattern
from sash.plan.types import type_name
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.sql import parse
from sash.time import MINUTE


def catalog() -> Catalog:
    made = Catalog()
    made.add_stream("s", parse_schema("ts TIMESTAMP, at TIMESTAMP, d DATE, n BIGINT, k INT"), "ts")
    return made


def stream_of(plan: Node) -> Stream:
    return next(node for node in walk(plan) if isinstance(node, Stream))


def table(function: str) -> Node:
    return parse(f"SELECT * FROM TABLE({function})", catalog())


def test_tumbling_windows_are_computed_in_the_leg_and_expire_in_order() -> None:
    planned = plan_query(
        "SELECT window_end, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' MINUTES) GROUP BY window_end",
        catalog(),
    )
    assert stream_of(planned.optimized).window == Aligned(10 * MINUTE, step=10 * MINUTE)
    (stage,) = planned.physical.stages
    assert [leaf.leaf.expiry for leaf in stage.inputs] == ["fifo"]
    (leg,) = planned.physical.legs
    assert "window_end" in [field.name for field in leg.schema]


def test_hopping_windows_expire_one_by_one() -> None:
    plan = table("HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)")
    assert any(isinstance(node, AssignWindows) for node in walk(plan))
    assert any(isinstance(node, Lifetime) for node in walk(plan))
    assert stream_of(plan).window == Aligned(10 * MINUTE, step=5 * MINUTE)
    assert pattern(plan) == Pattern.WK


def test_a_declared_window_alone_decides() -> None:
    plan = table("HOP(TABLE s [RANGE 1 HOUR], DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)")
    assert not any(isinstance(node, Lifetime) for node in walk(plan))
    assert stream_of(plan).window == Range(60 * MINUTE)
    assert stream_of(
        parse("SELECT window.start FROM s GROUP BY window(ts, '1 minute') WINDOW 1 HOUR", catalog())
    ).window == (Range(60 * MINUTE))
    endless = parse("SELECT window.start FROM s [RANGE UNBOUNDED] GROUP BY window(ts, '1 minute')", catalog())
    assert stream_of(endless).window == Unbounded()


def test_another_column_than_the_streams_time_ends_rows_too() -> None:
    plan = table("TUMBLE(TABLE s, DESCRIPTOR(at), INTERVAL '5' MINUTES)")
    assert stream_of(plan).window == Unbounded()
    assert any(isinstance(node, Lifetime) for node in walk(plan))


def test_explain_shows_the_windows() -> None:
    text = plan_query(
        "SELECT k, window_end FROM HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES)", catalog()
    ).explain()
    assert "AssignWindows BY ts SIZE 10 MINUTES EVERY 5 MINUTES" in text
    assert "Lifetime UNTIL window_end" in text


def test_columns_are_added_after_those_of_the_table() -> None:
    plan = table("CUMULATE(DATA => TABLE s, TIMECOL => DESCRIPTOR(d), STEP => INTERVAL 1 DAY, SIZE => INTERVAL 1 WEEK)")
    assert [field.name for field in plan.schema][-4:] == ["k", "window_start", "window_end", "window_time"]
    assert str(plan.schema[-3].dtype) == "timestamp[us, tz=UTC]"


REFUSED = {
    "TUMBLE(TABLE s, DESCRIPTOR(n), INTERVAL '5' MINUTES)": "windows are of a TIMESTAMP, not of BIGINT",
    "TUMBLE(TABLE s, DESCRIPTOR(nope), INTERVAL '5' MINUTES)": "there is no column nope",
    "TUMBLE(TABLE s, DESCRIPTOR(ts))": r"write TUMBLE\(TABLE stream, DESCRIPTOR\(time\), size \[, offset\]\)",
    "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '5' MONTHS)": "weeks or shorter units",
    "TUMBLE(TABLE s, DESCRIPTOR(ts), k)": "the length of a window is a constant",
    "TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '0' MINUTES)": "greater than 0",
    "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '11' MINUTES, INTERVAL '10' MINUTES)": "at least as long as its slide",
    "HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '1' SECOND, INTERVAL '10' DAYS)": "10,000 windows, not in 864,000",
    "CUMULATE(TABLE s, DESCRIPTOR(ts), INTERVAL '3' MINUTES, INTERVAL '10' MINUTES)": "multiple of its step",
}


@pytest.mark.parametrize("function", REFUSED)
def test_refused_table_functions(function: str) -> None:
    with pytest.raises(SashError, match=REFUSED[function]):
        table(function)


REFUSED_CALLS = {
    "SELECT window(ts, '1 minute').start AS a, window(ts, '2 minutes').start AS b FROM s": r"one window\(...\)",
    "SELECT window(ts).start FROM s": r"write window\(time, size",
    "SELECT k FROM s GROUP BY window(ts, '1 fortnight'), k": "the length of a window is a constant",
    "SELECT k FROM s GROUP BY window(ts, '1'), k": "the length of a window is a constant",
}


@pytest.mark.parametrize("sql", REFUSED_CALLS)
def test_refused_calls(sql: str) -> None:
    with pytest.raises(SashError, match=REFUSED_CALLS[sql]):
        parse(sql, catalog())


def test_window_may_be_a_clause_a_function_and_a_column() -> None:
    plan = parse(
        "SELECT k, window.end FROM s GROUP BY k, window(ts, '90 seconds') ORDER BY window.end LIMIT 2 WINDOW 1 DAY",
        catalog(),
    )
    assert [field.name for field in plan.schema] == ["k", "end"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT window, COUNT(*) AS n FROM s GROUP BY window(ts, '1 minute')",
        "SELECT window(ts, '1 minute'), COUNT(*) AS n FROM s GROUP BY window ORDER BY window",
        "SELECT session_window, COUNT(*) AS n FROM s GROUP BY session_window(ts, '1 minute')",
        "SELECT session_window(ts, '1 minute'), COUNT(*) AS n FROM s GROUP BY session_window(ts, '1 minute')",
    ],
)
def test_a_window_is_a_struct(sql: str) -> None:
    window, _ = parse(sql, catalog()).schema
    assert window.name == ("session_window" if "session" in sql else "window")
    assert type_name(window.dtype) == "STRUCT<start: TIMESTAMP, end: TIMESTAMP>"


def test_an_alias_hides_the_window() -> None:
    plan = parse(
        "SELECT k AS window, COUNT(*) AS n FROM s GROUP BY window(ts, '1 minute'), k ORDER BY window LIMIT 1", catalog()
    )
    assert type_name(plan.schema[0].dtype) == "INT"
