"""Tables of pandas, Polars and Arrow as inputs of a replay, and results as tables."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sash.errors import BadRowError, SashError
from sash.testing import Result, replay

NOON = datetime.datetime(2026, 3, 1, 12, tzinfo=datetime.UTC)
MINUTE = datetime.timedelta(minutes=1)
ALL = "SELECT * FROM s [RANGE 1 HOUR]"


class Foreign:
    """A table of another library, of which only Arrow's interface is known; Polars has the same."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


COLUMNS: dict[str, tuple[pa.Array, list[Any]]] = {
    "words": (pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    "view_words": (
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view())),
        ["b", None, "a"],
    ),
    "long_words": (pa.array(["a", None, "c"], pa.large_string()), ["a", None, "c"]),
    "views": (pa.array(["a", None, "c"], pa.string_view()), ["a", None, "c"]),
    "small": (pa.array([1, None, 255], pa.uint8()), [1, None, 255]),
    "large": (pa.array([1, None, 2**63 - 1], pa.uint64()), [1, None, 2**63 - 1]),
    "half": (pa.array([0.5, None, 2.0], pa.float16()), [0.5, None, 2.0]),
    "exact": (
        pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("-2.25")], pa.decimal256(10, 2)),
        [decimal.Decimal("1.10"), None, decimal.Decimal("-2.25")],
    ),
    "day": (pa.array([datetime.date(2026, 3, 1), None, None], pa.date64()), [datetime.date(2026, 3, 1), None, None]),
    "raw": (pa.array([b"\x00", None, b"c"], pa.large_binary()), [b"\x00", None, b"c"]),
    "flag": (pa.array([True, None, False]), [True, None, False]),
    "moment": (pa.array([NOON, None, NOON], pa.timestamp("ns", "America/Lima")), [NOON, None, NOON]),
    "nothing": (pa.nulls(3), [None, None, None]),
}


def answer(result: Result, column: str) -> list[Any]:
    """The values of a column in order of arrival."""
    return [change.row[column] for change in result.changes if change.op == "+"]


@pytest.mark.parametrize("name", COLUMNS)
def test_arrow_columns_of_every_type(name: str) -> None:
    column, values = COLUMNS[name]
    chunks = pa.table({"ts": pa.chunked_array([[1], [2, 3]]), name: pa.chunked_array([column[:2], column[2:]])})
    for table in (chunks, Foreign(chunks), chunks.combine_chunks().to_batches()[0]):
        result = replay(ALL, {"s": table})
        assert answer(result, name) == values
        assert answer(result, "ts") == [1, 2, 3]


def test_pandas_columns_with_missing_values() -> None:
    frame = pd.DataFrame(
        {
            "ts": pd.to_datetime([NOON, NOON + MINUTE, NOON + 2 * MINUTE]),
            "real": [1.5, np.nan, 2.5],
            "whole": pd.array([1, None, 3], "Int32"),
            "flag": pd.array([True, None, False], "boolean"),
            "word": pd.Categorical(["a", None, "b"]),
            "text": pd.array(["x", None, "z"], "string"),
            "mixed": ["p", None, np.nan],
            "moment": pd.to_datetime(["2026-01-01 00:00", None, "2026-01-02 12:30"]),
            "exact": [decimal.Decimal("1.5"), None, decimal.Decimal("22.25")],
            "day": [datetime.date(2026, 1, 1), None, pd.NaT],
        }
    )
    result = replay(ALL, {"s": frame})
    assert [{**row} for row in (change.row for change in result.changes if change.op == "+")] == [
        {
            "ts": NOON, "real": 1.5, "whole": 1, "flag": True, "word": "a", "text": "x", "mixed": "p",
            "moment": datetime.datetime(2026, 1, 1), "exact": decimal.Decimal("1.50"), "day": datetime.date(2026, 1, 1),
        },
        {"ts": NOON + MINUTE, **dict.fromkeys(frame.columns[1:])},
        {
            "ts": NOON + 2 * MINUTE, "real": 2.5, "whole": 3, "flag": False, "word": "b", "text": "z", "mixed": None,
            "moment": datetime.datetime(2026, 1, 2, 12, 30), "exact": decimal.Decimal("22.25"), "day": None,
        },
    ]  # fmt: skip


def test_a_named_index_of_pandas_is_a_column() -> None:
    times = pd.DatetimeIndex([NOON, NOON + MINUTE], name="ts")
    frame = pd.DataFrame({"k": [1, 2]}, index=times)
    assert answer(replay(ALL, {"s": frame}), "k") == [1, 2]
    assert list(frame.columns) == ["k"]


def test_a_table_equals_its_rows() -> None:
    rows = [{"ts": 200, "k": "a", "v": 1}, {"ts": 800, "k": "b", "v": 2}, {"ts": 900, "k": "a", "v": None}]
    sql = "SELECT k, COUNT(v) AS n, SUM(v) AS total FROM s [RANGE 5 SECONDS] GROUP BY k"
    assert replay(sql, {"s": pa.Table.from_pylist(rows)}).changes == replay(sql, {"s": rows}).changes


def test_tables_with_schemas_are_cast() -> None:
    frame = pd.DataFrame({"ts": [60, 120], "k": [1.0, np.nan], "due": [3_600, 7_200]})
    sql = "SELECT ts, k, due FROM s [RANGE 1 HOUR]"
    result = replay(sql, {"s": frame}, unit="s", schemas={"s": "ts TIMESTAMP, k INT, due TIMESTAMP_NTZ"})
    epoch = datetime.datetime(1970, 1, 1)
    assert answer(result, "k") == [1, None]
    assert answer(result, "ts") == [(epoch + at * MINUTE).replace(tzinfo=datetime.UTC) for at in (1, 2)]
    assert answer(result, "due") == [epoch + at * MINUTE for at in (60, 120)]


def test_relations_may_be_tables_static_or_of_updates() -> None:
    sql = "SELECT s.k, t.v FROM s [RANGE 1 SECOND] JOIN t ON s.k = t.k"
    stream = {"s": [{"ts": 10, "k": 1}]}
    static = pd.DataFrame({"k": [1, 2], "v": ["one", "two"]})
    assert answer(replay(sql, stream, {"t": static}, keys={"t": ["k"]}), "v") == ["one"]
    updates = pd.DataFrame({"ts": [0, 20], "_op": ["+", "+"], "k": [1, 1], "v": ["one", "eins"]})
    changes = replay(sql, stream, {"t": updates}, keys={"t": "k"}).changes
    assert [(change.ts, change.op, change.row["v"]) for change in changes[:3]] == [
        (10, "+", "one"), (20, "-", "one"), (20, "+", "eins"),
    ]  # fmt: skip


BAD: list[tuple[Any, type[SashError], str]] = [
    (pd.DataFrame({"ts": [1], "k": [object()]}), BadRowError, "not a table that Arrow can read"),
    (pd.DataFrame([[1, 2]], columns=["ts", "ts"]), BadRowError, "s"),
    (pa.table({"ts": [1], "k": [1], "K": [2]}), BadRowError, "'k' and 'K', which SQL cannot tell apart"),
    (pa.table({"ts": [1, None]}), BadRowError, "row 1 of stream s has no ts"),
    (pd.DataFrame({"ts": pd.to_datetime([NOON, None])}), BadRowError, "row 1 of stream s has no ts"),
    (pd.DataFrame({"ts": [1.0, np.nan]}), BadRowError, "row 1 of stream s has no ts"),
    (pa.table({"k": [1]}), BadRowError, "row 0 of stream s has no ts"),
    (pa.table({"ts": pa.array([1], pa.timestamp("ns"))}), BadRowError, "nanoseconds"),
    (pa.table({"ts": [1], "k": pa.array([2**64 - 1], pa.uint64())}), BadRowError, "s.k is BIGINT"),
    ({"ts": [1]}, BadRowError, "stream s must be a list of dicts, or a table"),
    ("ts", BadRowError, "stream s must be a list of dicts"),
    (7, BadRowError, "stream s must be a list of dicts"),
    ([(1, 2)], BadRowError, r"row 0 of stream s must be a dict by column name, not \(1, 2\)"),
    ([{1: 2}], BadRowError, "row 0 of stream s must be a dict"),
]


@pytest.mark.parametrize(("given", "error", "message"), BAD, ids=range(len(BAD)))
def test_inputs_that_are_no_tables(given: Any, error: type[SashError], message: str) -> None:
    with pytest.raises(error, match=message):
        replay("SELECT COUNT(*) AS n FROM s [RANGE 1 HOUR]", {"s": given})


NESTED = pa.table(
    {
        "ts": [1, 2],
        "k": [1, 2],
        "tags": [["a"], None],
        "info": [{"city": "Graz", "zip": 8_010}, None],
        "scores": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
    }
)


@pytest.mark.parametrize(
    "given", [NESTED, NESTED.select(["ts", "k", "tags", "info"]).to_pylist()], ids=["table", "rows"]
)
def test_nested_columns_are_carried(given: Any) -> None:
    streams = {"s": given, "r": [{"ts": 1, "k": 1}]}
    result = replay("SELECT * FROM s [RANGE 1 HOUR]", streams)
    expected = [{"ts": 1, "k": 1, "tags": ["a"], "info": {"city": "Graz", "zip": 8_010}}, {"ts": 2, "k": 2}]
    for row, wanted in zip(result.at(2), expected, strict=True):
        assert {name: row[name] for name in wanted} == wanted
    assert result.at(2)[1]["tags"] is result.at(2)[1]["info"] is None
    assert answer(replay("SELECT info.city AS c FROM s [RANGE 1 HOUR]", streams), "c") == ["Graz", None]
    assert answer(replay("SELECT a FROM (SELECT ts, k, tags, info FROM s [NOW]) AS t(a, b, c, d)", streams), "a") == [
        1,
        2,
    ]
    assert answer(replay("SELECT k FROM s [NOW] NATURAL JOIN r [NOW]", streams), "k") == [1]


def test_the_result_as_tables() -> None:
    rows = [{"ts": 200, "k": "a", "v": 1.5}, {"ts": 800, "k": None, "v": None}]
    result = replay("SELECT k, v FROM s [RANGE 5 SECONDS]", {"s": rows})
    frame = result.to_pandas()
    assert frame[["_ts", "_op", "k"]].to_numpy().tolist() == [
        [200, "+", "a"], [800, "+", None], [5_200, "-", "a"], [5_800, "-", None],
    ]  # fmt: skip
    assert result.to_arrow(at=5_200).to_pylist() == [{"k": None, "v": None}]
    assert result.to_pandas(at=200).to_dict("records") == [{"k": "a", "v": 1.5}]
    empty = replay("SELECT k, v FROM s [RANGE 5 SECONDS]", {"s": rows}, until=0).to_pandas()
    assert list(empty.columns) == ["_ts", "_op", "k", "v"]
    assert len(empty) == 0


def test_the_times_of_a_result_are_datetimes_if_those_of_the_rows_were() -> None:
    result = replay("SELECT k FROM s [RANGE 1 HOUR]", {"s": [{"ts": NOON, "k": 1}]})
    assert result.to_pandas()["_ts"].tolist() == [NOON, NOON + 60 * MINUTE]
    assert "2026-03-01 13:00:00+00:00  -" in str(result)


def test_a_result_prints_as_a_small_table() -> None:
    rows = [{"ts": ts, "k": f"<{ts}>\n", "v": None} for ts in range(100)]
    result = replay("SELECT k, v FROM s [RANGE 5 SECONDS]", {"s": rows}, until=1_000)
    lines = str(result).splitlines()
    assert lines[:3] == ["100 changes from 0 ms to 99 ms", "_ts  _op  k      v", "  0  +    <0>␚   NULL"]
    assert (len(lines), lines[8], lines[-1]) == (15, "... 88 more ...", " 99  +    <99>␚  NULL")
    shown = result._repr_html_()
    assert "<td>&lt;99&gt;␚</td><td><i>NULL</i></td>" in shown
    assert "<99>" not in shown
    assert repr(replay("SELECT k FROM s [RANGE 5 SECONDS]", {"s": rows}, until=-1)) == "no changes"
