"""Constant relations: VALUES, and SELECT without FROM, alone and with streams."""

from __future__ import annotations

from tests.oracle.case import case

_VALUES = "(VALUES (1, 'a'), (2, 'b'), (1, 'c'), (NULL, 'd')) AS t(k, name)"

CASES = (
    case("values_lookup", f"SELECT s.v, t.name FROM {{s}} AS s JOIN {_VALUES} ON s.k = t.k", {"s": 5}),
    case("values_outer", f"SELECT t.name, s.v FROM {_VALUES} LEFT JOIN {{s}} AS s ON s.k = t.k", {"s": 5}, empties=False),
    case("values_full", f"SELECT t.name, s.v FROM {_VALUES} FULL JOIN {{s}} AS s ON s.k = t.k", {"s": 5}, empties=False),
    case("values_cross", "SELECT s.k, t.a FROM {s} AS s CROSS JOIN (VALUES (1), (2)) AS t(a)", {"s": 5}),
    case("values_union", "SELECT k FROM {s} UNION ALL SELECT * FROM (VALUES (1), (7)) AS t(k)", {"s": 5}, empties=False),
    case("values_distinct", "SELECT k FROM {s} UNION SELECT * FROM (VALUES (1), (7)) AS t(k)", {"s": 5}, empties=False),
    case("values_except", "SELECT * FROM (VALUES (1), (2), (7)) AS t(k) EXCEPT SELECT k FROM {s}", {"s": 5}, empties=False),
    case("values_intersect", "SELECT k FROM {s} INTERSECT ALL SELECT * FROM (VALUES (1), (1), (2)) AS t(k)", {"s": 5}, empties=False),
    case("values_grouped", f"SELECT t.name, COUNT(s.v) AS n FROM {_VALUES} LEFT JOIN {{s}} AS s ON s.k = t.k GROUP BY t.name", {"s": 5}, empties=False),
    case("no_from_union", "SELECT k FROM {s} UNION ALL SELECT 7", {"s": 5}, empties=False),
    case("no_from_cte", "WITH c AS (SELECT 2 AS least) SELECT s.k FROM {s} AS s, c WHERE s.k >= c.least", {"s": 5}),
)  # fmt: skip
