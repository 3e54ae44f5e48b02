"""Random cases: random queries over random streams, over relations that change, and with a negation below joins."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.case import SCHEMA, Case, clause
from tests.oracle.duck import met
from tests.oracle.random_constructs import construct_queries
from tests.oracle.random_subqueries import nested
from tests.oracle.strategies import (
    OPERATORS,
    Query,
    aggregated,
    combined,
    joined,
    made_distinct,
    names_of,
    queries,
    scan,
    sources,
    streams,
    topped,
    updates,
    windows,
)


@st.composite
def cases(draw: st.DrawFn, depth: int = 3, operators: tuple[str, ...] = OPERATORS, max_rows: int = 8) -> Case:
    """A random query on random streams."""
    return _case(draw, draw(queries(depth, operators)), max_rows)


@st.composite
def construct_cases(draw: st.DrawFn) -> Case:
    """Constructs that turn groups of rows into other rows."""
    return _case(draw, draw(construct_queries()), max_rows=8)


@st.composite
def negated_cases(draw: st.DrawFn) -> Case:
    """One or two joins of some kind, on k, above an EXCEPT ALL of k, or of k and g, of windows or what was made of them."""
    chosen = draw(st.sampled_from((("k",), ("k",), ("k", "g"))))
    left, right = (scan(draw, chosen, counted=side == 1) for side in range(2))
    if draw(st.integers(0, 2)) == 2:
        left = combined(draw, left, scan(draw, chosen, counted=False), ("UNION ALL",))
    if draw(st.integers(0, 3)) == 3:
        right = made_distinct(right)
    query = combined(draw, left, right, ("EXCEPT ALL",))
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        other = scan(draw, ("k", "v"))
        kind = draw(st.sampled_from(("JOIN", "JOIN", "LEFT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")))
        one_sided = kind in ("SEMI JOIN", "ANTI JOIN")
        columns = [f"a.{name} AS {name}" for name in names_of(query)]
        types = query.types
        if not one_sided:
            columns.append(f"b.c1 AS c{len(types)}")
            types = (*types, "int")
        text = f"SELECT {', '.join(columns)} FROM ({{}}) AS a {{}} ({{}}) AS b ON a.c0 = b.c0"
        query = Query(
            text.format(query.sash, f"LEFT {kind}" if one_sided else kind, other.sash),
            text.format(query.duck, kind, other.duck),
            types,
            query.views + other.views,
        )
    return _case(draw, query, max_rows=12)


@st.composite
def sent_cases(draw: st.DrawFn) -> Case:
    """A semi or anti join of k below a join of g, which another stage computes, and sometimes below another one of k."""
    left, right = scan(draw, ("k", "g"), counted=False), scan(draw, ("k",))
    kind = draw(st.sampled_from(("ANTI JOIN", "ANTI JOIN", "SEMI JOIN")))
    text = "SELECT a.c0 AS c0, a.c1 AS c1 FROM ({}) AS a {} ({}) AS b ON a.c0 = b.c0"
    query = Query(
        text.format(left.sash, f"LEFT {kind}", right.sash), text.format(left.duck, kind, right.duck),
        left.types, left.views + right.views,
    )  # fmt: skip
    for key, chosen in (("c1", ("g", "v")), ("c0", ("k", "v")))[: draw(st.sampled_from((1, 1, 2)))]:
        other = scan(draw, chosen)
        kind = draw(st.sampled_from(("JOIN", "JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN")))
        one_sided = kind in ("SEMI JOIN", "ANTI JOIN")
        columns = (
            ["a.c0 AS c0", "a.c1 AS c1"]
            if one_sided or len(query.types) > 2
            else ["a.c0 AS c0", "a.c1 AS c1", "b.c1 AS c2"]
        )
        text = f"SELECT {', '.join(columns)} FROM ({{}}) AS a {{}} ({{}}) AS b ON a.{key} = b.c0"
        query = Query(
            text.format(query.sash, f"LEFT {kind}" if one_sided else kind, other.sash),
            text.format(query.duck, kind, other.duck),
            (*left.types, *(["int"] if len(columns) > 2 else [])),
            query.views + other.views,
        )
    return _case(draw, query, max_rows=12)


@st.composite
def nested_cases(draw: st.DrawFn) -> Case:
    """One or two subqueries, one in the other's query or beside it, and sometimes something above them."""
    query = nested(draw, draw(queries(1)), draw(queries(1)))
    match draw(st.integers(0, 3)):
        case 0:
            query = nested(draw, query, draw(sources()))
        case 1:
            query = nested(draw, draw(sources()), query)
        case 2:
            query = aggregated(draw, query)
    return _case(draw, query, max_rows=8)


def _case(draw: st.DrawFn, query: Query, max_rows: int) -> Case:
    views = dict(query.views)
    names = sorted({view.stream for view in views.values()})
    rows = {name: draw(streams(max_rows)) for name in names}
    return Case(
        "random", query.sash, query.duck, rows, views, schemas=dict.fromkeys(names, SCHEMA), empties=query.empties
    )


@st.composite
def changing_cases(draw: st.DrawFn, depth: int = 2) -> Case:
    """A random query over streams and a relation `t` that changes, by key or not."""
    query = draw(queries(depth, (*OPERATORS, "relation")))
    return _with_updates(draw, query, "relations")


@st.composite
def nonretroactive_cases(draw: st.DrawFn) -> Case:
    """A random query over a non-retroactive relation, on random streams."""
    return _with_updates(draw, draw(nonretroactive_queries()), "nrrs")


@st.composite
def nonretroactive_queries(draw: st.DrawFn) -> Query:
    """A stream, or a join of two, that meets a non-retroactive relation `t`; something over it."""
    view = draw(windows("s", counted=False))
    views, left, moment = {"s_w": view}, f"s {clause(view, 's')} AS a", "a.ts"
    plain = "s_w AS a"
    if view.slide is None and draw(st.integers(0, 2)) == 2:
        other = draw(windows("r", counted=False).filter(lambda view: view.slide is None))
        views["r_w"] = other
        left, plain = f"{left} JOIN r {clause(other, 's')} AS b ON a.g = b.g", "s_w AS a JOIN r_w AS b ON a.g = b.g"
        moment = "greatest(a.ts, b.ts)"
    kind = draw(st.sampled_from(("JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN")))
    on = draw(st.sampled_from(("a.k = t.k", "a.k = t.k", "a.g = t.g", "a.k = t.k AND a.v < t.v", "a.v < t.v")))
    chosen, types = "a.k AS c0, a.v AS c1, a.g AS c2", ("int", "int", "str")
    if kind in ("JOIN", "LEFT JOIN"):
        chosen, types = "a.k AS c0, t.v AS c1, t.g AS c2", ("int", "int", "str")
    sash_kind = kind if "LEFT" in kind or kind == "JOIN" else f"LEFT {kind}"
    query = Query(
        f"SELECT {chosen} FROM {left} {sash_kind} t ON {on}",
        f"SELECT {chosen} FROM {plain} {kind} t_rows AS t ON {on} AND {met('t', moment)}",
        types,
        tuple(views.items()),
    )
    match draw(st.sampled_from(("nothing", "aggregate", "distinct", "set", "join", "top"))):
        case "aggregate":
            query = aggregated(draw, query)
        case "distinct":
            query = made_distinct(query)
        case "set":
            query = combined(draw, query, draw(sources()))
        case "join":
            query = joined(draw, "join", query, draw(sources()))
        case "top":
            query = topped(draw, query)
    return query


def _with_updates(draw: st.DrawFn, query: Query, kind: str) -> Case:
    views = dict(query.views)
    names = sorted({view.stream for view in views.values()})
    schemas = {**dict.fromkeys(names, SCHEMA), "t": "k BIGINT, g STRING, v BIGINT, x DOUBLE"}
    keys = draw(st.sampled_from(({}, {"t": ["k"]}, {"t": ["g", "v"]})))
    rows = {name: draw(streams()) for name in names}
    given = {"t": draw(updates())}
    case = Case("random", query.sash, query.duck, rows, views, schemas=schemas, empties=query.empties, keys=keys)
    return replace(case, relations=given) if kind == "relations" else replace(case, nrrs=given)
