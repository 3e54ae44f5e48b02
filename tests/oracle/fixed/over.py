"""Window functions (OVER), over everything that may be below them.

`@` stands for how ties are broken: for DuckDB it is written out, for Sash it is the rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracle.case import Case, case, table
from tests.oracle.duck import View
from tests.oracle.fixed.counts import AGAIN, BURSTS, last

_TIES = ", ts, k NULLS FIRST, g NULLS FIRST, v NULLS FIRST, x NULLS FIRST"
DAYS = table(
    "ts k v d",
    *sorted(
        [*((n, n % 3, (7 * n) % 5, 9.5 - n) for n in range(1, 14)), *((n, n % 2, None, None) for n in (3, 8))],
        key=lambda row: row[0],
    ),
)


def over(name: str, text: str, views: Mapping[str, int | View], ties: str = _TIES, **more: object) -> Case:
    """A case whose ties are broken by the time and all columns of `s`."""
    return case(f"over_{name}", "", views, sash=text.replace("@", ""), duck=text.replace("@", ties), **more)  # type: ignore[arg-type]


_FRAMES = {
    "around": "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "last_three": "ROWS 2 PRECEDING",
    "before": "ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING",
    "after": "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "rows_running": "ROWS UNBOUNDED PRECEDING",
    "rows_rest": "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "all_but_last": "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    "range_running": "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "range_rest": "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "many": "ROWS 12 PRECEDING",
    "far": "ROWS BETWEEN 14 PRECEDING AND 3 PRECEDING",
    "whole": "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
}

_VALUES = {
    "near": "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
    "up_to_less": "RANGE BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING",
    "from_more": "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "apart": "RANGE BETWEEN 5 PRECEDING AND 2 PRECEDING",
}

CASES = (
    over(
        "ranking",
        "SELECT ts, k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v NULLS FIRST @) AS n, "
        "RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS r, "
        "DENSE_RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS d, "
        "PERCENT_RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS p, "
        "CUME_DIST() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS c, "
        "NTILE(3) OVER (PARTITION BY k ORDER BY v NULLS FIRST @) AS t FROM {s}",
        {"s": 8},
    ),
    over(
        "ranking_without_partition",
        "SELECT ts, v, ROW_NUMBER() OVER (ORDER BY v DESC NULLS LAST @) AS n, "
        "DENSE_RANK() OVER (ORDER BY g NULLS LAST) AS d FROM {s}",
        {"s": 5},
    ),
    over(
        "neighbours",
        "SELECT ts, k, v, LAG(v) OVER (PARTITION BY k ORDER BY ts @) AS a, "
        "LEAD(v, 2, -1) OVER (PARTITION BY k ORDER BY ts @) AS b, "
        "LAG(x, 1, x) OVER (PARTITION BY k ORDER BY ts @) AS c, LAG(g, 0) OVER (PARTITION BY k ORDER BY ts @) AS d "
        "FROM {s}",
        {"s": 6},
    ),
    over(
        "neighbours_with_values",
        "SELECT ts, v, LAG(v) OVER (ORDER BY ts @) AS a, LEAD(v, 2) OVER (ORDER BY ts @) AS b FROM {s} WHERE v > 0",
        {"s": 9},
    ),
    *(
        over(
            f"frame_{name}",
            "SELECT ts, k, v, SUM(v) OVER w AS a, COUNT(*) OVER w AS b, AVG(x) OVER w AS c, MIN(g) OVER w AS d, "
            "MAX(v) OVER w AS e, STDDEV_POP(x) OVER w AS f, FIRST_VALUE(v) OVER w AS h, LAST_VALUE(g) OVER w AS i, "
            f"NTH_VALUE(v, 2) OVER w AS j FROM {{s}} WINDOW w AS (PARTITION BY k ORDER BY ts @ {frame})",
            {"s": 6},
        )
        for name, frame in _FRAMES.items()
        if not name.startswith("range")
    ),
    *(
        over(
            f"frame_{name}",
            "SELECT ts, k, v, SUM(v) OVER w AS a, COUNT(*) OVER w AS b, AVG(x) OVER w AS c, MIN(g) OVER w AS d, "
            f"MEDIAN(v) OVER w AS e FROM {{s}} WINDOW w AS (PARTITION BY k ORDER BY v DESC NULLS LAST {frame})",
            {"s": 6},
        )
        for name, frame in _FRAMES.items()
        if name.startswith("range")
    ),
    *(
        over(
            f"values_{name}",
            "SELECT ts, k, v, SUM(v) OVER w AS a, COUNT(*) OVER w AS b, MAX(d) OVER w AS c "
            f"FROM {{s}} WINDOW w AS (PARTITION BY k ORDER BY v {order} {frame})",
            {"s": 6},
            streams={"s": DAYS},
        )
        for name, frame in _VALUES.items()
        for order in ("NULLS FIRST", "DESC NULLS LAST")[len(name) % 2 :][:1]
    ),
    over(
        "values_of_doubles",
        "SELECT ts, d, SUM(d) OVER (ORDER BY d NULLS LAST RANGE BETWEEN 1.5 PRECEDING AND 0.5 FOLLOWING) AS a, "
        "COUNT(v) OVER (ORDER BY d DESC NULLS FIRST RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING) AS b FROM {s}",
        {"s": 6},
        streams={"s": DAYS},
    ),
    over(
        "values_of_floats",
        "SELECT CAST(x AS FLOAT) AS f, COUNT(*) OVER "
        "(ORDER BY CAST(x AS FLOAT) NULLS LAST RANGE BETWEEN 0.1 PRECEDING AND 1.1 FOLLOWING) AS n FROM {s}",
        {"s": 5},
        streams={"s": table("ts x", (1, 0.0), (1, 1.1), (2, 1.2), (4, 0.1), (4, 5.0))},
    ),
    over(
        "whole_partitions",
        "SELECT ts, k, v, SUM(v) OVER (PARTITION BY k) AS a, COUNT(DISTINCT g) OVER (PARTITION BY k) AS b, "
        "MAX(v) OVER () AS c, v - AVG(v) OVER (PARTITION BY g) AS d FROM {s}",
        {"s": 5},
    ),
    over(
        "lists",
        "SELECT ts, v, STRING_AGG(g, ',') OVER (PARTITION BY k ORDER BY ts @ ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM {s}",
        {"s": 6},
    ),
    over("count_alone", "SELECT COUNT(*) OVER () AS n FROM {s} WHERE v > 3", {"s": 5}),
    case(
        "over_filtered_values",
        "",
        {"s": 8},
        sash="SELECT ts, FIRST_VALUE(v) FILTER (WHERE v > 3) OVER w AS a, LAST(ts) FILTER (WHERE v > 3) OVER w AS b "
        "FROM {s} WINDOW w AS (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
        duck="SELECT ts, FIRST_VALUE(CASE WHEN v > 3 THEN v END IGNORE NULLS) OVER w AS a, "
        "LAST_VALUE(CASE WHEN v > 3 THEN ts END IGNORE NULLS) OVER w AS b "
        f"FROM {{s}} WINDOW w AS (ORDER BY ts {_TIES} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)",
    ),
    over(
        "ignoring_nulls",
        "SELECT ts, LAG(v IGNORE NULLS) OVER w AS a, LEAD(g, 2 IGNORE NULLS) OVER w AS b, "
        "FIRST_VALUE(k IGNORE NULLS) OVER (ORDER BY ts @ ROWS 1 PRECEDING) AS c, NTH_VALUE(x, 2 IGNORE NULLS) OVER (ORDER BY ts @ ROWS 2 PRECEDING) AS d "
        "FROM {s} WINDOW w AS (ORDER BY ts @)",
        {"s": 8},
    ),
    over(
        "filtered",
        "SELECT ts, k, SUM(v) FILTER (WHERE x > 0) OVER (PARTITION BY k) AS a, "
        "COUNT(*) FILTER (WHERE v > 3) OVER (ORDER BY ts) AS b FROM {s}",
        {"s": 5},
    ),
    over(
        "different_partitions",
        "SELECT ts, k, v, ROW_NUMBER() OVER (PARTITION BY k, v ORDER BY d NULLS FIRST @) AS a, "
        "RANK() OVER (PARTITION BY v ORDER BY ts) AS b, SUM(v) OVER (ORDER BY ts @ ROWS 1 PRECEDING) AS c, "
        "LAG(v) OVER (PARTITION BY k ORDER BY ts DESC @) AS e FROM {s}",
        {"s": 5},
        ", ts, k, v NULLS FIRST, d NULLS FIRST",
        streams={"s": DAYS},
    ),
    over(
        "expressions",
        "SELECT ts, 100 * v / SUM(v + 1) OVER (PARTITION BY k % 2) AS a, "
        "CASE WHEN ROW_NUMBER() OVER (ORDER BY -v NULLS FIRST @) <= 2 THEN 'top' ELSE 'rest' END AS b FROM {s}",
        {"s": 5},
    ),
    over(
        "above_groups",
        "SELECT k, SUM(v) AS t, RANK() OVER (ORDER BY SUM(v) DESC NULLS LAST) AS r, "
        "SUM(SUM(v)) OVER (ORDER BY k NULLS FIRST ROWS UNBOUNDED PRECEDING) AS c, "
        "LAG(COUNT(*)) OVER (ORDER BY k NULLS FIRST) AS l FROM {s} GROUP BY k HAVING COUNT(*) > 0",
        {"s": 5},
    ),
    over(
        "ties_above_groups",
        "SELECT k, COUNT(*) AS n, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC @) AS r FROM {s} GROUP BY k",
        {"s": 5},
        ", k NULLS FIRST",
    ),
    over(
        "qualify",
        "SELECT ts, k, v FROM {s} QUALIFY ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST @) <= 2",
        {"s": 6},
    ),
    over(
        "qualify_by_alias",
        "SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST) AS r FROM {s} WHERE v > 1 QUALIFY r < 3",
        {"s": 6},
    ),
    over(
        "qualify_by_dense_rank",
        "SELECT ts, k, v FROM {s} QUALIFY DENSE_RANK() OVER (PARTITION BY k ORDER BY v NULLS FIRST) <= 2",
        {"s": 6},
    ),
    over(
        "third_rank_of_all",
        "SELECT k, v, r, n FROM (SELECT k, v, RANK() OVER (ORDER BY v DESC NULLS LAST) AS r, "
        "DENSE_RANK() OVER (ORDER BY v DESC NULLS LAST) AS n FROM {s}) AS a WHERE 3 >= r AND n <> 1",
        {"s": 6},
    ),
    over(
        "top_of_a_subquery",
        "SELECT k, v, n FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v NULLS FIRST @) AS n FROM {s}) AS a "
        "WHERE n = 1",
        {"s": 6},
    ),
    over(
        "grouped_again",
        "SELECT n, COUNT(*) AS c, SUM(v) AS t FROM "
        "(SELECT v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts @) AS n FROM {s}) AS a GROUP BY n",
        {"s": 6},
    ),
    over(
        "of_over",
        "SELECT v, n, SUM(n) OVER (ORDER BY n) AS t FROM "
        "(SELECT v, DENSE_RANK() OVER (ORDER BY v NULLS FIRST) AS n FROM {s}) AS a",
        {"s": 6},
    ),
    over(
        "join",
        "SELECT a.v AS v, b.v AS w, ROW_NUMBER() OVER (PARTITION BY a.k ORDER BY a.v NULLS FIRST @) AS n, "
        "LAG(b.v) OVER (PARTITION BY a.k ORDER BY a.ts @) AS l FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        {"s": 5, "r": 4},
        ", greatest(a.ts, b.ts), a.ts, a.k, a.g NULLS FIRST, a.v NULLS FIRST, a.x NULLS FIRST, b.ts, b.k, "
        "b.g NULLS FIRST, b.v NULLS FIRST, b.x NULLS FIRST",
    ),
    over(
        "above_distinct",
        "SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v NULLS FIRST) AS n, SUM(v) OVER (PARTITION BY k) AS t "
        "FROM (SELECT DISTINCT k, v FROM {s}) AS a",
        {"s": 5},
    ),
    over(
        "above_union",
        "SELECT v, ROW_NUMBER() OVER (ORDER BY v NULLS FIRST) AS n FROM "
        "(SELECT v FROM {s} UNION ALL SELECT v FROM {r}) AS a",
        {"s": 5, "r": 3},
    ),
    over(
        "last_rows",
        "SELECT ts, v, LAG(v) OVER (ORDER BY ts @) AS l, SUM(v) OVER (ORDER BY ts @ ROWS 2 PRECEDING) AS t FROM {s}",
        {"s": last(4)},
        ", k, v",
        streams={"s": AGAIN},
    ),
    over(
        "bursts",
        "SELECT ts, k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts @) AS n, "
        "SUM(v) OVER (PARTITION BY k ORDER BY ts @ ROWS 1 PRECEDING) AS t FROM {s}",
        {"s": 5},
        streams={"s": BURSTS},
    ),
    over(
        "slide",
        "SELECT ts, v, ROW_NUMBER() OVER (ORDER BY v NULLS FIRST @) AS n FROM {s}",
        {"s": View("s", 6, slide=2)},
    ),
    over(
        "distinct",
        "SELECT DISTINCT k, COUNT(*) OVER (PARTITION BY k) AS n FROM {s}",
        {"s": 5},
    ),
    over(
        "ordered",
        "SELECT v, k FROM {s} ORDER BY ROW_NUMBER() OVER (ORDER BY v DESC NULLS LAST @) LIMIT 3",
        {"s": 5},
    ),
)
