"""Joins whose conditions bound how far apart in time partners are: rows are kept for less time than their windows."""

from __future__ import annotations

from tests.oracle.case import Case, case, table
from tests.oracle.duck import View

_A = table(
    "ts k v",
    *(
        (0, 1, 1),
        (1, 2, 2),
        (3, 1, 3),
        (3, 1, 3),
        (7, None, 4),
        (8, 2, 5),
        (9, 1, 6),
        (14, 1, 7),
        (15, 2, 8),
        (30, 1, 9),
    ),
)
_B = table(
    "ts k w", (0, 1, 1), (3, 1, 2), (4, 2, 3), (5, 1, 4), (8, 1, 5), (10, 2, 6), (13, 1, 7), (20, 2, 8), (31, 1, 9)
)
_C = table(
    "ts k x", (2, 1, 1), (5, 2, 2), (6, 1, 3), (9, 1, 4), (11, 2, 5), (13, 1, 6), (16, 1, 7), (21, 2, 8), (33, 1, 9)
)
_STREAMS = {"a": _A, "b": _B}
_SCHEMAS = {"a": "ts TIMESTAMP, k INT, v INT", "b": "ts TIMESTAMP, k INT, w INT"}
_THREE = {"streams": {**_STREAMS, "c": _C}, "schemas": {**_SCHEMAS, "c": "ts TIMESTAMP, k INT, x INT"}}
_VIEWS = {
    "endless": {"a": View("a"), "b": View("b")},
    "short": {"a": View("a", 6), "b": View("b", 9)},
    "long": {"a": View("a", 20), "b": View("b", 30)},
    "mixed": {"a": View("a"), "b": View("b", 12)},
}
_CONDITIONS = {
    "before": "a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts",
    "around": "a.ts >= b.ts - INTERVAL 2 SECONDS AND a.ts - INTERVAL 3 SECONDS < b.ts",
    "later": "a.ts > b.ts + INTERVAL 1 SECOND AND b.ts >= a.ts - INTERVAL 6 SECONDS",
    "together": "a.ts = b.ts",
}


def _cases() -> list[Case]:
    made = []
    for where, views in _VIEWS.items():
        for name, condition in _CONDITIONS.items():
            text = f"SELECT a.k, a.v, b.w FROM {{a}} AS a JOIN {{b}} AS b ON a.k = b.k AND {condition}"
            if name == "around":
                text = f"SELECT a.v, b.w FROM {{a}} AS a, {{b}} AS b WHERE a.k = b.k AND {condition}"
            made.append(case(f"interval_{name}_{where}", text, views, streams=_STREAMS, schemas=_SCHEMAS))
    above = (
        "SELECT a.k, COUNT(*) AS n, MAX(b.w) AS m FROM {a} AS a JOIN {b} AS b ON a.k = b.k "
        "AND a.ts BETWEEN b.ts - INTERVAL 5 SECONDS AND b.ts GROUP BY a.k"
    )
    outer = "SELECT a.v, b.w FROM {a} AS a LEFT JOIN {b} AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 4 SECONDS"
    free = "SELECT a.v, b.w FROM {a} AS a, {b} AS b WHERE b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS AND a.v < b.w"
    for where in ("endless", "long"):
        made.append(case(f"interval_group_{where}", above, _VIEWS[where], streams=_STREAMS, schemas=_SCHEMAS))
        made.append(case(f"interval_cross_{where}", free, _VIEWS[where], streams=_STREAMS, schemas=_SCHEMAS))
    first = "SELECT a.v, b.w, c.x FROM {a} AS a JOIN {b} AS b ON a.k = b.k AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 5 SECONDS"
    thirds = {
        "chain": "c.k = b.k AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 4 SECONDS",
        "star": "c.k = a.k AND c.ts >= a.ts - INTERVAL 3 SECONDS AND c.ts < a.ts + INTERVAL 7 SECONDS",
        "behind": "c.ts BETWEEN b.ts - INTERVAL 6 SECONDS AND a.ts",
    }
    for name, condition in thirds.items():
        for where, c in (("endless", View("c")), ("mixed", View("c", 8)), ("long", View("c", 25))):
            views = {**_VIEWS["long" if where == "long" else "endless"], "c": c}
            made.append(case(f"interval_{name}_{where}", f"{first} JOIN {{c}} AS c ON {condition}", views, **_THREE))
    made.append(case("interval_left_long", outer, _VIEWS["long"], streams=_STREAMS, schemas=_SCHEMAS))
    made += [
        case(
            f"interval_{name}_half_endless",
            text,
            {"a": View("a", length), "b": View("b")},
            streams=_STREAMS,
            schemas=_SCHEMAS,
        )
        for name, length, text in (
            ("left", 9, outer),
            ("left_below_bound", 2, outer),
            ("left_together", 12, "SELECT a.v, b.w FROM {a} AS a LEFT JOIN {b} AS b ON a.k = b.k AND a.ts = b.ts"),
            (
                "right",
                11,
                "SELECT a.v, b.w FROM {b} AS b RIGHT JOIN {a} AS a ON b.ts BETWEEN a.ts AND a.ts + INTERVAL 3 SECONDS",
            ),
            (
                "exists",
                9,
                f"SELECT v FROM {{a}} AS a WHERE EXISTS (SELECT 1 FROM {{b}} AS b WHERE a.k = b.k AND {_CONDITIONS['around']})",
            ),
            (
                "not_exists",
                9,
                f"SELECT v FROM {{a}} AS a WHERE NOT EXISTS (SELECT 1 FROM {{b}} AS b WHERE a.k = b.k AND {_CONDITIONS['later']})",
            ),
            (
                "not_exists_together",
                9,
                "SELECT v FROM {a} AS a WHERE NOT EXISTS (SELECT 1 FROM {b} AS b WHERE a.k = b.k AND a.ts = b.ts)",
            ),
            (
                "group_of_left",
                9,
                f"SELECT k, COUNT(*) AS n, SUM(w) AS t FROM ({outer.replace('a.v', 'a.k')}) GROUP BY k",
            ),
        )
    ]
    return made


CASES = tuple(_cases())
