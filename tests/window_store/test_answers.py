"""Every aggregate over every access path and window, against the standing query of the same text and against DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from sash.errors import OptionError, StoreError, TypeMismatchError, UnsupportedSqlError, WindowError
from sash.window_store.store.layout import LAYOUT_FILE, StoreLayout
from tests.window_store.feeding import Fed, counted, layout, table

AGGREGATES = (
    "COUNT(*) AS c0, COUNT(v) AS c1, COUNT(DISTINCT v) AS c2, SUM(v) AS c3, AVG(v) AS c4, SUM(x) AS c5, AVG(x) AS c6, "
    "SUM(DISTINCT v) AS c7, AVG(DISTINCT x) AS c8, MIN(x) AS c9, MAX(v) AS c10, MIN(k) AS c11, MEDIAN(v) AS c12, "
    "PERCENTILE(x, 0.3) AS c13, VAR_SAMP(x) AS c14, STDDEV_POP(v) AS c15, FIRST(v) AS c16, LAST(x) AS c17, "
    "MIN_BY(k, x) AS c18, MAX_BY(v, k) AS c19, SUM(CAST(v AS DECIMAL(9, 2))) AS c20, AVG(CAST(v AS DECIMAL(9, 2))) AS c21, "
    "COUNT_IF(v > 2) AS c22, SUM(v) FILTER (WHERE k = 'a') AS c23, FIRST(v) FILTER (WHERE x > 2) AS c24, "
    "LAST(v) FILTER (WHERE v IS NULL OR v < 3) AS c25"
)
QUERIES = [
    f"SELECT k, {AGGREGATES} FROM s [{{window}}] GROUP BY k",
    f"SELECT {AGGREGATES} FROM s [{{window}}] WHERE v > 1",
    "SELECT v % 2 AS odd, k, SUM(x * 2 + 1) AS t FROM s [{window}] WHERE k <> 'b' GROUP BY v % 2, k HAVING COUNT(*) > 1",
    "SELECT DISTINCT k, v FROM s [{window}]",
    "SELECT k, v, x FROM s [{window}] WHERE v IS NOT NULL",
    "SELECT k, x FROM s [{window}] ORDER BY x DESC, k LIMIT 3 OFFSET 1",
    "SELECT k, SUM(v) AS t FROM s [{window}] GROUP BY k ORDER BY t DESC LIMIT 2",
    "SELECT MAX(n) AS most, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM s [{window}] GROUP BY k) AS g",
    "SELECT COUNT(*) AS n FROM (SELECT DISTINCT v FROM s [{window}]) AS d",
]
WINDOWS = ["RANGE 30 MICROSECONDS", "RANGE 27 MICROSECONDS", "RANGE 4 MICROSECONDS", "RANGE 20 MICROSECONDS SLIDE 7 MICROSECONDS",
           "NOW", "ROWS 17"]  # fmt: skip


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fed]:
    found = Fed(tmp_path_factory.mktemp("store"), layout(10, 5))
    found.feed(43)
    found.feed(58, 15)
    found.feed(112, 60)
    yield found
    found.close()


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("query", range(len(QUERIES)))
def test_differential_a_snapshot_is_the_standing_query_at_that_instant(fed: Fed, query: int, window: str) -> None:
    sql = QUERIES[query].format(window=window)
    paths = ["WS"] if query == 4 else ["WS", "SS", "SS"]
    answers = [fed.snapshot(sql, access=path)[0] for path in paths]
    assert answers[0].as_of == 110
    for answer in answers:
        assert counted(answer.to_pylist()) == fed.truth(sql, 110)


@pytest.mark.parametrize("low", [60, 80, 83, 107])
def test_oracle_a_range_against_duckdb(fed: Fed, low: int) -> None:
    columns = (
        "k, COUNT(*) AS n, COUNT(DISTINCT v) AS d, SUM(v)::BIGINT AS t, MIN(x) AS low, MAX(v) AS high, MEDIAN(v) AS m, "
        "QUANTILE_CONT(x, 0.9) AS p, AVG(v) AS a"
    )
    rows = table(fed.rows)
    expected = duckdb.sql(f"SELECT {columns} FROM rows WHERE ts >= {low} AND ts < 110 GROUP BY k").to_arrow_table()
    selected = columns.replace("QUANTILE_CONT", "PERCENTILE").replace("::BIGINT", "")
    (answer,) = fed.snapshot(f"SELECT {selected} FROM s [RANGE {110 - low} MICROSECONDS] GROUP BY k")
    assert rows.num_rows == 95
    by_key = {row["k"]: row for row in expected.to_pylist()}
    assert len(by_key) == answer.table.num_rows
    for row in answer.to_pylist():
        expected_row = by_key[row.pop("k")]
        for name, value in row.items():
            assert value == expected_row[name] or value == pytest.approx(expected_row[name], rel=1e-12), name


def test_no_window_is_the_whole_kept_window(fed: Fed) -> None:
    (answer,) = fed.snapshot("SELECT COUNT(*) AS n FROM s")
    assert answer.to_pylist() == [{"n": sum(60 <= row["ts"] < 110 for row in fed.rows)}]


def test_a_range_that_is_no_multiple_reads_one_more_sub_window(fed: Fed) -> None:
    reads = [
        fed.snapshot(f"SELECT COUNT(*) AS n FROM s [RANGE {length} MICROSECONDS]", access="WS")[0].sub_windows_read
        for length in (10, 11, 20, 29, 50)
    ]
    assert reads == [1, 2, 2, 3, 5]


def test_queries_that_differ_in_length_are_one_pass(fed: Fed) -> None:
    sql = "SELECT k, SUM(x) AS t, MAX(v) AS m FROM s [RANGE {} MICROSECONDS] GROUP BY k"
    lengths = [30, 50, 10, 33]
    together = fed.snapshot([sql.format(length) for length in lengths], access="WS")
    assert {answer.sub_windows_read for answer in together} == {5}
    for answer, length in zip(together, lengths, strict=True):
        assert counted(answer.to_pylist()) == fed.truth(sql.format(length), answer.as_of)
    with pytest.raises(UnsupportedSqlError, match="differ in their windows only"):
        fed.snapshot([sql.format(10), "SELECT COUNT(*) AS n FROM s [RANGE 10 MICROSECONDS]"])


def test_summaries_are_found_by_queries_that_are_written_otherwise(fed: Fed) -> None:
    first = "SELECT k, SUM(x + 3) AS t FROM s [RANGE 50 MICROSECONDS] WHERE v > 3 GROUP BY k"
    other = "SELECT q.g, SUM(q.y) FROM (SELECT k AS g, x + 3 AS y, v FROM s [RANGE 40 MICROSECONDS]) AS q WHERE q.v > 3 GROUP BY q.g"
    (made,) = fed.snapshot(first, access="SS")
    assert (made.sub_windows_read, made.summaries_read, made.summaries_built) == (5, 0, 10)
    (found,) = fed.snapshot(other)
    assert (found.sub_windows_read, found.summaries_read, found.summaries_built) == (0, 8, 0)
    assert "access path SS: most summaries of its sub-windows are stored" in found.explain()


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("SELECT COUNT(*) AS n FROM s [RANGE 51 MICROSECONDS]", StoreError, "keep a longer window"),
        ("SELECT COUNT(*) AS n FROM s [ROWS 1000]", StoreError, "rows too few"),
        ("SELECT COUNT(*) AS n FROM s [PARTITION BY k ROWS 3]", WindowError, "per partition"),
        ("SELECT s.k FROM s [NOW] JOIN s AS o [NOW] ON s.k = o.k", UnsupportedSqlError, "one window"),
        ("SELECT k, ROW_NUMBER() OVER (ORDER BY ts) AS n FROM s", UnsupportedSqlError, r"window functions \(OVER\)"),
        ("SELECT explode(array(v, x)) AS n FROM s", UnsupportedSqlError, r"several rows of one \(explode"),
        ("SELECT k, COUNT(*) AS n FROM s GROUP BY ROLLUP (k)", UnsupportedSqlError, "GROUPING SETS, ROLLUP"),
        ("SELECT parse_json(k) AS j FROM s", UnsupportedSqlError, "does not return VARIANT"),
        ("SELECT make_dt_interval(v) AS i FROM s", UnsupportedSqlError, "does not return INTERVAL DAY TO SECOND"),
        ("SELECT approx_top_k(array(k), 2) AS t FROM s", TypeMismatchError, "does not take ARRAY<STRING>"),
        ("SELECT FIRST(n) AS f FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS g", UnsupportedSqlError, "MIN_BY"),
    ],
)
def test_unsupported_queries_and_options_raise_errors(fed: Fed, sql: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fed.snapshot(sql)
    with pytest.raises(StoreError, match="IS does not apply: a snapshot is executed once"):
        fed.snapshot("SELECT COUNT(*) AS n FROM s", access="IS")
    with pytest.raises(OptionError, match="no access path 'index'; use one of auto, WS, SS, IS, ISS"):
        fed.snapshot("SELECT COUNT(*) AS n FROM s", access="index")


def test_a_window_by_rows(tmp_path: Path) -> None:
    fed = Fed(tmp_path, layout(10, 5, kind="rows"))
    fed.feed(43, 78)
    ordered = sorted(table(fed.rows).to_pylist(), key=lambda row: row["ts"])
    youngest = fed.writer.manifest.live[-1]
    for count in (10, 17, 50):
        (answer,) = fed.snapshot(f"SELECT COUNT(*) AS n, MIN(ts) AS t, MAX(ts) AS u FROM s [ROWS {count}]", access="WS")
        assert answer.to_pylist() == [{"n": count, "t": ordered[70 - count]["ts"], "u": youngest.end - 1}]
        assert answer.sub_windows_read == -(-count // 10)
    with pytest.raises(WindowError, match="kept by rows"):
        fed.snapshot("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND]")
    fed.close()


def test_a_window_without_a_complete_sub_window_raises_an_error(tmp_path: Path) -> None:
    fed = Fed(tmp_path)
    fed.feed(7)
    with pytest.raises(StoreError, match="no complete sub-window yet"):
        fed.snapshot("SELECT COUNT(*) AS n FROM s")
    fed.close()


def test_a_star_over_a_kept_window_names_the_columns_that_it_cannot_hold(tmp_path: Path) -> None:
    kept = Fed(tmp_path, replace(layout(10, 5), not_carried=(("tags", "ARRAY<STRING>"),)))
    kept.feed(43)
    for sql in ("SELECT * FROM s [RANGE 10 MICROSECONDS]", "SELECT t.* FROM s [RANGE 10 MICROSECONDS] AS t"):
        with pytest.raises(UnsupportedSqlError, match="the column tags ARRAY<STRING> is not carried; name the columns"):
            kept.snapshot(sql)
    assert counted(kept.snapshot("SELECT k FROM s [RANGE 10 MICROSECONDS]")[0].to_pylist())
    kept.close()
    assert StoreLayout.load(tmp_path).not_carried == (("tags", "ARRAY<STRING>"),)


def test_a_store_that_does_not_name_the_columns_it_leaves_out_goes_on_and_names_them(tmp_path: Path) -> None:
    Fed(tmp_path, layout(10, 5)).close()
    assert "not_carried" not in (tmp_path / LAYOUT_FILE).read_text()
    Fed(tmp_path, replace(layout(10, 5), not_carried=(("tags", "ARRAY<STRING>"),))).close()
    assert StoreLayout.load(tmp_path).not_carried == (("tags", "ARRAY<STRING>"),)
