"""GROUP BY with every aggregate, HAVING, global aggregates, DISTINCT and top-k."""

from __future__ import annotations

import datetime
from decimal import Decimal

from tests.oracle.case import SCHEMA, case, table
from tests.oracle.duck import View

TYPED = table(
    "ts k i f t b d m",
    (1, 1, 5, 1.5, "pear", True, datetime.date(2024, 2, 29), Decimal("1.10")),
    (1, 2, -5, 0.25, "fig", False, datetime.date(1969, 12, 31), Decimal("-2.25")),
    (2, 1, 7, -1.5, "", True, datetime.date(2023, 1, 1), Decimal("10.00")),
    (3, 1, None, None, None, None, None, None),
    (4, 2, 5, 0.25, "fig", True, datetime.date(1970, 1, 1), Decimal("-2.25")),
    (6, 1, 1, 2.0, "apple", False, datetime.date(2025, 1, 1), Decimal("0.01")),
    (14, 3, None, None, None, None, None, None),
)

ORDERED = table(
    "ts k v w",
    (1, 1, 3, 30),
    (2, 1, 1, 10),
    (2, 1, 2, 20),
    (3, 2, None, 5),
    (4, 1, 1, 15),
    (5, 2, 6, None),
    (6, 2, 2, 6),
    (6, 1, 3, 40),
    (12, 1, None, None),
    (13, 1, 7, None),
)
"""Ties in ts only between rows that every column puts in the same order."""

UNTIED = table(
    "ts k v w",
    (1, 1, 3, 30),
    (2, 1, 1, 10),
    (2, 1, 2, 20),
    (3, 2, None, 5),
    (4, 1, 5, None),
    (5, 2, 6, None),
    (6, 2, 2, 6),
    (6, 1, 0, 40),
    (12, 1, None, 9),
    (13, 1, 7, 7),
)
"""No two values of v alike."""


CASES = (
    *(
        case(f"{name}_by_group", f"SELECT k, {call} AS a FROM {{s}} GROUP BY k", {"s": 5})
        for name, call in (
            ("sum_int", "SUM(v)"),
            ("sum_double", "SUM(x)"),
            ("count_star", "COUNT(*)"),
            ("count_column", "COUNT(v)"),
            ("avg_int", "AVG(v)"),
            ("avg_double", "AVG(x)"),
            ("min_int", "MIN(v)"),
            ("max_double", "MAX(x)"),
            ("min_string", "MIN(g)"),
            ("max_string", "MAX(g)"),
            ("count_distinct", "COUNT(DISTINCT v)"),
            ("sum_distinct", "SUM(DISTINCT v)"),
            ("median_int", "MEDIAN(v)"),
            ("median_double", "MEDIAN(x)"),
            ("var_pop", "VAR_POP(x)"),
            ("var_samp", "VAR_SAMP(v)"),
            ("stddev_pop", "STDDEV_POP(v)"),
            ("stddev_samp", "STDDEV_SAMP(x)"),
        )
    ),
    case(
        "percentile_by_group",
        "",
        {"s": 5},
        sash="SELECT k, PERCENTILE(v, 0.25) AS a, PERCENTILE(x, 0.9) AS b FROM {s} GROUP BY k",
        duck="SELECT k, quantile_cont(v, 0.25) AS a, quantile_cont(x, 0.9) AS b FROM {s} GROUP BY k",
    ),
    case(
        "min_by_max_by",
        "",
        {"s": 4},
        sash="SELECT k, MIN_BY(w, v) AS a, MAX_BY(w, v) AS b FROM {s} GROUP BY k",
        duck="SELECT k, first(w ORDER BY v) FILTER (WHERE v IS NOT NULL) AS a, "
        "first(w ORDER BY v DESC) FILTER (WHERE v IS NOT NULL) AS b FROM {s} GROUP BY k",
        streams={"s": UNTIED},
    ),
    case(
        "min_by_ties",
        "",
        {"s": 4},
        sash="SELECT k, MIN_BY(w, v) AS a FROM {s} GROUP BY k",
        duck="SELECT k, first(w ORDER BY v, ts, w) FILTER (WHERE v IS NOT NULL) AS a FROM {s} GROUP BY k",
        streams={"s": ORDERED},
    ),
    case(
        "first_last",
        "",
        {"s": 4},
        sash="SELECT k, FIRST(w) AS a, LAST(w) AS b, FIRST(v) AS c, LAST(v) AS d FROM {s} GROUP BY k",
        duck="SELECT k, first(w ORDER BY ts, v) AS a, last(w ORDER BY ts, v) AS b, "
        "first(v ORDER BY ts, v) AS c, last(v ORDER BY ts, v) AS d FROM {s} GROUP BY k",
        streams={"s": ORDERED},
    ),
    case(
        "first_last_filter",
        "",
        {"s": 4},
        sash="SELECT k, FIRST(w) FILTER (WHERE v > 2) AS a, LAST(v) FILTER (WHERE v > 2 OR v IS NULL) AS b, "
        "FIRST(v) AS c, ANY_VALUE(w) FILTER (WHERE w < 0) AS d FROM {s} GROUP BY k",
        duck="SELECT k, first(w ORDER BY ts, v) FILTER (WHERE v > 2) AS a, "
        "last(v ORDER BY ts, v) FILTER (WHERE v > 2 OR v IS NULL) AS b, "
        "first(v ORDER BY ts, v) AS c, NULL::BIGINT AS d FROM {s} GROUP BY k",
        streams={"s": ORDERED},
    ),
    case(
        "first_last_filter_in_a_count_window",
        "",
        {"s": View("s", rows=3)},
        sash="SELECT FIRST(w) FILTER (WHERE v > 2) AS a, LAST(w) FILTER (WHERE v > 2) AS b FROM {s}",
        duck="SELECT first(w ORDER BY ts, k, v) FILTER (WHERE v > 2) AS a, "
        "last(w ORDER BY ts, k, v) FILTER (WHERE v > 2) AS b FROM {s}",
        streams={"s": ORDERED},
        empties=False,
    ),
    case(
        "filter_on_every_aggregate",
        "",
        {"s": 4},
        sash="SELECT k, SUM(v) FILTER (WHERE v > 3) AS a, AVG(v) FILTER (WHERE v > 3) AS b, MIN(v) FILTER (WHERE v > 3) AS c, "
        "MAX(v) FILTER (WHERE v < 7) AS d, COUNT(DISTINCT v) FILTER (WHERE v > 3) AS e, MEDIAN(v) FILTER (WHERE v > 3) AS f, "
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY v) FILTER (WHERE v > 3) AS h, VAR_POP(x) FILTER (WHERE v > 3) AS i, "
        "MAX_BY(g, v) FILTER (WHERE v < 7) AS j FROM {s} GROUP BY k",
        duck="SELECT k, SUM(v) FILTER (WHERE v > 3)::BIGINT AS a, AVG(v) FILTER (WHERE v > 3) AS b, "
        "MIN(v) FILTER (WHERE v > 3) AS c, MAX(v) FILTER (WHERE v < 7) AS d, "
        "COUNT(DISTINCT v) FILTER (WHERE v > 3) AS e, MEDIAN(v) FILTER (WHERE v > 3) AS f, "
        "quantile_cont(v, 0.25) FILTER (WHERE v > 3) AS h, VAR_POP(x) FILTER (WHERE v > 3) AS i, "
        "last(g ORDER BY v, ts, k, g) FILTER (WHERE v < 7 AND v IS NOT NULL) AS j FROM {s} GROUP BY k",
    ),
    case(
        "first_last_global",
        "",
        {"s": 3},
        sash="SELECT FIRST(v) AS a, LAST(v) AS b FROM {s}",
        duck="SELECT first(v ORDER BY ts, k, v) AS a, last(v ORDER BY ts, k, v) AS b FROM {s}",
        streams={"s": table("ts k v", (1, 1, 4), (2, 1, 6), (4, 2, None), (5, 1, 1), (11, 3, 9))},
    ),
    case(
        "min_max_of_every_type",
        "SELECT k, MIN(i) AS a, MAX(i) AS b, MIN(f) AS c, MAX(f) AS d, MIN(t) AS e, MAX(t) AS h, MIN(b) AS j, "
        "MAX(b) AS l, MIN(d) AS n, MAX(d) AS o, MIN(m) AS p, MAX(m) AS q FROM {t} GROUP BY k",
        {"t": 4},
        streams={"t": TYPED},
    ),
    case(
        "decimals",
        "SELECT k, SUM(m) AS a, COUNT(DISTINCT m) AS b FROM {t} GROUP BY k",
        {"t": 4},
        streams={"t": TYPED},
    ),
    case(
        "many_aggregates",
        "SELECT k, COUNT(*) AS a, SUM(v) AS b, AVG(x) AS c, MIN(g) AS d, MAX(v) AS e, COUNT(DISTINCT g) AS f "
        "FROM {s} GROUP BY k",
        {"s": 5},
    ),
    case("group_by_two", "SELECT k, g, COUNT(*) AS n, SUM(x) AS t FROM {s} GROUP BY k, g", {"s": 5}),
    case("group_by_string", "SELECT g, SUM(v) AS t FROM {s} GROUP BY g", {"s": 5}),
    case(
        "group_by_date_decimal_boolean",
        "SELECT d, m, b, COUNT(*) AS n FROM {t} GROUP BY d, m, b",
        {"t": 5},
        streams={"t": TYPED},
    ),
    case("group_by_expression", "SELECT v % 2 AS odd, COUNT(*) AS n FROM {s} GROUP BY v % 2", {"s": 5}),
    case("group_without_aggregate", "SELECT k FROM {s} GROUP BY k", {"s": 5}),
    case("key_not_selected", "SELECT SUM(v) AS t FROM {s} GROUP BY k", {"s": 5}),
    case("expression_over_aggregates", "SELECT k, SUM(v) / COUNT(*) + 1 AS a FROM {s} GROUP BY k", {"s": 5}),
    case("aggregate_of_expression", "SELECT k, SUM(v * 2 + 1) AS a, MAX(x - v) AS b FROM {s} GROUP BY k", {"s": 5}),
    case(
        "conditional_aggregate",
        "SELECT k, SUM(CASE WHEN v > 3 THEN 1 ELSE 0 END) AS a FROM {s} GROUP BY k",
        {"s": 5},
    ),
    case("aggregate_of_filtered", "SELECT k, SUM(v) AS t FROM {s} WHERE v > 3 GROUP BY k", {"s": 5}),
    case("having", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k HAVING COUNT(*) > 1", {"s": 5}),
    case("having_hidden", "SELECT k FROM {s} GROUP BY k HAVING SUM(v) > 7 AND MIN(v) < 5", {"s": 5}),
    case(
        "global",
        "SELECT COUNT(*) AS a, COUNT(v) AS b, SUM(v) AS c, AVG(x) AS d, MIN(g) AS e, MAX(v) AS f FROM {s}",
        {"s": 5},
    ),
    case("global_holistic", "SELECT MEDIAN(v) AS a, COUNT(DISTINCT g) AS b, STDDEV_POP(x) AS c FROM {s}", {"s": 5}),
    case("global_having", "SELECT SUM(v) AS t FROM {s} HAVING COUNT(*) > 2", {"s": 5}),
    case("global_of_nothing", "SELECT COUNT(*) AS n, SUM(v) AS t FROM {s} WHERE v > 1000", {"s": 5}),
    case(
        "global_of_empty_stream",
        "SELECT COUNT(*) AS n, SUM(v) AS t, MIN(g) AS m FROM {s}",
        {"s": 5},
        streams={"s": []},
        schemas={"s": SCHEMA},
        until=10,
    ),
    case(
        "group_of_empty_stream",
        "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k",
        {"s": 5},
        streams={"s": []},
        schemas={"s": SCHEMA},
        until=10,
    ),
    case(
        "sum_of_large_and_small",
        "SELECT k, SUM(x) AS t FROM {s} GROUP BY k",
        {"s": 3},
        streams={
            "s": table("ts k x", (1, 1, 1e15), (2, 1, 0.25), (2, 1, 0.5), (4, 1, -1e15), (5, 2, 0.1), (6, 2, 0.2))
        },
    ),
    case("distinct", "SELECT DISTINCT k FROM {s}", {"s": 5}),
    case("distinct_rows", "SELECT DISTINCT k, g, v FROM {s}", {"s": 5}),
    case("distinct_where", "SELECT DISTINCT g FROM {s} WHERE v > 3", {"s": 5}),
    case("distinct_expression", "SELECT DISTINCT v % 2 AS odd, g IS NULL AS none FROM {s}", {"s": 5}),
    case("distinct_slide", "SELECT DISTINCT k FROM {s}", {"s": View("s", 4, slide=3)}),
    case(
        "distinct_of_types",
        "SELECT DISTINCT d, m, b, t FROM {t}",
        {"t": 4},
        streams={"t": TYPED},
    ),
    case(
        "top_ascending",
        "",
        {"s": 5},
        sash="SELECT v, k FROM {s} ORDER BY v LIMIT 2",
        duck="SELECT v, k FROM {s} ORDER BY v ASC NULLS FIRST, k ASC NULLS FIRST LIMIT 2",
    ),
    case(
        "top_descending",
        "",
        {"s": 5},
        sash="SELECT v, k FROM {s} ORDER BY v DESC LIMIT 3",
        duck="SELECT v, k FROM {s} ORDER BY v DESC NULLS LAST, k ASC NULLS FIRST LIMIT 3",
    ),
    case(
        "top_nulls_last",
        "",
        {"s": 5},
        sash="SELECT v, k FROM {s} ORDER BY v ASC NULLS LAST LIMIT 2",
        duck="SELECT v, k FROM {s} ORDER BY v ASC NULLS LAST, k ASC NULLS FIRST LIMIT 2",
    ),
    case(
        "top_nulls_first",
        "",
        {"s": 5},
        sash="SELECT v, k FROM {s} ORDER BY v DESC NULLS FIRST LIMIT 2",
        duck="SELECT v, k FROM {s} ORDER BY v DESC NULLS FIRST, k ASC NULLS FIRST LIMIT 2",
    ),
    case(
        "top_by_two",
        "",
        {"s": 6},
        sash="SELECT k, g, x FROM {s} ORDER BY g DESC, x LIMIT 4",
        duck="SELECT k, g, x FROM {s} ORDER BY g DESC NULLS LAST, x ASC NULLS FIRST, k ASC NULLS FIRST LIMIT 4",
    ),
    case(
        "top_offset",
        "",
        {"s": 5},
        sash="SELECT v, k FROM {s} ORDER BY v DESC LIMIT 2 OFFSET 1",
        duck="SELECT v, k FROM {s} ORDER BY v DESC NULLS LAST, k ASC NULLS FIRST LIMIT 2 OFFSET 1",
    ),
)
