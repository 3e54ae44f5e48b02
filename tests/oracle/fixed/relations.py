"""Relations that are updated as the streams flow, retroactive and not, everywhere that they may stand."""

from __future__ import annotations

from typing import Any

from tests.oracle.case import Case, case, table
from tests.oracle.duck import View, met

UPDATES = table(
    "ts _op k name",
    (0, "+", 1, "one"),
    (2, "+", 2, "two"),
    (3, "-", 1, "one"),
    (3, "+", 1, "uno"),
    (7, "-", 2, "two"),
    (21, "+", 2, "zwei"),
    (22, "+", 2, "zwei"),
    (23, "-", 2, "zwei"),
)
"""A bag: a row replaced at one instant, a row that goes before its stream rows do, a duplicate that goes alone."""

KEYED = table(
    "ts _op k name price",
    (0, "+", 1, "one", 1.5),
    (0, "+", 2, "two", 2.5),
    (1, "+", None, "none", 0.5),
    (3, "+", 1, "uno", 1.5),
    (4, "-", 2, "whatever", None),
    (5, "+", 3, "three", 4.0),
    (5, "+", 3, "drei", 4.0),
    (6, "-", 3, "three", 4.0),
    (6, "+", 3, "tres", 0.25),
    (21, "+", 2, "two", 2.5),
    (25, "-", 7, "never", 0.0),
    (26, "+", 1, "one", 8.0),
)
"""By key: replacements, deletions by key alone, several changes of a key at one instant, one of a key that is not there."""

_BY_K = {"keys": {"items": ["k"]}, "relations": {"items": KEYED}}
_MET = met("i", "a.ts")


def _semi(kind: str, of: str, on: str, met_too: str = "") -> dict[str, str]:
    """The texts of a LEFT SEMI or LEFT ANTI JOIN in both dialects."""
    duck_of = f"{of}_rows" if met_too else of
    return {
        "sash": f"SELECT a.ts AS at, a.k AS k FROM {{s}} AS a LEFT {kind} JOIN {of} AS i ON {on}",
        "duck": f"SELECT a.ts AS at, a.k AS k FROM {{s}} AS a {kind} JOIN {duck_of} AS i ON {on}{met_too}",
    }


RETROACTIVE = (
    case(
        "relation_that_changes",
        "SELECT a.ts AS at, i.name AS name FROM {s} AS a JOIN items AS i ON a.k = i.k",
        {"s": 5},
        relations={"items": UPDATES},
    ),
    case(
        "relation_that_changes_below_group",
        "SELECT i.name AS name, COUNT(*) AS n FROM {s} AS a JOIN items AS i ON a.k = i.k GROUP BY i.name",
        {"s": 5},
        relations={"items": UPDATES},
    ),
    case("keyed", "SELECT a.ts AS at, i.name AS name FROM {s} AS a JOIN items AS i ON a.k = i.k", {"s": 5}, **_BY_K),
    case("keyed_first", "SELECT i.name AS name, a.v AS v FROM items AS i JOIN {s} AS a ON a.k = i.k", {"s": 5}, **_BY_K),
    case("keyed_theta", "SELECT a.ts AS at, i.name AS n FROM {s} AS a JOIN items AS i ON a.x < i.price", {"s": 3}, **_BY_K),
    case(
        "keyed_by_another_column",
        "SELECT a.ts AS at, i.k AS k FROM {s} AS a JOIN items AS i ON a.g = i.name AND a.v >= i.price",
        {"s": 9},
        relations={"items": [{**row, "name": "ab"[(row["k"] or 0) % 2]} for row in KEYED]},
        keys={"items": ["k"]},
    ),
    *(
        case(f"keyed_{kind.lower()}", f"SELECT a.ts AS at, i.name AS name FROM {{s}} AS a {kind} JOIN items AS i ON a.k = i.k", {"s": 5}, **_BY_K)
        for kind in ("LEFT", "RIGHT", "FULL")
    ),
    *(case(f"keyed_{kind.lower()}", "", {"s": 5}, **_semi(kind, "items", "a.k = i.k"), **_BY_K) for kind in ("SEMI", "ANTI")),
    case("keyed_anti_theta", "", {"s": 5}, **_semi("ANTI", "items", "a.k = i.k AND a.x < i.price"), **_BY_K),
    case(
        "stream_not_in_keyed",
        "",
        {"s": 5},
        sash="SELECT i.k AS k, i.name AS name FROM items AS i LEFT ANTI JOIN {s} AS a ON a.k = i.k",
        duck="SELECT i.k AS k, i.name AS name FROM items AS i ANTI JOIN {s} AS a ON a.k = i.k",
        **_BY_K,
    ),
    case("keyed_thinned", "SELECT a.ts AS at, i.n AS n FROM {s} AS a JOIN (SELECT k, UPPER(name) AS n FROM items WHERE price > 1) AS i ON a.k = i.k", {"s": 5}, **_BY_K),
    case("keyed_twice", "SELECT a.ts AS at, i.name AS n, j.name AS m FROM {s} AS a JOIN items AS i ON a.k = i.k JOIN items AS j ON a.v = j.k", {"s": 5}, **_BY_K),
    case(
        "two_that_change",
        "SELECT a.ts AS at, i.name AS n, j.name AS m FROM {s} AS a JOIN items AS i ON a.k = i.k JOIN names AS j ON i.k = j.k",
        {"s": 5},
        relations={"items": KEYED, "names": UPDATES},
        keys={"items": ["k"]},
    ),
    case("keyed_above_join", "SELECT a.ts AS at, b.ts AS us, i.name AS n FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN items AS i ON b.v = i.k", {"s": 5, "r": 4}, **_BY_K),
    case("keyed_above_group", "SELECT i.name AS name, t.n AS n FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS t JOIN items AS i ON t.k = i.k", {"s": 5}, **_BY_K),
    case("keyed_above_distinct", "SELECT i.name AS name FROM (SELECT DISTINCT k FROM {s}) AS t JOIN items AS i ON t.k = i.k", {"s": 5}, **_BY_K),
    case("keyed_above_except_all", "SELECT i.name AS name FROM (SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) AS t JOIN items AS i ON t.k = i.k", {"s": 5, "r": 4}, **_BY_K),
    case("keyed_above_except", "SELECT i.name AS name FROM (SELECT k, v FROM {s} EXCEPT SELECT k, v FROM {r}) AS t JOIN items AS i ON t.k = i.k", {"s": 5, "r": 4}, **_BY_K),
    case(
        "keyed_above_anti",
        "",
        {"s": 5, "r": 4},
        sash="SELECT t.v AS v, i.name AS name FROM (SELECT a.k, a.v FROM {s} AS a LEFT ANTI JOIN {r} AS b ON a.g = b.g AND a.v < b.v) AS t LEFT JOIN items AS i ON t.k = i.k",
        duck="SELECT t.v AS v, i.name AS name FROM (SELECT a.k, a.v FROM {s} AS a ANTI JOIN {r} AS b ON a.g = b.g AND a.v < b.v) AS t LEFT JOIN items AS i ON t.k = i.k",
        **_BY_K,
    ),
    case("relation_alone", "SELECT k, name FROM items WHERE price > 1", {"s": 5}, **_BY_K),
    case("relation_grouped", "SELECT name, COUNT(*) AS n, SUM(price) AS t FROM items GROUP BY name", {"s": 5}, **_BY_K),
    case("relation_counted", "SELECT COUNT(*) AS n, MAX(price) AS m FROM items", {"s": 5}, **_BY_K),
    case("relation_top", "SELECT k, name FROM items ORDER BY price DESC NULLS LAST, k NULLS FIRST, name LIMIT 2", {"s": 5}, **_BY_K),
    case("relation_and_stream", "SELECT k FROM items UNION ALL SELECT k FROM {s}", {"s": 5}, **_BY_K),
    case("stream_except_relation", "SELECT k FROM {s} EXCEPT SELECT k FROM items", {"s": 5}, **_BY_K),
    case("relation_intersect_all", "SELECT k FROM {s} INTERSECT ALL SELECT k FROM items", {"s": 5}, relations={"items": UPDATES}),
)  # fmt: skip
"""Q(T) over the table as it is at T."""


def _nrr(name: str, select: str, joined: str, views: dict[str, int | View | None], **more: Any) -> Case:
    """A case with NRR `items`: `{i}` in the text is the relation, `{met}` in a condition the version that a row meets."""
    text = f"SELECT {select} FROM {joined}"
    names = {view: f"{{{view}}}" for view in views}
    return case(
        name,
        "",
        views,
        sash=text.format(i="items", met="1 = 1", **names),
        duck=text.format(i="items_rows", met=more.pop("met", _MET), **names),
        **{"nrrs": {"items": UPDATES}, **more},
    )


NON_RETROACTIVE = (
    _nrr("nrr", "a.ts AS at, i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met}", {"s": 5}),
    _nrr("nrr_first", "i.name AS name, a.v AS v", "{i} AS i JOIN {s} AS a ON a.k = i.k AND {met}", {"s": 5}),
    _nrr("nrr_right", "i.name AS name, a.v AS v", "{i} AS i RIGHT JOIN {s} AS a ON a.k = i.k AND {met}", {"s": 5}),
    _nrr("nrr_left", "a.ts AS at, i.name AS name", "{s} AS a LEFT JOIN {i} AS i ON a.k = i.k AND {met}", {"s": 5}),
    _nrr("nrr_theta", "a.ts AS at, i.name AS name", "{s} AS a JOIN {i} AS i ON a.k <= i.k AND {met}", {"s": 5}),
    _nrr("nrr_theta_too", "a.ts AS at, i.name AS name", "{s} AS a LEFT JOIN {i} AS i ON a.k = i.k AND LENGTH(i.name) < a.v AND {met}", {"s": 5}),
    *(
        case(f"nrr_{kind.lower()}", "", {"s": 5}, **_semi(kind, "items", "a.k = i.k", f" AND {_MET}"), nrrs={"items": UPDATES})
        for kind in ("SEMI", "ANTI")
    ),
    _nrr("nrr_keyed", "a.ts AS at, i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met}", {"s": 5}, nrrs={"items": KEYED}, keys={"items": ["k"]}),
    _nrr("nrr_by_another_column", "a.ts AS at, i.k AS k", "{s} AS a JOIN {i} AS i ON a.v = i.price AND {met}", {"s": 5}, nrrs={"items": [{**row, "price": (row["k"] or 0) + row["ts"] % 5} for row in KEYED]}, keys={"items": ["k"]}),
    _nrr("nrr_thinned", "a.ts AS at, i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND i.name <> 'uno' AND a.v > 3 AND {met}", {"s": 5}),
    _nrr("nrr_slide", "a.ts AS at, i.name AS name", "{s} AS a LEFT JOIN {i} AS i ON a.k = i.k AND {met}", {"s": View("s", 5, slide=4)}),
    _nrr("nrr_slide_group", "i.name AS name, COUNT(*) AS n", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met} WHERE a.v > 1 GROUP BY i.name", {"s": View("s", 3, slide=5)}),
    _nrr("nrr_unbounded", "a.ts AS at, i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met}", {"s": None}),
    _nrr("nrr_below_group", "i.name AS name, COUNT(*) AS n, SUM(a.v) AS t", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met} GROUP BY i.name", {"s": 5}, ),
    _nrr("nrr_below_count", "COUNT(*) AS n, MIN(i.name) AS m", "{s} AS a LEFT JOIN {i} AS i ON a.k = i.k AND {met}", {"s": 5}, empties=False),
    _nrr("nrr_below_distinct", "DISTINCT i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met}", {"s": 5}),
    _nrr("nrr_below_join", "a.ts AS at, b.ts AS us, i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met} JOIN {r} AS b ON a.k = b.k", {"s": 5, "r": 4}),
    _nrr("nrr_above_join", "a.ts AS at, b.ts AS us, i.name AS name", "{s} AS a JOIN {r} AS b ON a.g = b.g JOIN {i} AS i ON a.k = i.k AND {met}", {"s": 5, "r": 4}, met=met("i", "greatest(a.ts, b.ts)")),
    _nrr("nrr_below_except", "i.name AS name", "{s} AS a JOIN {i} AS i ON a.k = i.k AND {met} EXCEPT ALL SELECT g FROM {r}", {"s": 5, "r": 4}),
    case(
        "nrr_and_relation",
        "",
        {"s": 5},
        sash="SELECT a.ts AS at, i.name AS n, j.name AS m FROM {s} AS a JOIN items AS i ON a.k = i.k JOIN names AS j ON a.k = j.k",
        duck=f"SELECT a.ts AS at, i.name AS n, j.name AS m FROM {{s}} AS a JOIN items_rows AS i ON a.k = i.k AND {_MET} JOIN names AS j ON a.k = j.k",
        nrrs={"items": UPDATES},
        relations={"names": KEYED},
        keys={"names": ["k"]},
    ),
)  # fmt: skip
"""Definition 2: a result has the version that was there just before its rows came."""

CASES = (*RETROACTIVE, *NON_RETROACTIVE)
