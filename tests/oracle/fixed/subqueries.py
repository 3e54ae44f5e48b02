"""Subqueries in expressions: IN, EXISTS, scalar subqueries, ANY and ALL, correlated and not."""

from __future__ import annotations

from tests.oracle.case import case

_SIDES = {"s": 5, "r": 4}
_ALL = {"s": 5, "r": 4, "q": 6}

_COMPARED = {
    "above_average": "v > (SELECT AVG(v) FROM {r} AS b)",
    "from_least": "v >= (SELECT MIN(v) FROM {r} AS b WHERE b.k = 2)",
    "below_greatest": "(SELECT MAX(v) FROM {r} AS b) > v",
    "up_to_only": "v <= (SELECT v FROM {r} AS b WHERE b.ts = 13)",
    "not_greatest": "x <> (SELECT MAX(x) FROM {r} AS b WHERE b.k < 3)",
    "not_up_to": "NOT v <= (SELECT MIN(v) FROM {r} AS b)",
    "equal": "g = (SELECT MAX(g) FROM {r} AS b)",
    "texts": "g >= (SELECT MIN(g) FROM {r} AS b) AND g < (SELECT MAX(g) FROM {s} AS b)",
    "between": "v BETWEEN (SELECT MIN(v) FROM {r} AS b) AND (SELECT AVG(v) FROM {s} AS b)",
    "expressions": "v * 2 > 1.5 * (SELECT AVG(v) FROM {r} AS b) - 1 AND k IS NOT NULL",
    "constant_side": "3 < (SELECT COUNT(*) FROM {r} AS b)",
    "may_fail": "v > (SELECT MAX(v) FROM {r} AS b) - 3",
    "fixed": "v > (SELECT AVG(y) FROM (VALUES (1), (6)) AS t(y))",
}
"""Conditions that compare a value with a scalar."""

CASES = (
    *(
        case(f"compared_{name}", f"SELECT ts, k, g, v, x FROM {{s}} AS a WHERE {condition}", _SIDES, empties=False)
        for name, condition in _COMPARED.items()
    ),
    case(
        "compared_groups",
        "SELECT k, SUM(v) AS t FROM {s} AS a GROUP BY k HAVING SUM(v) > (SELECT AVG(v) FROM {r} AS b)",
        _SIDES,
        empties=False,
    ),
    case(
        "compared_joined",
        "SELECT COUNT(*) AS n FROM {s} AS a JOIN {q} AS c ON a.k = c.k WHERE a.v < (SELECT MAX(v) FROM {r} AS b)",
        _ALL,
        empties=False,
    ),
    case("exists", "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT 1 FROM {r} AS b WHERE b.v > 6)", _SIDES),
    case("not_exists", "SELECT ts, v FROM {s} AS a WHERE NOT EXISTS (SELECT 1 FROM {r} AS b WHERE b.v > 6)", _SIDES),
    case("exists_equal", "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT * FROM {r} AS b WHERE b.k = a.k)", _SIDES),
    case(
        "not_exists_equal",
        "SELECT ts, k, v FROM {s} AS a WHERE NOT EXISTS (SELECT * FROM {r} AS b WHERE b.k = a.k AND b.v > 2)",
        _SIDES,
    ),
    case("exists_unequal", "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT * FROM {r} AS b WHERE b.v < a.v)", _SIDES),
    case(
        "exists_two_conditions",
        "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT * FROM {r} AS b WHERE b.k = a.k AND b.v <= a.v) AND a.v > 3",
        _SIDES,
    ),
    case(
        "exists_limit",
        "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT * FROM {r} AS b WHERE b.k = a.k LIMIT 1)",
        _SIDES,
    ),
    case(
        "exists_join_inside",
        "SELECT ts, v FROM {s} AS a WHERE EXISTS "
        "(SELECT 1 FROM {r} AS b JOIN {q} AS c ON b.k = c.k WHERE b.k = a.k AND c.v <> a.v)",
        _ALL,
    ),
    case(
        "exists_nested",
        "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT 1 FROM {r} AS b WHERE b.k = a.k AND "
        "EXISTS (SELECT 1 FROM {q} AS c WHERE c.k = b.k AND c.g = a.g))",
        _ALL,
    ),
    case(
        "exists_nested_not",
        "SELECT ts, v FROM {s} AS a WHERE EXISTS (SELECT 1 FROM {r} AS b WHERE b.k = a.k AND "
        "NOT EXISTS (SELECT 1 FROM {q} AS c WHERE c.k = b.k AND c.v > a.v))",
        _ALL,
    ),
    case("in", "SELECT ts, k, v FROM {s} AS a WHERE k IN (SELECT k FROM {r} AS b)", _SIDES),
    case("in_expression", "SELECT ts, k FROM {s} AS a WHERE v + 1 IN (SELECT v FROM {r} AS b WHERE b.k < 3)", _SIDES),
    case("in_correlated", "SELECT ts, v FROM {s} AS a WHERE v IN (SELECT v FROM {r} AS b WHERE b.k = a.k)", _SIDES),
    case("in_two_columns", "SELECT ts, k, g FROM {s} AS a WHERE (k, g) IN (SELECT k, g FROM {r} AS b)", _SIDES),
    case("in_grouped", "SELECT ts, v FROM {s} AS a WHERE v IN (SELECT MAX(v) FROM {r} AS b GROUP BY g)", _SIDES),
    case(
        "in_grouped_correlated",
        "SELECT ts, v FROM {s} AS a WHERE v IN (SELECT MAX(v) FROM {r} AS b WHERE b.k = a.k GROUP BY g)",
        _SIDES,
    ),
    case(
        "in_union",
        "SELECT ts, v FROM {s} AS a WHERE v IN (SELECT v FROM {r} AS b UNION ALL SELECT v + 1 FROM {q} AS c)",
        _ALL,
    ),
    case(
        "in_union_correlated",
        "SELECT ts, v FROM {s} AS a WHERE v IN "
        "(SELECT v FROM {r} AS b WHERE b.k = a.k UNION SELECT v + 1 FROM {q} AS c WHERE c.k = a.k)",
        _ALL,
    ),
    case(
        "in_except_correlated",
        "SELECT ts, v FROM {s} AS a WHERE v IN "
        "(SELECT v FROM {r} AS b WHERE b.k = a.k EXCEPT SELECT v FROM {q} AS c WHERE c.g = a.g)",
        _ALL,
    ),
    case("in_self", "SELECT ts, v FROM {s} AS a WHERE v IN (SELECT v FROM {s} AS b WHERE b.ts < a.ts)", {"s": 5}),
    case("not_in", "SELECT ts, k FROM {s} AS a WHERE k NOT IN (SELECT k FROM {r} AS b)", _SIDES),
    case(
        "not_in_known",
        "SELECT ts, k FROM {s} AS a WHERE k NOT IN (SELECT k FROM {r} AS b WHERE b.k IS NOT NULL)",
        _SIDES,
    ),
    case("not_in_empty", "SELECT ts, k FROM {s} AS a WHERE k NOT IN (SELECT k FROM {r} AS b WHERE v > 100)", _SIDES),
    case(
        "not_in_correlated",
        "SELECT ts, k, v FROM {s} AS a WHERE v NOT IN (SELECT v FROM {r} AS b WHERE b.k = a.k)",
        _SIDES,
    ),
    case(
        "not_in_unequal",
        "SELECT ts, k, v FROM {s} AS a WHERE v NOT IN (SELECT v FROM {r} AS b WHERE b.k < a.k)",
        _SIDES,
    ),
    case(
        "not_in_two_columns",
        "SELECT ts, k, g FROM {s} AS a WHERE (k, v) NOT IN (SELECT k, v FROM {r} AS b)",
        _SIDES,
        duck="SELECT ts, k, g FROM {s} AS a WHERE NOT EXISTS (SELECT 1 FROM {r} AS b WHERE "
        "(a.k = b.k OR a.k IS NULL OR b.k IS NULL) AND (a.v = b.v OR a.v IS NULL OR b.v IS NULL))",
    ),
    case("scalar_where", "SELECT ts, v FROM {s} AS a WHERE v > (SELECT AVG(v) FROM {r} AS b)", _SIDES, empties=False),
    case("scalar_select", "SELECT ts, v - (SELECT MIN(v) FROM {r} AS b) AS d FROM {s} AS a", _SIDES, empties=False),
    case(
        "scalar_limit",
        "SELECT ts, (SELECT v FROM {r} AS b ORDER BY v DESC, ts LIMIT 1) AS w FROM {s} AS a",
        _SIDES,
        duck="SELECT ts, (SELECT v FROM {r} AS b ORDER BY v DESC NULLS LAST, ts LIMIT 1) AS w FROM {s} AS a",
        empties=False,
    ),
    case(
        "scalar_correlated",
        "SELECT ts, v, (SELECT SUM(v) FROM {r} AS b WHERE b.k = a.k) AS w FROM {s} AS a",
        _SIDES,
    ),
    case(
        "scalar_count",
        "SELECT ts, k, (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "scalar_count_expression",
        "SELECT ts, (SELECT COUNT(*) + a.v + COALESCE(MAX(b.v), 100) FROM {r} AS b WHERE b.k = a.k) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "scalar_count_unequal",
        "SELECT ts, (SELECT COUNT(*) FROM {r} AS b WHERE b.v < a.v) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "scalar_count_outer_condition",
        "SELECT ts, (SELECT COUNT(*) FROM {r} AS b WHERE a.v > 4) AS n FROM {s} AS a",
        _SIDES,
        empties=False,
    ),
    case(
        "scalar_having",
        "SELECT ts, (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k HAVING COUNT(*) < 2) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "scalar_where_correlated",
        "SELECT ts, v FROM {s} AS a WHERE v >= (SELECT MAX(v) FROM {r} AS b WHERE b.g = a.g)",
        _SIDES,
    ),
    case(
        "scalar_distinct",
        "SELECT ts, (SELECT DISTINCT b.k FROM {r} AS b WHERE b.k = a.k) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "scalar_nested",
        "SELECT ts, (SELECT MAX(v) FROM {r} AS b WHERE b.k = a.k AND b.v < (SELECT MAX(v) FROM {q} AS c)) AS n FROM {s} AS a",
        _ALL,
        empties=False,
    ),
    case(
        "scalar_below_aggregate",
        "SELECT k, SUM((SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k)) AS n FROM {s} AS a GROUP BY k",
        _SIDES,
    ),
    case(
        "scalar_grouped_by",
        "SELECT (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) AS n, COUNT(*) AS m FROM {s} AS a "
        "GROUP BY (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k)",
        _SIDES,
    ),
    case(
        "having_scalar",
        "SELECT k, COUNT(*) AS n FROM {s} AS a GROUP BY k HAVING COUNT(*) > (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k)",
        _SIDES,
    ),
    case(
        "having_in",
        "SELECT k, MAX(v) AS m FROM {s} AS a GROUP BY k HAVING MAX(v) IN (SELECT v FROM {r} AS b)",
        _SIDES,
    ),
    case(
        "having_exists",
        "SELECT k, MAX(v) AS m FROM {s} AS a GROUP BY k HAVING NOT EXISTS (SELECT v FROM {r} AS b WHERE b.k = a.k)",
        _SIDES,
    ),
    case(
        "select_above_aggregate",
        "SELECT k, COUNT(*) AS n, (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) AS m, "
        "k IN (SELECT k FROM {r} AS b) AS i FROM {s} AS a GROUP BY k",
        _SIDES,
        duck="SELECT k, COUNT(*) AS n, (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) AS m, COALESCE(k IN (SELECT k FROM {r} AS b), FALSE) AS i FROM {s} AS a GROUP BY k",
    ),
    case("exists_value", "SELECT ts, EXISTS (SELECT 1 FROM {r} AS b WHERE b.k = a.k) AS e FROM {s} AS a", _SIDES),
    case("exists_value_plain", "SELECT ts, EXISTS (SELECT 1 FROM {r} AS b WHERE v > 4) AS e FROM {s} AS a", _SIDES),
    case(
        "exists_value_unequal",
        "SELECT ts, NOT EXISTS (SELECT 1 FROM {r} AS b WHERE b.v > a.v) AS e FROM {s} AS a",
        _SIDES,
    ),
    case(
        "in_value",
        "SELECT ts, k IN (SELECT k FROM {r} AS b) AS i FROM {s} AS a",
        _SIDES,
        duck="SELECT ts, COALESCE(k IN (SELECT k FROM {r} AS b), FALSE) AS i FROM {s} AS a",
    ),
    case(
        "in_value_correlated",
        "SELECT ts, v IN (SELECT v FROM {r} AS b WHERE b.k = a.k) AS i FROM {s} AS a",
        _SIDES,
        duck="SELECT ts, COALESCE(v IN (SELECT v FROM {r} AS b WHERE b.k = a.k), FALSE) AS i FROM {s} AS a",
    ),
    case(
        "in_value_unequal",
        "SELECT ts, v NOT IN (SELECT v FROM {r} AS b WHERE b.k < a.k) AS i FROM {s} AS a",
        _SIDES,
        duck="SELECT ts, COALESCE(v NOT IN (SELECT v FROM {r} AS b WHERE b.k < a.k), FALSE) AS i FROM {s} AS a",
    ),
    case(
        "in_value_two_columns",
        "SELECT ts, (k, v) IN (SELECT k, v FROM {r} AS b) AS i FROM {s} AS a",
        _SIDES,
        duck="SELECT ts, CASE WHEN EXISTS (SELECT 1 FROM {r} AS b WHERE a.k = b.k AND a.v = b.v) THEN TRUE "
        "ELSE FALSE END AS i FROM {s} AS a",
    ),
    case(
        "not_in_value_two_columns",
        "SELECT ts, (k, v) NOT IN (SELECT k, v FROM {r} AS b) AS i FROM {s} AS a",
        _SIDES,
        duck="SELECT ts, NOT EXISTS (SELECT 1 FROM {r} AS b WHERE (a.k = b.k OR a.k IS NULL OR b.k IS NULL) "
        "AND (a.v = b.v OR a.v IS NULL OR b.v IS NULL)) AS i FROM {s} AS a",
    ),
    case(
        "under_or",
        "SELECT ts, v FROM {s} AS a WHERE v > 8 OR k IN (SELECT k FROM {r} AS b) OR EXISTS (SELECT 1 FROM {q} AS c WHERE c.g = a.g)",
        _ALL,
    ),
    case(
        "under_not",
        "SELECT ts, v FROM {s} AS a WHERE NOT (v > 8 OR v IN (SELECT v FROM {r} AS b WHERE b.k = a.k))",
        _SIDES,
    ),
    case(
        "under_case",
        "SELECT ts, CASE WHEN k IN (SELECT k FROM {r} AS b) THEN 1 WHEN v > (SELECT MAX(v) FROM {r} AS b) THEN 2 ELSE 3 END AS c "
        "FROM {s} AS a",
        _SIDES,
        empties=False,
    ),
    *(
        case(
            f"{word}_{name}{'_correlated' if where else ''}",
            f"SELECT ts, v, v {operator} {word.upper()} (SELECT v FROM {{r}} AS b{where}) AS c FROM {{s}} AS a",
            _SIDES,
            empties=bool(where),
        )
        for word in ("any", "all")
        for name, operator in (("eq", "="), ("ne", "<>"), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))
        for where in ("", " WHERE b.k = a.k")
    ),
    case(
        "null_correlation",
        "SELECT ts, (SELECT COUNT(*) FROM {r} AS b WHERE b.k IS NOT DISTINCT FROM a.k) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "exists_left_join_inside",
        "SELECT ts, v FROM {s} AS a WHERE EXISTS "
        "(SELECT 1 FROM {r} AS b LEFT JOIN {q} AS c ON b.k = c.k AND c.v > a.v WHERE c.k IS NULL AND b.g = a.g)",
        _ALL,
    ),
    case(
        "count_distinct_inside",
        "SELECT ts, (SELECT COUNT(*) FROM (SELECT DISTINCT b.v FROM {r} AS b WHERE b.k = a.k) AS d) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "distinct_of_outer",
        "SELECT ts, (SELECT COUNT(*) FROM (SELECT DISTINCT b.v + a.v AS w FROM {r} AS b WHERE b.k = a.k) AS d) AS n FROM {s} AS a",
        _SIDES,
    ),
    case(
        "lateral",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a, LATERAL (SELECT v AS w FROM {r} AS b WHERE b.k = a.k) AS b",
        _SIDES,
    ),
    case(
        "lateral_unequal",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a JOIN LATERAL (SELECT b.v + a.v AS w FROM {r} AS b WHERE b.v < a.v) AS b ON TRUE",
        _SIDES,
    ),
    case(
        "lateral_on",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a JOIN LATERAL (SELECT v AS w FROM {r} AS b WHERE b.k = a.k) AS b ON b.w > a.v",
        _SIDES,
        duck="SELECT a.ts AS ts, b.v AS w FROM {s} AS a JOIN {r} AS b ON b.k = a.k AND b.v > a.v",
    ),
    case(
        "lateral_left",
        "SELECT a.ts AS ts, b.w AS w, c AS c FROM {s} AS a LEFT JOIN LATERAL "
        "(SELECT b.v + a.v AS w, 1 AS c FROM {r} AS b WHERE b.k = a.k) AS b ON TRUE",
        _SIDES,
        duck="SELECT a.ts AS ts, b.v + a.v AS w, CASE WHEN b.k IS NOT NULL THEN 1 END AS c "
        "FROM {s} AS a LEFT JOIN {r} AS b ON b.k = a.k",
    ),
    case(
        "lateral_left_on",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a LEFT JOIN LATERAL "
        "(SELECT v AS w FROM {r} AS b WHERE b.k = a.k) AS b ON b.w >= a.v",
        _SIDES,
        duck="SELECT a.ts AS ts, b.v AS w FROM {s} AS a LEFT JOIN {r} AS b ON b.k = a.k AND b.v >= a.v",
    ),
    case(
        "lateral_aggregate",
        "SELECT a.ts AS ts, b.n AS n, b.m AS m FROM {s} AS a, LATERAL "
        "(SELECT COUNT(*) AS n, MAX(v) AS m FROM {r} AS b WHERE b.k = a.k) AS b WHERE b.n < 2",
        _SIDES,
    ),
    case(
        "lateral_aggregate_on",
        "SELECT a.ts AS ts, b.n AS n FROM {s} AS a LEFT JOIN LATERAL "
        "(SELECT COUNT(*) AS n FROM {r} AS b WHERE b.k = a.k) AS b ON b.n < 2",
        _SIDES,
        duck="SELECT ts, CASE WHEN n < 2 THEN n END AS n FROM "
        "(SELECT a.ts AS ts, (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) AS n FROM {s} AS a) AS t",
    ),
    case(
        "lateral_grouped",
        "SELECT a.ts AS ts, b.g AS g, b.n AS n FROM {s} AS a CROSS JOIN LATERAL "
        "(SELECT g, COUNT(*) AS n FROM {r} AS b WHERE b.v <= a.v GROUP BY g) AS b",
        _SIDES,
    ),
    case(
        "lateral_two",
        "SELECT a.ts AS ts, b.w AS w, c.u AS u FROM {s} AS a, LATERAL (SELECT v AS w FROM {r} AS b WHERE b.k = a.k) AS b, "
        "LATERAL (SELECT MAX(v) + b.w AS u FROM {q} AS c WHERE c.g = a.g) AS c",
        _ALL,
    ),
    case(
        "lateral_of_join",
        "SELECT a.ts AS ts, b.ts AS us, c.n AS n FROM {s} AS a JOIN {r} AS b ON a.k = b.k, "
        "LATERAL (SELECT COUNT(*) AS n FROM {q} AS c WHERE c.v > a.v AND c.g <> b.g) AS c",
        _ALL,
    ),
    case(
        "lateral_union",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a, LATERAL (SELECT v AS w FROM {r} AS b WHERE b.k = a.k "
        "UNION ALL SELECT c.v FROM {q} AS c WHERE c.v > a.v) AS b",
        _ALL,
    ),
    case(
        "on_exists",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a JOIN {r} AS b "
        "ON a.k = b.k AND EXISTS (SELECT 1 FROM {q} AS c WHERE c.v = b.v OR c.v = a.v)",
        _ALL,
    ),
    case(
        "left_on_in_right",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a LEFT JOIN {r} AS b ON a.k = b.k AND b.v IN (SELECT v FROM {q} AS c)",
        _ALL,
        duck="SELECT a.ts AS ts, b.ts AS us FROM {s} AS a LEFT JOIN (SELECT * FROM {r} WHERE v IN (SELECT v FROM {q})) AS b "
        "ON a.k = b.k",
    ),
    case(
        "left_on_in_left",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a LEFT JOIN {r} AS b "
        "ON a.k = b.k AND a.v NOT IN (SELECT v FROM {q} AS c WHERE c.g = a.g)",
        _ALL,
        duck="SELECT a.ts AS ts, b.ts AS us FROM (SELECT *, v NOT IN (SELECT v FROM {q} AS c WHERE c.g = a.g) AS i FROM {s} AS a) "
        "AS a LEFT JOIN {r} AS b ON a.k = b.k AND a.i",
    ),
    case(
        "full_on_exists",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a FULL JOIN {r} AS b "
        "ON a.k = b.k AND EXISTS (SELECT 1 FROM {q} AS c WHERE c.k = a.k) AND EXISTS (SELECT 1 FROM {q} AS c WHERE c.v = b.v)",
        _ALL,
        duck="SELECT a.ts AS ts, b.ts AS us FROM (SELECT *, EXISTS (SELECT 1 FROM {q} AS c WHERE c.k = a.k) AS i FROM {s} AS a) "
        "AS a FULL JOIN (SELECT *, EXISTS (SELECT 1 FROM {q} AS c WHERE c.v = b.v) AS i FROM {r} AS b) AS b "
        "ON a.k = b.k AND a.i AND b.i",
    ),
    case(
        "having_outer_aggregate",
        "SELECT k, COUNT(*) AS n FROM {s} AS a GROUP BY k HAVING EXISTS (SELECT 1 FROM {r} AS b WHERE b.v < MAX(a.v))",
        _SIDES,
        duck="SELECT k, n FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM {s} AS a GROUP BY k) AS a "
        "WHERE EXISTS (SELECT 1 FROM {r} AS b WHERE b.v < m)",
    ),
    case(
        "lateral_top",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a, LATERAL "
        "(SELECT v AS w FROM {r} AS b WHERE b.k = a.k ORDER BY v DESC LIMIT 1) AS b",
        _SIDES,
        duck="SELECT a.ts AS ts, b.w AS w FROM {s} AS a, LATERAL "
        "(SELECT v AS w FROM {r} AS b WHERE b.k = a.k ORDER BY v DESC NULLS LAST LIMIT 1) AS b",
    ),
    case(
        "lateral_top_unequal",
        "SELECT a.ts AS ts, b.w AS w FROM {s} AS a LEFT JOIN LATERAL "
        "(SELECT v AS w FROM {r} AS b WHERE b.v <= a.v ORDER BY v LIMIT 2 OFFSET 1) AS b ON TRUE",
        _SIDES,
    ),
    case(
        "scalar_top",
        "SELECT ts, (SELECT v FROM {r} AS b WHERE b.k = a.k ORDER BY ts DESC, v LIMIT 1) AS w FROM {s} AS a",
        _SIDES,
    ),
    case(
        "in_top",
        "SELECT ts, v FROM {s} AS a WHERE v IN (SELECT v FROM {r} AS b WHERE b.g = a.g ORDER BY ts, v LIMIT 2)",
        _SIDES,
        duck="SELECT ts, v FROM {s} AS a WHERE v IN "
        "(SELECT v FROM {r} AS b WHERE b.g = a.g ORDER BY ts, v NULLS FIRST LIMIT 2)",
    ),
    case(
        "lateral_rank",
        "SELECT a.ts AS ts, b.v AS v, b.n AS n FROM {s} AS a, LATERAL "
        "(SELECT v, RANK() OVER (PARTITION BY g ORDER BY v) AS n FROM {r} AS b WHERE b.k = a.k) AS b",
        _SIDES,
        duck="SELECT a.ts AS ts, b.v AS v, b.n AS n FROM {s} AS a, LATERAL "
        "(SELECT v, RANK() OVER (PARTITION BY g ORDER BY v NULLS FIRST) AS n FROM {r} AS b WHERE b.k = a.k) AS b",
    ),
    case(
        "in_of_scalar",
        "SELECT ts, v FROM {s} AS a WHERE (SELECT MAX(v) FROM {r} AS b WHERE b.k = a.k) IN (SELECT v FROM {q} AS c)",
        _ALL,
    ),
    case(
        "order_by_scalar",
        "SELECT ts, v FROM {s} AS a ORDER BY (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) DESC, ts, v LIMIT 2",
        _SIDES,
        duck="SELECT ts, v FROM {s} AS a "
        "ORDER BY (SELECT COUNT(*) FROM {r} AS b WHERE b.k = a.k) DESC, ts, v NULLS FIRST LIMIT 2",
    ),
)
