"""Operators over operators: what no single state buffer can get right by itself."""

from __future__ import annotations

from tests.oracle.case import case, table
from tests.oracle.duck import View

ITEMS = table("k name", (1, "one"), (2, "two"), (3, "three"))

CASES = (
    case(
        "distinct_over_join",
        "SELECT DISTINCT a.g AS g, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        {"s": 5, "r": 4},
    ),
    case(
        "join_over_distinct",
        "SELECT a.k AS k, b.v AS v FROM (SELECT DISTINCT k FROM {s}) AS a JOIN (SELECT DISTINCT k, v FROM {r}) AS b "
        "ON a.k = b.k",
        {"s": 5, "r": 4},
    ),
    case(
        "group_over_join",
        "SELECT a.g AS g, COUNT(*) AS n, SUM(b.x) AS t FROM {s} AS a JOIN {r} AS b ON a.k = b.k GROUP BY a.g",
        {"s": 5, "r": 6},
    ),
    case(
        "global_over_join",
        "SELECT COUNT(*) AS n, MAX(b.v) AS m FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        {"s": 5, "r": 6},
    ),
    case(
        "aggregate_over_aggregate",
        "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS t GROUP BY n",
        {"s": 5},
    ),
    case(
        "global_over_group",
        "SELECT MAX(n) AS m, AVG(n) AS a FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS t",
        {"s": 5},
    ),
    case(
        "group_over_global",
        "SELECT n, COUNT(*) AS m FROM (SELECT COUNT(*) AS n FROM {s}) AS t GROUP BY n",
        {"s": 5},
        empties=False,
    ),
    case("distinct_over_group", "SELECT DISTINCT n FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS t", {"s": 5}),
    case(
        "filter_over_group", "SELECT k, n FROM (SELECT k, SUM(v) AS n FROM {s} GROUP BY k) AS t WHERE n > 7", {"s": 5}
    ),
    case(
        "except_then_group",
        "SELECT k, COUNT(*) AS n FROM (SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) AS t GROUP BY k",
        {"s": 6, "r": 3},
    ),
    case(
        "except_then_max",
        "SELECT g, MAX(v) AS m FROM (SELECT g, v FROM {s} EXCEPT SELECT g, v FROM {r}) AS t GROUP BY g",
        {"s": 6, "r": 3},
    ),
    case(
        "except_of_groups",
        "SELECT k, COUNT(*) AS n FROM {s} GROUP BY k EXCEPT SELECT k, COUNT(*) AS n FROM {r} GROUP BY k",
        {"s": 5, "r": 5},
    ),
    case(
        "union_of_groups",
        "SELECT k, SUM(v) AS n FROM {s} GROUP BY k UNION ALL SELECT k, COUNT(*) AS n FROM {r} GROUP BY k",
        {"s": 5, "r": 5},
    ),
    case(
        "group_over_union",
        "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM (SELECT k, v FROM {s} UNION ALL SELECT k, v FROM {r}) AS t GROUP BY k",
        {"s": 5, "r": 3},
    ),
    case(
        "distinct_over_union",
        "SELECT DISTINCT g FROM (SELECT g FROM {s} UNION ALL SELECT g FROM {r}) AS t",
        {"s": 3, "r": 7},
    ),
    case(
        "join_of_aggregates",
        "SELECT a.k AS k, a.n AS n, b.t AS t FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS a "
        "JOIN (SELECT k, SUM(v) AS t FROM {r} GROUP BY k) AS b ON a.k = b.k",
        {"s": 5, "r": 6},
    ),
    case(
        "join_on_aggregate",
        "SELECT a.k AS k, b.ts AS ts FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS a JOIN {r} AS b ON a.n = b.k",
        {"s": 5, "r": 6},
    ),
    case(
        "full_join_of_aggregates",
        "SELECT a.k AS k, a.n AS n, b.k AS l, b.n AS m FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS a "
        "FULL JOIN (SELECT k, COUNT(*) AS n FROM {r} GROUP BY k) AS b ON a.k = b.k",
        {"s": 5, "r": 4},
    ),
    case(
        "rows_above_average",
        "SELECT a.ts AS ts, a.v AS v FROM {s} AS a CROSS JOIN (SELECT AVG(v) AS m FROM {s}) AS b WHERE a.v > b.m",
        {"s": 5},
        empties=False,
    ),
    case(
        "rows_of_the_maximum",
        "SELECT a.ts AS ts, a.v AS v FROM {s} AS a JOIN (SELECT k, MAX(v) AS m FROM {s} GROUP BY k) AS b "
        "ON a.k = b.k AND a.v = b.m",
        {"s": 5},
    ),
    case(
        "top_over_group",
        "",
        {"s": 5},
        sash="SELECT k, SUM(v) AS t FROM {s} GROUP BY k ORDER BY t DESC LIMIT 2",
        duck="SELECT k, SUM(v) AS t FROM {s} GROUP BY k ORDER BY t DESC NULLS LAST, k ASC NULLS FIRST LIMIT 2",
    ),
    case(
        "top_over_join",
        "",
        {"s": 5, "r": 4},
        sash="SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k = b.k ORDER BY v DESC, w LIMIT 3",
        duck="SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k = b.k "
        "ORDER BY a.v DESC NULLS LAST, b.v ASC NULLS FIRST LIMIT 3",
    ),
    case(
        "group_over_top",
        "",
        {"s": 5},
        sash="SELECT SUM(v) AS t FROM (SELECT v, k FROM {s} ORDER BY v DESC LIMIT 3) AS a",
        duck="SELECT SUM(v) AS t FROM (SELECT v, k FROM {s} ORDER BY v DESC NULLS LAST, k ASC NULLS FIRST LIMIT 3) AS a",
    ),
    case(
        "anti_over_distinct",
        "",
        {"s": 5, "r": 3},
        sash="SELECT a.k AS k, a.g AS g FROM (SELECT DISTINCT k, g FROM {s}) AS a LEFT ANTI JOIN {r} AS b ON a.k = b.k",
        duck="SELECT a.k AS k, a.g AS g FROM (SELECT DISTINCT k, g FROM {s}) AS a ANTI JOIN {r} AS b ON a.k = b.k",
    ),
    case(
        "anti_of_aggregate",
        "",
        {"s": 5, "r": 5},
        sash="SELECT a.ts, a.v FROM {s} AS a LEFT ANTI JOIN (SELECT k, COUNT(*) AS n FROM {r} GROUP BY k) AS b "
        "ON a.k = b.k AND b.n > 1",
        duck="SELECT a.ts, a.v FROM {s} AS a ANTI JOIN (SELECT k, COUNT(*) AS n FROM {r} GROUP BY k) AS b "
        "ON a.k = b.k AND b.n > 1",
    ),
    case(
        "group_over_anti",
        "",
        {"s": 6, "r": 2},
        sash="SELECT a.g AS g, COUNT(*) AS n FROM {s} AS a LEFT ANTI JOIN {r} AS b ON a.k = b.k GROUP BY a.g",
        duck="SELECT a.g AS g, COUNT(*) AS n FROM {s} AS a ANTI JOIN {r} AS b ON a.k = b.k GROUP BY a.g",
    ),
    case(
        "join_over_anti",
        "",
        {"s": 6, "r": 2, "q": 4},
        sash="SELECT t.g AS g, t.v AS v, c.v AS w FROM (SELECT a.k, a.g, a.v FROM {s} AS a LEFT ANTI JOIN {r} AS b "
        "ON a.k = b.k) AS t JOIN {q} AS c ON t.k = c.k",
        duck="SELECT t.g AS g, t.v AS v, c.v AS w FROM (SELECT a.k, a.g, a.v FROM {s} AS a ANTI JOIN {r} AS b "
        "ON a.k = b.k) AS t JOIN {q} AS c ON t.k = c.k",
    ),
    case(
        "join_of_anti_and_semi",
        "",
        {"s": 6, "r": 2, "q": 3},
        sash="SELECT t.v AS v, u.v AS w FROM (SELECT a.k, a.v FROM {s} AS a LEFT ANTI JOIN {r} AS b ON a.k = b.k "
        "WHERE a.v > 1) AS t JOIN (SELECT a.k, a.v FROM {q} AS a LEFT SEMI JOIN {s} AS b ON a.k = b.k) AS u "
        "ON t.k = u.k",
        duck="SELECT t.v AS v, u.v AS w FROM (SELECT a.k, a.v FROM {s} AS a ANTI JOIN {r} AS b ON a.k = b.k "
        "WHERE a.v > 1) AS t JOIN (SELECT a.k, a.v FROM {q} AS a SEMI JOIN {s} AS b ON a.k = b.k) AS u "
        "ON t.k = u.k",
    ),
    case(
        "anti_over_anti",
        "",
        {"s": 6, "r": 2, "q": 3},
        sash="SELECT t.g AS g FROM (SELECT a.k, a.g FROM {s} AS a LEFT ANTI JOIN {r} AS b ON a.k = b.k) AS t "
        "LEFT ANTI JOIN {q} AS c ON t.k = c.k",
        duck="SELECT t.g AS g FROM (SELECT a.k, a.g FROM {s} AS a ANTI JOIN {r} AS b ON a.k = b.k) AS t "
        "ANTI JOIN {q} AS c ON t.k = c.k",
    ),
    case(
        "join_over_left_join",
        "SELECT t.v AS v, t.w AS w, c.x AS x FROM (SELECT a.k, a.v, b.v AS w FROM {s} AS a LEFT JOIN {r} AS b "
        "ON a.k = b.k) AS t JOIN {q} AS c ON t.k = c.k",
        {"s": 5, "r": 3, "q": 4},
    ),
    case(
        "semi_over_join",
        "",
        {"s": 5, "r": 5, "q": 4},
        sash="SELECT t.v AS v, t.w AS w FROM (SELECT a.k AS k, a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b "
        "ON a.k = b.k) AS t LEFT SEMI JOIN {q} AS c ON t.k = c.k",
        duck="SELECT t.v AS v, t.w AS w FROM (SELECT a.k AS k, a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b "
        "ON a.k = b.k) AS t SEMI JOIN {q} AS c ON t.k = c.k",
    ),
    case(
        "group_over_left_join",
        "SELECT a.k AS k, COUNT(b.ts) AS n, COUNT(*) AS m FROM {s} AS a LEFT JOIN {r} AS b ON a.k = b.k GROUP BY a.k",
        {"s": 5, "r": 3},
    ),
    case(
        "left_join_of_left_join",
        "SELECT a.ts AS ts, b.v AS v, c.v AS w FROM {s} AS a LEFT JOIN {r} AS b ON a.k = b.k "
        "LEFT JOIN {q} AS c ON b.k = c.k",
        {"s": 4, "r": 3, "q": 3},
    ),
    case(
        "join_over_except_all_of_lengths",
        "SELECT t.k AS k, t.g AS g, c.v AS v FROM (SELECT k, g FROM {s} UNION ALL SELECT k, g FROM {s2} EXCEPT ALL "
        "SELECT k, g FROM {r}) AS t JOIN {q} AS c ON t.k = c.k",
        {"s": 9, "s2": View("s", 2), "r": 3, "q": 6},
    ),
    case(
        "join_of_except_alls",
        "SELECT t.k AS k, u.g AS g FROM (SELECT k, g FROM {s} EXCEPT ALL SELECT k, g FROM {r}) AS t "
        "JOIN (SELECT k, g FROM {q} WHERE v > 0 EXCEPT ALL SELECT k, g FROM {s}) AS u ON t.k = u.k",
        {"s": 6, "r": 3, "q": 9},
    ),
    case(
        "anti_over_except_all",
        "",
        {"s": 7, "r": 2, "q": 3},
        sash="SELECT t.k AS k FROM (SELECT k FROM {s} EXCEPT ALL SELECT DISTINCT k FROM {r}) AS t LEFT ANTI JOIN {q} AS c "
        "ON t.k = c.k",
        duck="SELECT t.k AS k FROM (SELECT k FROM {s} EXCEPT ALL SELECT DISTINCT k FROM {r}) AS t ANTI JOIN {q} AS c "
        "ON t.k = c.k",
    ),
    case(
        "join_over_except",
        "SELECT t.k AS k, c.v AS v FROM (SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) AS t JOIN {q} AS c "
        "ON t.k = c.k",
        {"s": 6, "r": 3, "q": 9},
    ),
    case(
        "distinct_over_except_all",
        "SELECT DISTINCT g FROM (SELECT k, g FROM {s} EXCEPT ALL SELECT k, g FROM {r}) AS t",
        {"s": 6, "r": 3},
    ),
    case(
        "intersect_of_distincts",
        "SELECT DISTINCT k FROM {s} INTERSECT ALL SELECT DISTINCT k FROM {r}",
        {"s": 5, "r": 6},
    ),
    case(
        "with",
        "WITH t AS (SELECT k, SUM(v) AS n FROM {s} GROUP BY k) SELECT k, n + 1 AS m FROM t WHERE n > 4",
        {"s": 5},
    ),
    case(
        "with_used_twice",
        "WITH t AS (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) "
        "SELECT a.k AS k, b.k AS l FROM t AS a JOIN t AS b ON a.n = b.n AND a.k < b.k",
        {"s": 5},
    ),
    case(
        "with_two",
        "WITH a AS (SELECT DISTINCT k FROM {s}), b AS (SELECT k, v FROM {r} WHERE v > 3) "
        "SELECT b.k AS k, b.v AS v FROM a JOIN b ON a.k = b.k",
        {"s": 5, "r": 6},
    ),
    case(
        "subqueries_three_deep",
        "SELECT m, COUNT(*) AS c FROM (SELECT n AS m FROM (SELECT g, COUNT(DISTINCT k) AS n FROM "
        "(SELECT DISTINCT k, g FROM {s} WHERE v IS NOT NULL) AS t GROUP BY g) AS u) AS w GROUP BY m",
        {"s": 5},
    ),
    case(
        "relation_amid_the_chain",
        "SELECT i.name AS name, COUNT(*) AS n FROM (SELECT DISTINCT k, g FROM {s}) AS t JOIN items AS i ON t.k = i.k "
        "GROUP BY i.name HAVING COUNT(*) > 1",
        {"s": 5},
        relations={"items": ITEMS},
    ),
    case(
        "different_windows_of_one_stream",
        "SELECT a.k AS k, a.n AS now, b.n AS before FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS a "
        "JOIN (SELECT k, COUNT(*) AS n FROM {s20} GROUP BY k) AS b ON a.k = b.k",
        {"s": 3, "s20": View("s", 20)},
    ),
    case("except_of_old_and_new", "SELECT k FROM {s20} EXCEPT SELECT k FROM {s}", {"s": 4, "s20": View("s", 20)}),
)
