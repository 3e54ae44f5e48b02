"""Windows of a number of rows, under everything that a time window may stand under."""

from __future__ import annotations

from decimal import Decimal

from tests.oracle.case import SCHEMA, case, table
from tests.oracle.duck import View
from tests.oracle.fixed.windows import TYPED

BURSTS = table(
    "ts k g v x",
    (1, None, "z", 5, None),
    (1, 2, "b", 1, 0.5),
    (1, 1, "a", 9, 2.0),
    (1, 1, "a", 9, 2.0),
    (1, 1, None, 9, -2.0),
    (3, 2, "b", 1, 0.5),
    (4, 1, "b", 2, 0.25),
    (4, 1, "a", 2, 0.25),
    (9, None, None, None, None),
    (9, None, None, None, None),
    (9, None, "a", None, None),
    (9, 2, "b", 1, 0.5),
    (11, 1, "a", 9, 2.0),
)
"""More rows at one instant than most windows hold, not in their order, equal ones among them."""

AGAIN = table("ts k v", (1, 1, 5), (2, 2, 7), (3, 1, 5), (4, 2, 8), (7, 1, 5), (8, 1, 5), (9, 2, 7), (12, 2, 5))
"""The same values at different times."""

PLACED = table("k place", (1, "here"), (2, "there"), (2, "elsewhere"))

_JOIN = "SELECT a.ts AS ts, a.v AS v, b.ts AS us, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k = b.k"


def last(count: int, stream: str = "s", *partition: str) -> View:
    """The last rows of a stream."""
    return View(stream, rows=count, partition=partition)


CASES = (
    case("rows", "SELECT ts, v FROM {s}", {"s": last(3)}),
    case("rows_one", "SELECT ts, k, v FROM {s}", {"s": last(1)}),
    case("rows_more_than_there_are", "SELECT ts, k, v FROM {s}", {"s": last(100)}),
    case("rows_of_every_type", "SELECT * FROM {t}", {"t": last(2, "t")}, streams={"t": TYPED}),
    case(
        "rows_by_decimals",
        "SELECT * FROM {t}",
        {"t": last(2, "t")},
        streams={
            "t": table("ts d", (1, Decimal("2.50")), (1, Decimal("-3.25")), (1, Decimal("10.00")), (1, None), (2, None))
        },
    ),
    *(
        case(f"rows_bursts_{n}", "SELECT * FROM {s}", {"s": last(n)}, streams={"s": BURSTS}, schemas={"s": SCHEMA})
        for n in (1, 2, 3, 5, 6)
    ),
    case(
        "rows_bursts_partitioned",
        "SELECT * FROM {s}",
        {"s": last(2, "s", "k")},
        streams={"s": BURSTS},
        schemas={"s": SCHEMA},
    ),
    case(
        "rows_bursts_grouped",
        "SELECT g, COUNT(*) AS n, SUM(v) AS t, MIN(x) AS m FROM {s} GROUP BY g",
        {"s": last(3)},
        streams={"s": BURSTS},
        schemas={"s": SCHEMA},
    ),
    case(
        "rows_empty_stream",
        "SELECT COUNT(*) AS n FROM {s}",
        {"s": last(3)},
        streams={"s": []},
        schemas={"s": SCHEMA},
        empties=False,
    ),
    case("rows_dropped_columns_net", "SELECT k FROM {s}", {"s": last(3)}),
    case("rows_counted_before_where", "SELECT ts, v FROM {s} WHERE v > 3", {"s": last(3)}),
    case("rows_where_nothing", "SELECT ts FROM {s} WHERE k = 99", {"s": last(2)}),
    case("rows_partitioned", "SELECT k, g, v FROM {s}", {"s": last(2, "s", "k")}),
    case("rows_partitioned_by_two", "SELECT ts, k, g FROM {s}", {"s": last(1, "s", "g", "k")}),
    case("rows_partitioned_by_double", "SELECT ts, x FROM {s}", {"s": last(1, "s", "x")}),
    case("rows_partitioned_where", "SELECT ts, k FROM {s} WHERE k = 1 AND v < 9", {"s": last(2, "s", "k")}),
    case("rows_partitioned_where_null", "SELECT ts, v FROM {s} WHERE k IS NULL", {"s": last(1, "s", "k")}),
    case("rows_aggregate", "SELECT k, SUM(v) AS t, COUNT(*) AS n FROM {s} GROUP BY k", {"s": last(4)}),
    case(
        "rows_global",
        "SELECT COUNT(*) AS n, SUM(v) AS t, AVG(x) AS a, MIN(g) AS m, MAX(v) AS w, MEDIAN(v) AS d FROM {s}",
        {"s": last(4)},
        empties=False,
    ),
    case("rows_count_distinct", "SELECT COUNT(DISTINCT k) AS n FROM {s}", {"s": last(4)}, empties=False),
    case(
        "rows_count_distinct_grouped",
        "SELECT g, COUNT(DISTINCT v) AS n, SUM(DISTINCT v) AS t FROM {s} GROUP BY g",
        {"s": last(5)},
        duck="SELECT g, COUNT(DISTINCT v) AS n, CAST(SUM(DISTINCT v) AS BIGINT) AS t FROM {s} GROUP BY g",
    ),
    case(
        "rows_partitioned_by_the_group",
        "SELECT k, SUM(v) AS t, COUNT(*) AS n FROM {s} GROUP BY k",
        {"s": last(2, "s", "k")},
    ),
    case(
        "rows_partitioned_by_another_group",
        "SELECT g, SUM(v) AS t, COUNT(*) AS n FROM {s} GROUP BY g",
        {"s": last(2, "s", "k")},
    ),
    case(
        "rows_partitioned_global", "SELECT COUNT(*) AS n, SUM(v) AS t FROM {s}", {"s": last(1, "s", "k")}, empties=False
    ),
    case("rows_having", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k HAVING COUNT(*) > 1", {"s": last(4)}),
    case("rows_distinct", "SELECT DISTINCT k FROM {s}", {"s": last(3)}),
    case("rows_distinct_partitioned", "SELECT DISTINCT g, v FROM {s}", {"s": last(2, "s", "k")}),
    case(
        "rows_top",
        "SELECT v, k FROM {s} ORDER BY v DESC, k LIMIT 2",
        {"s": last(4)},
        duck="SELECT v, k FROM {s} ORDER BY v DESC NULLS LAST, k NULLS FIRST LIMIT 2",
    ),
    case(
        "rows_top_partitioned",
        "SELECT ts, v FROM {s} ORDER BY v, ts LIMIT 2",
        {"s": last(1, "s", "k")},
        duck="SELECT ts, v FROM {s} ORDER BY v NULLS FIRST, ts NULLS FIRST LIMIT 2",
    ),
    case("rows_joined", _JOIN, {"s": last(3), "r": last(2, "r")}),
    case("rows_joined_with_range", _JOIN, {"s": last(3), "r": 5}),
    case("range_joined_with_rows", _JOIN, {"s": 5, "r": last(2, "r")}),
    case("rows_joined_with_slide", _JOIN, {"s": last(3), "r": View("r", 6, slide=2)}),
    case("rows_partitioned_joined_on_them", _JOIN, {"s": last(2, "s", "k"), "r": last(1, "r", "k")}),
    case("rows_partitioned_joined_on_other", _JOIN, {"s": last(2, "s", "g"), "r": last(1, "r", "v", "g")}),
    case("rows_partitioned_joined_with_range", _JOIN, {"s": last(2, "s", "k"), "r": 5}),
    case("rows_partitioned_joined_with_rows", _JOIN, {"s": last(2, "s", "k"), "r": last(3, "r")}),
    case(
        "rows_joined_and_grouped",
        "SELECT a.k AS k, COUNT(*) AS n FROM {s} AS a JOIN {r} AS b ON a.k = b.k GROUP BY a.k",
        {"s": last(4), "r": View("r", 6, slide=2)},
    ),
    case(
        "rows_theta",
        "SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.v < b.v",
        {"s": last(3), "r": last(2, "r")},
    ),
    case(
        "rows_three_ways",
        "SELECT a.v AS v, b.v AS w, c.v AS u FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN {q} AS c ON b.k = c.k",
        {"s": last(3), "r": 8, "q": last(2, "q")},
    ),
    *(
        case(
            f"rows_three_ways_{kind}",
            f"SELECT a.ts AS ts, b.ts AS us, c.ts AS vs FROM {{s}} AS a {kind.upper()} JOIN {{r}} AS b ON a.k = b.k "
            f"{kind.upper()} JOIN {{q}} AS c ON b.g = c.g",
            {"s": last(3), "r": last(2, "r", "k"), "q": last(2, "q")},
        )
        for kind in ("left", "full")
    ),
    case(
        "rows_everywhere",
        "SELECT t.g AS g, COUNT(*) AS n, COUNT(p.v) AS m FROM (SELECT DISTINCT a.g AS g, b.v AS v FROM {s} AS a, {r} AS b, "
        "{q} AS c WHERE a.k = b.k AND b.k = c.k EXCEPT SELECT g, v FROM {few}) AS t LEFT JOIN {each} AS p ON t.v = p.v "
        "GROUP BY t.g",
        {
            "s": last(5),
            "r": last(2, "r", "k"),
            "q": last(4, "q"),
            "few": last(2),
            "each": last(1, "r", "g"),
        },
    ),
    case(
        "rows_of_a_stream_and_itself",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a JOIN {s} AS b ON a.k = b.k AND a.ts < b.ts",
        {"s": last(4)},
    ),
    case(
        "rows_of_a_stream_twice",
        "SELECT a.ts AS ts, b.ts AS us FROM {few} AS a JOIN {many} AS b ON a.k = b.k",
        {"few": last(2), "many": last(5)},
    ),
    case(
        "rows_and_range_of_a_stream",
        "SELECT a.ts AS ts, b.ts AS us FROM {few} AS a JOIN {recent} AS b ON a.k = b.k",
        {"few": last(2), "recent": View("s", 4)},
    ),
    case(
        "rows_and_partitioned_rows_of_a_stream",
        "SELECT ts, k FROM {few} EXCEPT SELECT ts, k FROM {each}",
        {"few": last(3), "each": last(1, "s", "k")},
    ),
    *(
        case(
            f"rows_{kind}_outer",
            f"SELECT a.ts AS ts, b.ts AS us FROM {{s}} AS a {kind.upper()} JOIN {{r}} AS b ON a.k = b.k",
            views,
        )
        for kind, views in (
            ("left", {"s": last(3), "r": last(2, "r")}),
            ("right", {"s": last(2), "r": 5}),
            ("full", {"s": 4, "r": last(3, "r", "k")}),
        )
    ),
    case(
        "rows_full_theta",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a FULL JOIN {r} AS b ON a.k = b.k AND a.v < b.v",
        {"s": last(3), "r": last(2, "r")},
    ),
    *(
        case(
            f"rows_{kind}",
            "",
            {"s": last(4), "r": last(2, "r")},
            sash=f"SELECT a.ts, a.k FROM {{s}} AS a LEFT {kind.upper()} JOIN {{r}} AS b ON a.k = b.k",
            duck=f"SELECT a.ts, a.k FROM {{s}} AS a {kind.upper()} JOIN {{r}} AS b ON a.k = b.k",
        )
        for kind in ("semi", "anti")
    ),
    case(
        "rows_anti_partitioned",
        "",
        {"s": 6, "r": last(1, "r", "k")},
        sash="SELECT a.k, a.v FROM {s} AS a LEFT ANTI JOIN {r} AS b ON a.k = b.k AND a.v = b.v",
        duck="SELECT a.k, a.v FROM {s} AS a ANTI JOIN {r} AS b ON a.k = b.k AND a.v = b.v",
    ),
    *(
        case(
            f"rows_{operator.lower().replace(' ', '_')}",
            f"SELECT k, g FROM {{s}} {operator} SELECT k, g FROM {{r}}",
            views,
        )
        for operator, views in (
            ("UNION ALL", {"s": last(2), "r": last(3, "r")}),
            ("UNION", {"s": last(3), "r": 5}),
            ("EXCEPT", {"s": last(4), "r": last(2, "r")}),
            ("EXCEPT ALL", {"s": last(5), "r": last(1, "r", "k")}),
            ("INTERSECT", {"s": 9, "r": last(3, "r")}),
            ("INTERSECT ALL", {"s": last(4, "s", "g"), "r": last(4, "r")}),
        )
    ),
    *(
        case(
            f"rows_partitioned_{operator.lower().replace(' ', '_')}",
            f"SELECT k, v FROM {{s}} {operator} SELECT k, v FROM {{r}}",
            {"s": last(2, "s", "k"), "r": last(1, "r", "g")},
        )
        for operator in ("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
    ),
    case(
        "rows_looked_up",
        "SELECT a.ts AS ts, t.place AS place FROM {s} AS a JOIN places AS t ON a.k = t.k WHERE a.v > 3",
        {"s": last(3)},
        relations={"places": PLACED},
    ),
    case(
        "rows_looked_up_or_not",
        "SELECT a.ts AS ts, t.place AS place FROM {s} AS a LEFT JOIN places AS t ON a.k = t.k",
        {"s": last(2, "s", "g")},
        relations={"places": PLACED},
    ),
    case(
        "rows_group_over_except",
        "SELECT g, COUNT(*) AS n FROM (SELECT k, g FROM {s} EXCEPT SELECT k, g FROM {r}) AS t GROUP BY g",
        {"s": last(4), "r": last(2, "r")},
    ),
    case(
        "rows_distinct_over_join",
        "SELECT DISTINCT a.g AS g FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        {"s": last(4), "r": last(3, "r")},
    ),
    case(
        "rows_aggregate_over_aggregate",
        "SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS t GROUP BY n",
        {"s": last(5)},
    ),
    case(
        "rows_own_window_beside_a_trailing_one",
        "",
        {"s": last(3), "r": 8},
        sash="SELECT a.v AS v, b.v AS w FROM s [ROWS 3] AS a JOIN r AS b ON a.k = b.k WINDOW 8 SECONDS",
        duck="SELECT a.v AS v, b.v AS w FROM s AS a JOIN r AS b ON a.k = b.k",
    ),
    case(
        "rows_first_last",
        "",
        {"s": last(3)},
        sash="SELECT FIRST(v) AS a, LAST(v) AS b FROM {s}",
        duck="SELECT first(v ORDER BY ts, k, v) AS a, last(v ORDER BY ts, k, v) AS b FROM {s}",
        streams={"s": AGAIN},
    ),
    case(
        "rows_first_last_of_equal_rows",
        "",
        {"s": last(3)},
        sash="SELECT FIRST(v) AS a, LAST(v) AS b FROM (SELECT v FROM {s}) AS t",
        duck="SELECT first(v ORDER BY ts, v) AS a, last(v ORDER BY ts, v) AS b FROM {s}",
        streams={"s": AGAIN},
    ),
    case(
        "rows_first_last_of_partitions",
        "",
        {"s": last(2, "s", "k")},
        sash="SELECT FIRST(v) AS a, LAST(v) AS b, MIN_BY(w, v) AS c FROM (SELECT v, v % 5 AS w FROM {s} WHERE v > 4) AS t",
        duck="SELECT first(v ORDER BY ts, v) AS a, last(v ORDER BY ts, v) AS b, min(v) % 5 AS c FROM {s} WHERE v > 4",
        streams={"s": AGAIN},
    ),
    case(
        "rows_first_last_grouped",
        "",
        {"s": last(2, "s", "k")},
        sash="SELECT k, FIRST(v) AS a, LAST(v) AS b FROM {s} GROUP BY k",
        duck="SELECT k, first(v ORDER BY ts, v) AS a, last(v ORDER BY ts, v) AS b FROM {s} GROUP BY k",
        streams={"s": AGAIN},
    ),
    case(
        "rows_min_by_ties",
        "",
        {"s": last(4)},
        sash="SELECT MIN_BY(k, w) AS a, MAX_BY(k, v) AS b FROM (SELECT k, v, v % 2 AS w FROM {s}) AS t",
        duck="SELECT first(k ORDER BY v % 2, ts, k, v) AS a, last(k ORDER BY v, ts, k) AS b FROM {s}",
        streams={"s": AGAIN},
    ),
    case(
        "rows_first_last_joined",
        "",
        {"s": last(3), "r": 6},
        sash="SELECT FIRST(v) AS a, LAST(w) AS b FROM "
        "(SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k = b.k AND a.v <> b.v) AS t",
        duck="SELECT first(v ORDER BY m, v, w) AS a, last(w ORDER BY m, v, w) AS b FROM (SELECT a.v AS v, b.v AS w, "
        "greatest(a.ts, b.ts) AS m FROM {s} AS a JOIN {r} AS b ON a.k = b.k AND a.v <> b.v) AS t",
        streams={"s": AGAIN, "r": table("ts k v", (2, 1, 5), (4, 2, 1), (5, 1, 7), (9, 2, 8), (12, 1, 5))},
    ),
    case(
        "rows_first_last_looked_up",
        "",
        {"s": last(3)},
        sash="SELECT FIRST(place) AS a, LAST(v) AS b FROM "
        "(SELECT t.place AS place, a.v AS v FROM {s} AS a LEFT JOIN places AS t ON a.k = t.k) AS t",
        duck="SELECT first(place ORDER BY ts, place, v) AS a, last(v ORDER BY ts, place, v) AS b FROM "
        "(SELECT t.place AS place, a.v AS v, a.ts AS ts FROM {s} AS a LEFT JOIN places AS t ON a.k = t.k) AS t",
        streams={"s": AGAIN},
        relations={"places": PLACED},
    ),
    case(
        "rows_first_last_of_a_union",
        "",
        {"s": last(2), "r": 3},
        sash="SELECT FIRST(v) AS a, LAST(v) AS b FROM (SELECT v FROM {s} UNION ALL SELECT v FROM {r}) AS t",
        duck="SELECT first(v ORDER BY ts, v) AS a, last(v ORDER BY ts, v) AS b FROM "
        "(SELECT ts, v FROM {s} UNION ALL SELECT ts, v FROM {r}) AS t",
        streams={"s": AGAIN, "r": table("ts k v", (2, 1, 5), (4, 2, 1), (5, 1, 7), (9, 2, 8))},
    ),
    case("rows_microseconds", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k", {"s": last(4)}, unit="us"),
)
