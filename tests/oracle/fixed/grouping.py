"""GROUPING SETS, ROLLUP and CUBE; PIVOT and UNPIVOT; constant relations: VALUES, and SELECT without FROM, with streams.

Spark's grand total of nothing is no row, DuckDB's is one.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.oracle.case import Case, case
from tests.oracle.duck import View

_VALUES = "(VALUES (1, 'a'), (2, 'b'), (1, 'c'), (NULL, 'd')) AS t(k, name)"


def _sets(name: str, text: str, views: Mapping[str, int]) -> Case:
    """A query whose groups all have rows."""
    return case(name, "", views, sash=text, duck=f"{text} HAVING COUNT(*) > 0")


CASES = (
    _sets("rollup", "SELECT k, g, COUNT(*) AS n, SUM(v) AS t FROM {s} GROUP BY ROLLUP (k, g)", {"s": 5}),
    _sets("cube", "SELECT k, g, MAX(v) AS m, GROUPING(k) AS a, GROUPING(g) AS b FROM {s} GROUP BY CUBE (k, g)", {"s": 5}),
    _sets("grouping_sets", "SELECT k, g, COUNT(DISTINCT v) AS n, GROUPING_ID(k, g) AS i FROM {s} GROUP BY GROUPING SETS ((k), (g), (k, g))", {"s": 4}),
    _sets("rollup_with_a_key", "SELECT k, g, AVG(v) AS m FROM {s} GROUP BY k, ROLLUP (g)", {"s": 5}),
    _sets("rollup_of_an_expression", "SELECT k % 2 AS odd, SUM(k) AS t FROM {s} GROUP BY ROLLUP (k % 2)", {"s": 5}),
    _sets("rollup_of_a_join", "SELECT a.k, b.g, COUNT(*) AS n FROM {s} AS a JOIN {r} AS b ON a.k = b.k GROUP BY ROLLUP (a.k, b.g)", {"s": 5, "r": 4}),
    _sets("two_rollups", "SELECT k, g, COUNT(v) AS n FROM {s} GROUP BY ROLLUP (k), ROLLUP (g)", {"s": 3}),
    _sets("equal_sets", "SELECT k, COUNT(*) AS n FROM {s} GROUP BY GROUPING SETS ((k), (k))", {"s": 5}),
    case("cube_without_aggregates", "", {"s": 5}, sash="SELECT k, g FROM {s} GROUP BY CUBE (k, g)", duck="SELECT k, g FROM {s} GROUP BY CUBE (k, g) HAVING COUNT(*) > 0"),
    case("rollup_of_groups", "", {"s": 5}, sash="SELECT k, MAX(n) AS m FROM (SELECT k, g, COUNT(*) AS n FROM {s} GROUP BY k, g) AS a GROUP BY ROLLUP (k)", duck="SELECT k, MAX(n) AS m FROM (SELECT k, g, COUNT(*) AS n FROM {s} GROUP BY k, g) AS a GROUP BY ROLLUP (k) HAVING COUNT(*) > 0"),
    case("join_of_a_rollup", "", {"s": 5, "r": 5}, sash="SELECT a.k, a.n, b.v FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY ROLLUP (k)) AS a JOIN {r} AS b ON a.k = b.k", duck="SELECT a.k, a.n, b.v FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY ROLLUP (k) HAVING COUNT(*) > 0) AS a JOIN {r} AS b ON a.k = b.k"),
    case("having_of_a_cube", "", {"s": 5}, sash="SELECT k, g, SUM(v) AS t FROM {s} GROUP BY CUBE (k, g) HAVING GROUPING(k) = 1 AND SUM(v) > 5", duck="SELECT k, g, SUM(v) AS t FROM {s} GROUP BY CUBE (k, g) HAVING GROUPING(k) = 1 AND SUM(v) > 5"),
    case("rollup_of_rows", "", {"s": View("s", rows=4)}, sash="SELECT k, COUNT(*) AS n FROM {s} GROUP BY ROLLUP (k)", duck="SELECT k, COUNT(*) AS n FROM {s} GROUP BY ROLLUP (k) HAVING COUNT(*) > 0"),
    case("pivot", "", {"s": 5}, sash="SELECT * FROM (SELECT k, g, v FROM {s}) PIVOT (SUM(v) AS t FOR g IN ('a', 'b' AS b, NULL AS none))",
         duck="SELECT k, SUM(v) FILTER (WHERE g = 'a') AS a, SUM(v) FILTER (WHERE g = 'b') AS b, SUM(v) FILTER (WHERE g IS NULL) AS none FROM {s} GROUP BY k"),
    case("pivot_counts", "", {"s": 5}, sash="SELECT * FROM (SELECT g, k, v FROM {s}) PIVOT (COUNT(v) AS n, MAX(v) AS m FOR k IN (1 AS a, 2 AS b))",
         duck="SELECT g, NULLIF(COUNT(*) FILTER (WHERE k = 1), 0) - COUNT(*) FILTER (WHERE k = 1 AND v IS NULL) AS a_n, MAX(v) FILTER (WHERE k = 1) AS a_m, NULLIF(COUNT(*) FILTER (WHERE k = 2), 0) - COUNT(*) FILTER (WHERE k = 2 AND v IS NULL) AS b_n, MAX(v) FILTER (WHERE k = 2) AS b_m FROM {s} GROUP BY g"),
    case("pivot_of_everything", "", {"s": 5}, empties=False, sash="SELECT * FROM (SELECT k, v FROM {s}) PIVOT (SUM(v) FOR k IN (1 AS a, 2 AS b))",
         duck="SELECT SUM(v) FILTER (WHERE k = 1) AS a, SUM(v) FILTER (WHERE k = 2) AS b FROM {s}"),
    case("unpivot", "", {"s": 5}, sash="SELECT * FROM (SELECT g, k, v FROM {s}) UNPIVOT (x FOR what IN (k, v))",
         duck="SELECT g, 'k' AS what, k AS x FROM {s} WHERE k IS NOT NULL UNION ALL SELECT g, 'v', v FROM {s} WHERE v IS NOT NULL"),
    case("unpivot_counted", "", {"s": 5}, sash="SELECT what, y, COUNT(*) AS n FROM {s} UNPIVOT INCLUDE NULLS (y FOR what IN (k AS a, v AS b)) GROUP BY what, y",
         duck="SELECT what, y, COUNT(*) AS n FROM (SELECT 'a' AS what, k AS y FROM {s} UNION ALL SELECT 'b', v FROM {s}) AS u GROUP BY what, y"),
    case("unpivot_of_groups", "", {"s": 5}, sash="SELECT * FROM (SELECT k, MIN(v) AS low, MAX(v) AS high FROM {s} GROUP BY k) UNPIVOT (x FOR what IN (low, high))",
         duck="SELECT k, 'low' AS what, MIN(v) AS x FROM {s} GROUP BY k HAVING MIN(v) IS NOT NULL UNION ALL SELECT k, 'high', MAX(v) FROM {s} GROUP BY k HAVING MAX(v) IS NOT NULL"),
    case("values_lookup", f"SELECT s.v, t.name FROM {{s}} AS s JOIN {_VALUES} ON s.k = t.k", {"s": 5}),
    case("values_outer", f"SELECT t.name, s.v FROM {_VALUES} LEFT JOIN {{s}} AS s ON s.k = t.k", {"s": 5}, empties=False),
    case("values_full", f"SELECT t.name, s.v FROM {_VALUES} FULL JOIN {{s}} AS s ON s.k = t.k", {"s": 5}, empties=False),
    case("values_cross", "SELECT s.k, t.a FROM {s} AS s CROSS JOIN (VALUES (1), (2)) AS t(a)", {"s": 5}),
    case("values_union", "SELECT k FROM {s} UNION ALL SELECT * FROM (VALUES (1), (7)) AS t(k)", {"s": 5}, empties=False),
    case("values_distinct", "SELECT k FROM {s} UNION SELECT * FROM (VALUES (1), (7)) AS t(k)", {"s": 5}, empties=False),
    case("values_counted", "SELECT v FROM {s} UNION ALL SELECT COUNT(*) FROM (VALUES (1), (1)) AS t(a)", {"s": 5}, empties=False),
    case("values_crossed", "SELECT n, m FROM (SELECT COUNT(*) AS n FROM {s}) AS a CROSS JOIN (SELECT MAX(a) AS m FROM (VALUES (1), (4)) AS t(a)) AS b", {"s": 5}, empties=False),
    case("values_except", "SELECT * FROM (VALUES (1), (2), (7)) AS t(k) EXCEPT SELECT k FROM {s}", {"s": 5}, empties=False),
    case("values_intersect", "SELECT k FROM {s} INTERSECT ALL SELECT * FROM (VALUES (1), (1), (2)) AS t(k)", {"s": 5}, empties=False),
    case("values_grouped", f"SELECT t.name, COUNT(s.v) AS n FROM {_VALUES} LEFT JOIN {{s}} AS s ON s.k = t.k GROUP BY t.name", {"s": 5}, empties=False),
    case("no_from_union", "SELECT k FROM {s} UNION ALL SELECT 7", {"s": 5}, empties=False),
    case("no_from_cte", "WITH c AS (SELECT 2 AS least) SELECT s.k FROM {s} AS s, c WHERE s.k >= c.least", {"s": 5}),
)  # fmt: skip
