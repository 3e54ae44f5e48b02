"""Inner joins of three and more streams: on a common attribute, on different ones, and on comparisons."""

from __future__ import annotations

from tests.oracle.case import COLUMNS, case, table
from tests.oracle.duck import View

P = table(
    COLUMNS,
    (1, 2, "b", 3, 0.5),
    (3, 1, "a", 6, 0.25),
    (4, 1, "b", 4, None),
    (6, 3, "c", 7, -1.5),
    (7, None, "a", 1, 1.0),
    (22, 2, "b", 2, 8.0),
    (25, 1, "a", 4, 0.5),
)

_STREAMS = {"p": P}
_FOUR = {"s": 5, "r": 6, "q": 4, "p": 7}
_TIMES = "a.ts AS x, b.ts AS y, c.ts AS z"

COMMON = case(
    "four_way",
    f"SELECT {_TIMES}, d.v AS w FROM {{s}} AS a, {{r}} AS b, {{q}} AS c, {{p}} AS d "
    "WHERE a.k = b.k AND b.k = c.k AND c.k = d.k",
    _FOUR,
    streams=_STREAMS,
)

CHAIN = case(
    "four_way_two_attributes",
    f"SELECT {_TIMES}, d.v AS w FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k JOIN {{q}} AS c ON a.k = c.k "
    "JOIN {p} AS d ON b.g = d.g",
    _FOUR,
    streams=_STREAMS,
)

HYBRID = case(
    "four_way_hybrid",
    f"SELECT {_TIMES}, d.ts AS w FROM {{s}} AS a, {{r}} AS b, {{q}} AS c, {{p}} AS d "
    "WHERE a.k = b.k AND b.k = c.k AND c.v <= d.v AND a.x <> d.x",
    _FOUR,
    streams=_STREAMS,
)

CASES = (
    COMMON,
    CHAIN,
    HYBRID,
    case(
        "four_way_two_keys",
        f"SELECT {_TIMES}, d.x AS w FROM {{s}} AS a, {{r}} AS b, {{q}} AS c, {{p}} AS d "
        "WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND a.g = b.g AND c.g = a.g",
        _FOUR,
        streams=_STREAMS,
    ),
    case(
        "four_way_theta",
        f"SELECT {_TIMES}, d.ts AS w FROM {{s}} AS a, {{r}} AS b, {{q}} AS c, {{p}} AS d "
        "WHERE a.k = b.k AND a.k = c.k AND d.k = a.k AND a.v < d.v AND b.v + 1 >= c.v",
        _FOUR,
        streams=_STREAMS,
    ),
    case(
        "three_way_theta_alone",
        f"SELECT {_TIMES} FROM {{s}} AS a, {{r}} AS b, {{q}} AS c WHERE a.v < b.v AND b.x >= c.x",
        {"s": 3, "r": 3, "q": 4},
    ),
    case(
        "three_way_residue",
        f"SELECT {_TIMES} FROM {{s}} AS a, {{r}} AS b, {{q}} AS c "
        "WHERE a.k = b.k AND b.k = c.k AND (a.v + b.v > c.v OR a.g < c.g)",
        {"s": 5, "r": 6, "q": 4},
    ),
    case(
        "four_way_rows",
        f"SELECT {_TIMES}, d.v AS w FROM {{s}} AS a, {{r}} AS b, {{q}} AS c, {{p}} AS d "
        "WHERE a.k = b.k AND b.k = c.k AND c.k = d.k AND a.v <= d.v",
        {
            "s": View("s", rows=4),
            "r": View("r", rows=2, partition=("k",)),
            "q": 6,
            "p": View("p", rows=3),
        },
        streams=_STREAMS,
    ),
    case(
        "three_way_dear_conditions",
        f"SELECT {_TIMES} FROM {{s}} AS a, {{r}} AS b, {{q}} AS c WHERE a.k = b.k AND b.k = c.k AND a.v <> b.v "
        "AND a.g || b.g LIKE '%b%' AND a.v + b.v + c.v < 40 AND CASE WHEN a.v > c.v THEN a.g ELSE c.g END < 'c'",
        {"s": 7, "r": 6, "q": 8},
    ),
    case("three_way_cross", f"SELECT {_TIMES} FROM {{s}} AS a, {{r}} AS b, {{q}} AS c", {"s": 1, "r": 2, "q": 3}),
    case(
        "three_way_columns_of_one_input_are_equal",
        f"SELECT {_TIMES} FROM {{s}} AS a, {{r}} AS b, {{q}} AS c WHERE a.k = b.k AND b.k = c.k AND c.v = a.k",
        {"s": 8, "r": 8, "q": 8},
    ),
    case(
        "three_way_self_join",
        "SELECT a.ts AS x, b.ts AS y, c.ts AS z FROM {s} AS a, {s9} AS b, {s} AS c WHERE a.k = b.k AND b.v = c.v",
        {"s": 3, "s9": View("s", 9)},
    ),
    case(
        "three_way_with_a_group",
        "SELECT a.ts AS x, b.ts AS y, c.n AS n FROM {s} AS a, {r} AS b, "
        "(SELECT k, COUNT(*) AS n FROM {q} GROUP BY k) AS c WHERE a.k = b.k AND b.k = c.k AND c.n <= a.v",
        {"s": 5, "r": 6, "q": 4},
    ),
    case(
        "three_way_grouped",
        "SELECT a.g AS g, COUNT(*) AS n, SUM(b.v) AS t FROM {s} AS a, {r} AS b, {q} AS c "
        "WHERE a.k = b.k AND b.k = c.k GROUP BY a.g",
        {"s": 5, "r": 6, "q": 4},
    ),
    case(
        "four_way_computed_keys",
        f"SELECT {_TIMES}, d.v AS w FROM {{s}} AS a JOIN {{r}} AS b ON a.k = b.k JOIN {{q}} AS c ON UPPER(b.g) = UPPER(c.g) "
        "JOIN {p} AS d ON b.v + 1 = d.v + 1 AND LENGTH(a.g) = LENGTH(d.g)",
        {"s": 6, "r": 7, "q": 5, "p": 9},
        streams=_STREAMS,
    ),
    case(
        "three_way_computed",
        "SELECT a.v + c.v AS v, UPPER(b.g) AS g FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN {q} AS c ON a.v + 0 = c.v",
        {"s": 5, "r": 6, "q": 9},
    ),
)
