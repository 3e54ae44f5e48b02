"""Aggregates that return the values of a group in order: LISTAGG, COLLECT_LIST and COLLECT_SET, MIN_BY and MAX_BY with k."""

from __future__ import annotations

from tests.oracle.case import SCHEMA, case, table
from tests.oracle.duck import View

WORDS = table(
    "ts k g v x",
    (1, 1, "pear", 4, 0.5),
    (1, 1, "fig", 4, 0.5),
    (1, 2, "b", 7, 1.25),
    (2, 1, "fig", -3, 0.5),
    (2, 1, None, 4, 2.5),
    (3, 2, "b", 7, -8.25),
    (3, 2, "", 2, 1.0),
    (4, None, "a", 3, None),
    (5, 2, None, None, 2.0),
    (5, 1, "c,d", 12, 3.0),
    (6, 1, "fig", 9, 0.25),
    (6, 2, "a", 7, 1.25),
    (7, 1, "pear", 4, 2.5),
    (20, 2, "b", 1, 8.0),
    (21, 2, "b", 1, 8.0),
    (25, None, None, None, None),
)
"""Equal values at different times, ties in ts, NULLs and empty strings."""

_BY_TIME = "ORDER BY ts, k NULLS FIRST, g NULLS FIRST, v NULLS FIRST, x NULLS FIRST"

LISTAGG = (
    "SELECT k, LISTAGG(g) AS a, STRING_AGG(g, ', ') AS b, LISTAGG(v, '-') FILTER (WHERE x > 0) AS c FROM {s} GROUP BY k"
)
LISTAGG_DUCK = (
    f"SELECT k, string_agg(g, '' {_BY_TIME}) AS a, string_agg(g, ', ' {_BY_TIME}) AS b, "
    f"string_agg(v::VARCHAR, '-' {_BY_TIME}) FILTER (WHERE x > 0) AS c FROM {{s}} GROUP BY k"
)

CASES = (
    *(
        case(
            f"listagg_{name}",
            "",
            {"s": view},
            sash=LISTAGG,
            duck=LISTAGG_DUCK,
            streams={"s": WORDS},
            schemas={"s": SCHEMA},
        )
        for name, view in (("by_time", 5), ("slide", View("s", 6, slide=4)), ("rows", View("s", rows=5)))
    ),
    case(
        "listagg_global",
        "",
        {"s": 5},
        sash="SELECT LISTAGG(g, '/') AS a FROM {s}",
        duck=f"SELECT string_agg(g, '/' {_BY_TIME}) AS a FROM {{s}}",
        streams={"s": WORDS},
        schemas={"s": SCHEMA},
        empties=False,
    ),
    case(
        "listagg_within_group",
        "",
        {"s": 5},
        sash="SELECT k, LISTAGG(g, '|') WITHIN GROUP (ORDER BY v DESC, x) AS a, "
        "LISTAGG(g, '|') WITHIN GROUP (ORDER BY v NULLS LAST, g DESC) FILTER (WHERE ts > 1) AS b FROM {s} GROUP BY k",
        duck=f"SELECT k, string_agg(g, '|' {_BY_TIME.replace('BY ts', 'BY v DESC NULLS LAST, x NULLS FIRST, ts')}) AS a, "
        f"string_agg(g, '|' {_BY_TIME.replace('BY ts', 'BY v NULLS LAST, g DESC NULLS LAST, ts')}) FILTER (WHERE ts > 1) AS b "
        "FROM {s} GROUP BY k",
        streams={"s": WORDS},
        schemas={"s": SCHEMA},
    ),
    case(
        "listagg_distinct",
        "",
        {"s": 6},
        sash="SELECT k, LISTAGG(DISTINCT g, '|') WITHIN GROUP (ORDER BY g DESC) AS a, LISTAGG(DISTINCT g, '|') AS b "
        "FROM {s} GROUP BY k",
        duck="SELECT k, string_agg(DISTINCT g, '|' ORDER BY g DESC) AS a, (SELECT string_agg(d.g, '|' ORDER BY d.t, d.g) FROM "
        "(SELECT k, g, MIN(ts) AS t FROM {s} WHERE g IS NOT NULL GROUP BY k, g) AS d WHERE d.k IS NOT DISTINCT FROM s.k) AS b "
        "FROM {s} AS s GROUP BY k",
        streams={"s": WORDS},
        schemas={"s": SCHEMA},
    ),
    case(
        "listagg_above_group_by",
        "",
        {"s": 6},
        sash="SELECT LISTAGG(CONCAT(g, n), ' ') AS a FROM (SELECT g, COUNT(*) AS n FROM {s} GROUP BY g)",
        duck="SELECT string_agg(g || n::VARCHAR, ' ' ORDER BY g, n) AS a FROM (SELECT g, COUNT(*) AS n FROM {s} GROUP BY g)",
        streams={"s": WORDS},
        schemas={"s": SCHEMA},
        empties=False,
    ),
    case(
        "listagg_of_join",
        "",
        {"s": 4, "r": 3},
        sash="SELECT s.k, LISTAGG(s.g, ' ') WITHIN GROUP (ORDER BY s.g) AS a FROM {s} AS s JOIN {r} AS r ON s.k = r.k GROUP BY s.k",
        duck="SELECT s.k, string_agg(s.g, ' ' ORDER BY s.g) AS a FROM {s} AS s JOIN {r} AS r ON s.k = r.k GROUP BY s.k",
        streams={"s": WORDS},
        schemas={"s": SCHEMA},
    ),
)
