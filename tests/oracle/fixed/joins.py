"""Joins of every kind, of streams with streams and with relations."""

from __future__ import annotations

from tests.oracle.case import SCHEMA, case, table
from tests.oracle.duck import View

ITEMS = table("k name price", (1, "one", 1.5), (2, "two", 2.5), (2, "zwei", 2.0), (4, "four", 4.0), (None, "none", 0.0))

_BOTH = "a.ts AS ts, a.v AS v, b.ts AS us, b.v AS w"
_SIDES = {"s": 5, "r": 4}

CASES = (
    case("inner", f"SELECT {_BOTH} FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k", _SIDES),
    case("inner_where", f"SELECT {_BOTH} FROM {{s}} AS a, {{r}} AS b WHERE a.k = b.k AND a.v > 3", _SIDES),
    case("inner_two_keys", f"SELECT {_BOTH} FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k AND a.g = b.g", _SIDES),
    case("inner_on_string", "SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.g = b.g", _SIDES),
    case("inner_on_double", "SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.x = b.x", _SIDES),
    case("inner_on_expression", "SELECT a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b ON a.k + 1 = b.k", _SIDES),
    case("inner_theta_too", f"SELECT {_BOTH} FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k AND a.v <= b.v", _SIDES),
    case("theta", f"SELECT {_BOTH} FROM {{s}} AS a JOIN {{r}} AS b ON a.v < b.v", {"s": 3, "r": 3}),
    case("cross", "SELECT a.v AS v, b.v AS w FROM {s} AS a CROSS JOIN {r} AS b", {"s": 2, "r": 3}),
    case("using", "SELECT k, a.v AS v, b.v AS w FROM {s} AS a JOIN {r} AS b USING (k)", _SIDES),
    case("long_and_short", f"SELECT {_BOTH} FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k", {"s": 1, "r": 30}),
    case(
        "self_join",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a JOIN {s} AS b ON a.k = b.k AND a.ts <= b.ts",
        {"s": 5},
    ),
    case(
        "self_join_two_windows",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a JOIN {s9} AS b ON a.k = b.k",
        {"s": 2, "s9": View("s", 9)},
    ),
    case(
        "join_silent_stream",
        f"SELECT {_BOTH} FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k",
        _SIDES,
        streams={"r": []},
        schemas={"r": SCHEMA},
    ),
    case(
        "three_way",
        "SELECT a.v AS v, b.v AS w, c.v AS u FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN {q} AS c ON b.k = c.k",
        {"s": 5, "r": 6, "q": 4},
    ),
    case(
        "three_way_two_attributes",
        "SELECT a.ts AS ts, b.ts AS us, c.ts AS vs FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN {q} AS c ON a.g = c.g",
        {"s": 5, "r": 6, "q": 4},
    ),
    case(
        "three_way_with_theta",
        "SELECT a.ts AS ts, b.ts AS us, c.ts AS vs FROM {s} AS a, {r} AS b, {q} AS c WHERE a.k = b.k AND b.v < c.v",
        {"s": 5, "r": 5, "q": 5},
    ),
    case("left", f"SELECT {_BOTH} FROM {{s}} AS a LEFT JOIN {{r}} AS b ON a.k = b.k", _SIDES),
    case("right", f"SELECT {_BOTH} FROM {{s}} AS a RIGHT JOIN {{r}} AS b ON a.k = b.k", _SIDES),
    case("full", f"SELECT {_BOTH} FROM {{s}} AS a FULL OUTER JOIN {{r}} AS b ON a.k = b.k", _SIDES),
    case("left_theta_too", f"SELECT {_BOTH} FROM {{s}} AS a LEFT JOIN {{r}} AS b ON a.k = b.k AND a.v < b.v", _SIDES),
    case("right_theta_too", f"SELECT {_BOTH} FROM {{s}} AS a RIGHT JOIN {{r}} AS b ON a.k = b.k AND b.v > 3", _SIDES),
    case("full_theta_too", f"SELECT {_BOTH} FROM {{s}} AS a FULL JOIN {{r}} AS b ON a.k = b.k AND a.v <> b.v", _SIDES),
    case("left_one_sided", f"SELECT {_BOTH} FROM {{s}} AS a LEFT JOIN {{r}} AS b ON a.k = b.k AND a.v > 5", _SIDES),
    case(
        "left_where_null", "SELECT a.ts AS ts FROM {s} AS a LEFT JOIN {r} AS b ON a.k = b.k WHERE b.k IS NULL", _SIDES
    ),
    case(
        "left_silent_stream",
        f"SELECT {_BOTH} FROM {{s}} AS a LEFT JOIN {{r}} AS b ON a.k = b.k",
        _SIDES,
        streams={"r": []},
        schemas={"r": SCHEMA},
    ),
    *(
        case(
            f"{kind}{name}",
            "",
            _SIDES,
            sash=f"SELECT a.ts, a.k, a.v FROM {{s}} AS a LEFT {kind.upper()} JOIN {{r}} AS b ON {condition}",
            duck=f"SELECT a.ts, a.k, a.v FROM {{s}} AS a {kind.upper()} JOIN {{r}} AS b ON {condition}",
        )
        for kind in ("semi", "anti")
        for name, condition in (
            ("", "a.k = b.k"),
            ("_two_keys", "a.k = b.k AND a.g = b.g"),
            ("_theta_too", "a.k = b.k AND a.v <= b.v"),
            ("_theta", "a.v < b.v"),
            ("_one_sided", "a.k = b.k AND a.v > 3"),
        )
    ),
    case(
        "anti_keeps_duplicates",
        "",
        {"s": 6, "r": 2},
        sash="SELECT a.g, a.v FROM {s} AS a LEFT ANTI JOIN {r} AS b ON a.g = b.g",
        duck="SELECT a.g, a.v FROM {s} AS a ANTI JOIN {r} AS b ON a.g = b.g",
    ),
    case(
        "relation",
        "SELECT a.ts AS ts, i.name AS name, i.price AS price FROM {s} AS a JOIN items AS i ON a.k = i.k",
        {"s": 5},
        relations={"items": ITEMS},
    ),
    case(
        "relation_left",
        "SELECT a.ts AS ts, i.name AS name FROM {s} AS a LEFT JOIN items AS i ON a.k = i.k",
        {"s": 5},
        relations={"items": ITEMS},
    ),
    case(
        "relation_anti",
        "",
        {"s": 5},
        sash="SELECT a.ts, a.k FROM {s} AS a LEFT ANTI JOIN items AS i ON a.k = i.k",
        duck="SELECT a.ts, a.k FROM {s} AS a ANTI JOIN items AS i ON a.k = i.k",
        relations={"items": ITEMS},
    ),
    case(
        "relation_below_group",
        "SELECT i.name AS name, SUM(a.v * i.price) AS t FROM {s} AS a JOIN items AS i ON a.k = i.k GROUP BY i.name",
        {"s": 5},
        relations={"items": ITEMS},
    ),
    case(
        "relation_above_group",
        "SELECT i.name AS name, t.n AS n FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS t "
        "JOIN items AS i ON t.k = i.k",
        {"s": 5},
        relations={"items": ITEMS},
    ),
    case(
        "relation_above_except",
        "SELECT i.name AS name FROM (SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) AS t JOIN items AS i ON t.k = i.k",
        _SIDES,
        relations={"items": ITEMS},
    ),
    case(
        "relation_theta",
        "SELECT a.ts AS ts, i.name AS name FROM {s} AS a JOIN items AS i ON a.x < i.price",
        {"s": 3},
        relations={"items": ITEMS},
    ),
)
