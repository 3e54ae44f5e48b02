"""Windows of every kind, and what a row does on its way through a query without state."""

from __future__ import annotations

import datetime
from decimal import Decimal

from tests.oracle.case import SCHEMA, S, case, table
from tests.oracle.duck import View

TYPED = table(
    "ts i f t b d m w y",
    (
        1,
        1,
        1.5,
        "x",
        True,
        datetime.date(2024, 2, 29),
        Decimal("1.10"),
        datetime.datetime(2024, 2, 29, 12, 30),
        b"\x01",
    ),
    (
        2,
        -5,
        -0.25,
        "",
        False,
        datetime.date(1969, 12, 31),
        Decimal("-2.25"),
        datetime.datetime(1969, 7, 20, 20, 17),
        b"",
    ),
    (4, None, None, None, None, None, None, None, None),
    (
        4,
        1,
        1.5,
        "x",
        True,
        datetime.date(2024, 2, 29),
        Decimal("1.10"),
        datetime.datetime(2024, 2, 29, 12, 30),
        b"\x01",
    ),
    (
        7,
        2**40,
        1e300,
        "ä€😀",
        True,
        datetime.date(2024, 1, 1),
        Decimal("7.00"),
        datetime.datetime(2024, 1, 1, 0, 0),
        b"ab",
    ),
)

CASES = (
    case("select_columns", "SELECT ts, k, g, v, x FROM {s}", {"s": 5}),
    case("select_star", "SELECT * FROM {s}", {"s": 3}),
    case("every_type", "SELECT * FROM {t}", {"t": 3}, streams={"t": TYPED}),
    case("where", "SELECT k, v FROM {s} WHERE v > 3", {"s": 5}),
    case("where_null_is_not_true", "SELECT ts, v FROM {s} WHERE NOT (v > 3)", {"s": 5}),
    case("where_or_and_in", "SELECT ts, k FROM {s} WHERE k IN (1, 3) AND v < 9 OR g IS NULL", {"s": 5}),
    case("where_between_like", "SELECT ts, g FROM {s} WHERE v BETWEEN 3 AND 7 AND g LIKE 'a%'", {"s": 5}),
    case("where_nothing", "SELECT ts, g FROM {s} WHERE v > 1000", {"s": 5}),
    case(
        "arithmetic",
        "SELECT v + 1 AS a, v * x AS b, v - k AS c, -v AS d, v / 2 AS e, v % 3 AS f FROM {s}",
        {"s": 5},
    ),
    case(
        "case_when",
        "SELECT CASE WHEN v > 6 THEN 'high' WHEN v > 3 THEN 'middle' ELSE 'low' END AS a, "
        "CASE k WHEN 1 THEN v ELSE NULL END AS b FROM {s}",
        {"s": 5},
    ),
    case(
        "null_functions",
        "SELECT COALESCE(v, -1) AS a, NULLIF(k, 1) AS b, v IS NULL AS c, g IS NOT NULL AS d FROM {s}",
        {"s": 5},
    ),
    case(
        "string_functions",
        "SELECT UPPER(g) AS a, LENGTH(g) AS b, g || '-' || g AS c, SUBSTRING(g || 'xyz', 2, 2) AS d, "
        "LOWER(UPPER(g)) AS e, TRIM('  ' || g || ' ') AS f, REPLACE(g, 'a', 'bb') AS h FROM {s}",
        {"s": 5},
    ),
    case("number_functions", "SELECT ABS(v - 5) AS a, ROUND(x, 1) AS b, SQRT(ABS(x)) AS c FROM {s}", {"s": 5}),
    case(
        "casts",
        "SELECT CAST(v AS DOUBLE) AS a, CAST(v AS STRING) AS b, CAST(g IS NULL AS INT) AS c FROM {s}",
        {"s": 5},
    ),
    case("constant_column", "SELECT 1 AS one, 'x' AS x, k FROM {s}", {"s": 5}),
    case("same_column_twice", "SELECT k AS a, k AS b FROM {s}", {"s": 5}),
    case("table_alias", "SELECT a.k, a.v FROM {s} AS a WHERE a.k = 1", {"s": 5}),
    case("window_of_one", "SELECT k, v FROM {s}", {"s": 1}),
    case("window_longer_than_stream", "SELECT k, v FROM {s}", {"s": 100}),
    case("slide", "SELECT k, v FROM {s}", {"s": View("s", 5, slide=2)}),
    case("slide_equals_length", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k", {"s": View("s", 4, slide=4)}),
    case("slide_past_length", "SELECT ts, k FROM {s}", {"s": View("s", 2, slide=5)}),
    case("slide_aggregate", "SELECT SUM(v) AS n FROM {s}", {"s": View("s", 7, slide=3)}),
    case(
        "slides_joined",
        "SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        {"s": View("s", 5, slide=2), "r": View("r", 6, slide=3)},
    ),
    case("now", "SELECT k, v FROM {s}", {"s": 0}, unit="us"),
    case("now_aggregate", "SELECT COUNT(*) AS n, SUM(v) AS t FROM {s}", {"s": 0}, unit="us"),
    case(
        "now_joined_with_range",
        "SELECT a.ts AS ts, b.v AS v FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        {"s": 0, "r": 5},
        unit="us",
    ),
    case("unbounded_select", "SELECT k, v FROM {s} WHERE v > 3", {"s": None}),
    case(
        "unbounded_group",
        "SELECT k, SUM(v) AS a, COUNT(*) AS b, MIN(v) AS c, MAX(x) AS d FROM {s} GROUP BY k",
        {"s": None},
    ),
    case("unbounded_global", "SELECT COUNT(*) AS n, AVG(x) AS a FROM {s}", {"s": None}),
    case("unbounded_distinct", "SELECT DISTINCT k, g FROM {s}", {"s": None}),
    case(
        "no_window_is_unbounded",
        "",
        {"s": None},
        sash="SELECT g, COUNT(*) AS n FROM s GROUP BY g",
        duck="SELECT g, COUNT(*) AS n FROM s GROUP BY g",
    ),
    case(
        "trailing_window",
        "",
        {"s": 5},
        sash="SELECT k, SUM(v) AS t FROM s GROUP BY k WINDOW 5 SECONDS",
        duck="SELECT k, SUM(v) AS t FROM s GROUP BY k",
    ),
    case(
        "trailing_window_for_the_rest",
        "",
        {"s": 3, "r": 8},
        sash="SELECT a.v AS v, b.v AS w FROM s [RANGE 3 SECONDS] AS a JOIN r AS b ON a.k = b.k WINDOW 8 SECONDS",
        duck="SELECT a.v AS v, b.v AS w FROM s AS a JOIN r AS b ON a.k = b.k",
    ),
    case("milliseconds", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k", {"s": 4}, unit="ms"),
    case("microseconds", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k", {"s": 4}, unit="us"),
    case("empty_stream", "SELECT k, v FROM {s}", {"s": 5}, streams={"s": []}, schemas={"s": SCHEMA}),
    case("one_row", "SELECT k, v FROM {s}", {"s": 5}, streams={"s": S[:1]}),
    case(
        "nulls_only",
        "SELECT v, COUNT(*) AS n, SUM(x) AS t FROM {s} GROUP BY v",
        {"s": 5},
        streams={"s": table("ts k g v x", (1, None, None, None, None), (3, None, None, None, None))},
        schemas={"s": SCHEMA},
    ),
    case("until_before_expiry", "SELECT k, v FROM {s}", {"s": 50}, until=30),
)
