"""Generators: explode, posexplode, inline and stack, in SELECT, after LATERAL VIEW and after LATERAL."""

from __future__ import annotations

from tests.oracle.case import case

_ARRAY = "CASE WHEN v > 4 THEN array(k, v, NULL) WHEN v > 3 THEN array(v) END"
_LIST = "CASE WHEN v > 4 THEN [k, v, NULL] WHEN v > 3 THEN [v] END"
_UNNESTED = f"(SELECT *, unnest({_LIST}) AS e FROM {{s}}) x"
_OUTER = f"(SELECT *, unnest(CASE WHEN v > 3 THEN {_LIST} ELSE [NULL] END) AS e FROM {{s}}) x"

CASES = (
    case(
        "explode_in_select",
        "",
        {"s": 5},
        sash=f"SELECT g, explode({_ARRAY}) AS e FROM {{s}}",
        duck=f"SELECT g, e FROM {_UNNESTED}",
    ),
    case(
        "explode_lateral_view",
        "",
        {"s": 5},
        sash=f"SELECT g, e FROM {{s}} LATERAL VIEW explode({_ARRAY}) t AS e WHERE k < 3 AND e > 1",
        duck=f"SELECT g, e FROM {_UNNESTED} WHERE k < 3 AND e > 1",
    ),
    case(
        "explode_lateral_view_outer",
        "",
        {"s": 5},
        sash=f"SELECT k, t.e FROM {{s}} LATERAL VIEW OUTER explode({_ARRAY}) t AS e",
        duck=f"SELECT k, e FROM {_OUTER}",
    ),
    case(
        "explode_grouped",
        "",
        {"s": 5},
        sash=f"SELECT e, COUNT(*) AS n, SUM(v) AS t FROM {{s}}, LATERAL explode({_ARRAY}) AS t(e) GROUP BY e",
        duck=f"SELECT e, COUNT(*) AS n, SUM(v) AS t FROM {_UNNESTED} GROUP BY e",
    ),
    case(
        "explode_distinct",
        "",
        {"s": 5},
        sash=f"SELECT DISTINCT e FROM {{s}} LATERAL VIEW explode({_ARRAY}) t AS e",
        duck=f"SELECT DISTINCT e FROM {_UNNESTED}",
    ),
    case(
        "explode_above_distinct",
        "",
        {"s": 5},
        sash="SELECT g, explode(a) AS e FROM (SELECT DISTINCT g, array(k, v) AS a FROM {s}) x",
        duck="SELECT g, unnest(a) AS e FROM (SELECT DISTINCT g, [k, v] AS a FROM {s}) x",
    ),
    case(
        "explode_above_aggregate",
        "",
        {"s": 5},
        sash="SELECT g, explode(array(MIN(v), MAX(v))) AS e FROM {s} GROUP BY g",
        duck="SELECT g, unnest([MIN(v), MAX(v)]) AS e FROM {s} GROUP BY g",
    ),
    case(
        "explode_joined",
        "",
        {"s": 5, "r": 5},
        sash="SELECT x.g, r.v FROM (SELECT g, explode(if(v > 4, array(k, v), array(k))) AS e FROM {s}) x JOIN {r} ON x.e = r.k",
        duck="SELECT x.g, r.v FROM (SELECT g, unnest(CASE WHEN v > 4 THEN [k, v] ELSE [k] END) AS e FROM {s}) x JOIN {r} ON x.e = r.k",
    ),
    case(
        "explode_except",
        "",
        {"s": 5, "r": 5},
        sash=f"SELECT e FROM {{s}} LATERAL VIEW explode({_ARRAY}) t AS e EXCEPT SELECT k FROM {{r}}",
        duck=f"SELECT e FROM {_UNNESTED} EXCEPT SELECT k FROM {{r}}",
    ),
    case(
        "posexplode",
        "",
        {"s": 5},
        sash=f"SELECT g, p, e FROM {{s}} LATERAL VIEW posexplode({_ARRAY}) t AS p, e",
        duck=f"SELECT g, p::INT AS p, a[p + 1] AS e FROM (SELECT g, a, unnest(range(len(a))) AS p FROM (SELECT g, {_LIST} AS a FROM {{s}}))",
    ),
    case(
        "inline",
        "",
        {"s": 5},
        sash="SELECT inline(array(struct(k AS a, g AS b), struct(v AS a, NULL AS b))) FROM {s}",
        duck="SELECT k AS a, g AS b FROM {s} UNION ALL SELECT v, NULL FROM {s}",
    ),
    case(
        "stack",
        "",
        {"s": 5},
        sash="SELECT g, stack(2, 'k', k, 'v', v) AS (name, value) FROM {s}",
        duck="SELECT g, 'k' AS name, k AS value FROM {s} UNION ALL SELECT g, 'v', v FROM {s}",
    ),
    case(
        "range_joined",
        "",
        {"s": 5},
        sash="SELECT s.g, r.id FROM {s} JOIN range(0, 10, 2) r ON r.id < s.k",
        duck="SELECT s.g, r.id FROM {s} JOIN (SELECT unnest(range(0, 10, 2)) AS id) r ON r.id < s.k",
    ),
    case(
        "explode_of_a_count_window",
        "",
        {"s": 5},
        sash=f"SELECT g, explode({_ARRAY}) AS e FROM (SELECT * FROM {{s}} ORDER BY ts DESC, k, v LIMIT 3) x",
        duck=f"SELECT g, unnest({_LIST}) AS e FROM (SELECT * FROM {{s}} ORDER BY ts DESC, k NULLS FIRST, v NULLS FIRST LIMIT 3) x",
    ),
)
