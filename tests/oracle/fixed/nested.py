"""Arrays and structs: carried, selected from, compared, grouped by, joined on and ordered by."""

from __future__ import annotations

from tests.oracle.case import Case, case

_KEYS = {"s": 5, "r": 5}


def _both(name: str, text: str, views: dict[str, int] | None = None) -> Case:
    """A case whose arrays and structs are written array(...) and struct(...) in Sash, [...] and row(...) in DuckDB."""
    duck = text
    for spark, other in (
        ("array(k, v)", "[k, v]"),
        ("array(v, k)", "[v, k]"),
        ("array(g)", "[g]"),
        ("array(array(k), array(v))", "[[k], [v]]"),
        ("struct(k, g)", "{{'k': k, 'g': g}}"),
        ("struct(g, array(k, v) AS a)", "{{'g': g, 'a': [k, v]}}"),
        ("struct(g, [k, v] AS a)", "{{'g': g, 'a': [k, v]}}"),
        ("map(ts, v)", "MAP {{ts: v}}"),
    ):
        duck = duck.replace(spark, other)
    return case(f"nested_{name}", "", views or _KEYS, sash=text, duck=duck)


CASES = (
    case(
        "lambda_in_distinct",
        "",
        {"s": 5},
        sash="SELECT DISTINCT transform(array(k, v), x -> coalesce(x, 0) + 1) AS a FROM {s}",
        duck="SELECT DISTINCT [coalesce(k, 0) + 1, coalesce(v, 0) + 1] AS a FROM {s}",
    ),
    case(
        "lambda_above_join",
        "",
        _KEYS,
        sash="SELECT a.k, filter(array(a.v, b.v), (x, i) -> x > i AND x <> a.k) AS kept FROM {s} AS a JOIN {r} AS b ON a.k = b.k",
        duck=(
            "SELECT a.k, list_concat(CASE WHEN a.v > 0 AND a.v <> a.k THEN [a.v] ELSE [] END, "
            "CASE WHEN b.v > 1 AND b.v <> a.k THEN [b.v] ELSE [] END) AS kept FROM {s} AS a JOIN {r} AS b ON a.k = b.k"
        ),
    ),
    case(
        "lateral_function_with_condition",
        "",
        {"s": 5},
        sash="SELECT g, e.c FROM {s} AS a LEFT JOIN LATERAL explode(array(a.k, a.v)) e(c) ON e.c > 3",
        duck="SELECT g, e.c FROM {s} AS a LEFT JOIN LATERAL (SELECT unnest([a.k, a.v]) AS c) e ON e.c > 3",
    ),
    _both("carried", "SELECT array(k, v) AS a, struct(k, g) AS b FROM {s}", {"s": 5}),
    _both("deep", "SELECT struct(g, array(k, v) AS a) AS d, array(array(k), array(v)) AS e FROM {s}", {"s": 5}),
    _both("distinct", "SELECT DISTINCT array(k, v) AS a, struct(g, array(k, v) AS a) AS b FROM {s}", {"s": 5}),
    _both("group_by_array", "SELECT array(k, v) AS a, COUNT(*) AS n FROM {s} GROUP BY array(k, v)", {"s": 5}),
    _both("group_by_struct", "SELECT struct(k, g) AS a, SUM(v) AS n FROM {s} GROUP BY struct(k, g)", {"s": 5}),
    _both("count_distinct", "SELECT g, COUNT(DISTINCT array(k, v)) AS n FROM {s} GROUP BY g", {"s": 5}),
    _both("extremes", "SELECT g, MIN(array(k, v)) AS a FROM {s} WHERE k > 0 AND v > 0 GROUP BY g", {"s": 5}),
    _both("extremes_of_structs", "SELECT MAX(struct(k, g)) AS a FROM {s} WHERE k > 0 AND g > '' GROUP BY v", {"s": 5}),
    _both("first", "SELECT k, MIN_BY(array(v, k), ts) AS a FROM {s} WHERE v > 4 GROUP BY k", {"s": 5}),
    *(
        _both(
            operator.lower().replace(" ", "_"),
            f"SELECT array(k, v) AS a, g FROM {{s}} {operator} SELECT array(k, v) AS a, g FROM {{r}}",
        )
        for operator in ("EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL", "UNION", "UNION ALL")
    ),
    case(
        "nested_join_on_array",
        "",
        _KEYS,
        sash="SELECT a.g, b.p FROM (SELECT g, array(k, v) AS p FROM {s}) a JOIN (SELECT array(k, v) AS p FROM {r}) b ON a.p = b.p",
        duck="SELECT a.g, b.p FROM (SELECT g, [k, v] AS p FROM {s}) a JOIN (SELECT [k, v] AS p FROM {r}) b ON a.p = b.p",
    ),
    case(
        "nested_left_join_carries",
        "",
        _KEYS,
        sash="SELECT a.p, b.q FROM (SELECT k, array(v, ts) AS p FROM {s}) a LEFT JOIN (SELECT k, struct(g, x) AS q FROM {r}) b ON a.k = b.k",
        duck="SELECT a.p, b.q FROM (SELECT k, [v, ts] AS p FROM {s}) a LEFT JOIN (SELECT k, {{'g': g, 'x': x}} AS q FROM {r}) b ON a.k = b.k",
    ),
    case(
        "nested_anti_join",
        "",
        _KEYS,
        sash="SELECT a.p FROM (SELECT array(k, v) AS p FROM {s}) a LEFT ANTI JOIN (SELECT array(k, v) AS p FROM {r}) b ON a.p = b.p",
        duck="SELECT a.p FROM (SELECT [k, v] AS p FROM {s}) a WHERE a.p NOT IN (SELECT [k, v] FROM {r})",
    ),
    case(
        "nested_top_k",
        "",
        {"s": 5},
        sash="SELECT array(v, k) AS a, g FROM {s} WHERE v > 0 AND k > 0 ORDER BY a DESC, g LIMIT 2",
        duck="SELECT [v, k] AS a, g FROM {s} WHERE v > 0 AND k > 0 ORDER BY a DESC, g NULLS FIRST LIMIT 2",
    ),
    case(
        "nested_selected_from",
        "",
        {"s": 5},
        sash="SELECT d.g AS g, d.a[1] AS v, element_at(d.a, -1) AS w, size(d.a) AS n, array_contains(d.a, 4) AS c "
        "FROM (SELECT DISTINCT struct(g, array(k, v) AS a) AS d FROM {s}) x WHERE d.a[1] > 1",
        duck="SELECT d.g AS g, d.a[2] AS v, d.a[-1] AS w, len(d.a)::INT AS n, CASE WHEN list_contains(d.a, 4) THEN true "
        "WHEN d.a[1] IS NULL THEN NULL ELSE false END AS c "
        "FROM (SELECT DISTINCT {{'g': g, 'a': [k, v]}} AS d FROM {s}) x WHERE d.a[2] > 1",
    ),
    case(
        "nested_above_aggregates",
        "",
        {"s": 5},
        sash="SELECT struct(k, n).n AS n, array(n, m) AS a FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM {s} GROUP BY k) x",
        duck="SELECT n, [n, m] AS a FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM {s} GROUP BY k) x",
    ),
)
