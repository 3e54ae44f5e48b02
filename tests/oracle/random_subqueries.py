"""Random subqueries: in WHERE, in SELECT and after LATERAL, correlated or not, each written in both dialects at once."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.strategies import Query, names_of

_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def nested(draw: st.DrawFn, left: Query, right: Query) -> Query:
    """The left query with a subquery over the right one."""
    pairs = [(i, j) for i in left.exact() for j in right.exact() if left.types[i] == right.types[j]]
    conditions = _conditions(draw, pairs)
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if draw(st.integers(0, 3)) == 3:
        return _lateral(draw, left, right, where)
    text, empties = _predicate(draw, pairs, where)
    columns = ", ".join(names_of(left))
    types = left.types
    if draw(st.booleans()):
        template = f"SELECT {columns} FROM ({{a}}) AS a WHERE {text}"
        if draw(st.integers(0, 2)) == 2:
            template += f" OR a.c0 IS {draw(st.sampled_from(('', 'NOT ')))}NULL"
    else:
        value = f"CASE WHEN {text} THEN 1 WHEN NOT ({text}) THEN 0 END"
        if draw(st.booleans()):
            value, scalar_empties = _scalar(draw, right, where)
            empties = empties and scalar_empties
        template = f"SELECT {columns}, {value} AS c{len(types)} FROM ({{a}}) AS a"
        types = (*types, "int")
    return _made(template, left, right, types, empties)


def _made(template: str, left: Query, right: Query, types: tuple[str, ...], empties: bool) -> Query:
    return Query(
        template.format(a=left.sash, b=right.sash),
        template.format(a=left.duck, b=right.duck),
        types,
        left.views + right.views,
        left.empties and right.empties and empties,
    )


def _conditions(draw: st.DrawFn, pairs: list[tuple[int, int]]) -> list[str]:
    """Correlated predicates, mostly one equality."""
    count = draw(st.sampled_from((1, 1, 0, 2))) if pairs else 0
    made = []
    for _ in range(count):
        i, j = draw(st.sampled_from(pairs))
        made.append(f"a.c{i} {draw(st.sampled_from(('=', '=', '=', '<', '<>')))} b.c{j}")
    return made


def _predicate(draw: st.DrawFn, pairs: list[tuple[int, int]], where: str) -> tuple[str, bool]:
    """A subquery as a condition, and whether it leaves nothing to remember."""
    kind = draw(st.sampled_from(("exists", "in", "in", "all"))) if pairs else "exists"
    if kind == "exists":
        word = draw(st.sampled_from(("EXISTS", "NOT EXISTS")))
        return f"{word} (SELECT 1 FROM ({{b}}) AS b{where})", True
    i, j = draw(st.sampled_from(pairs))
    if kind == "in":
        word = draw(st.sampled_from(("IN", "NOT IN")))
        return f"a.c{i} {word} (SELECT b.c{j} FROM ({{b}}) AS b{where})", True
    operator, word = draw(st.sampled_from(_COMPARISONS)), draw(st.sampled_from(("ANY", "ALL")))
    return f"a.c{i} {operator} {word} (SELECT b.c{j} FROM ({{b}}) AS b{where})", False


def _scalar(draw: st.DrawFn, right: Query, where: str) -> tuple[str, bool]:
    """A scalar subquery of an aggregate."""
    integers = [index for index in right.exact() if right.types[index] == "int"]
    if integers and draw(st.booleans()):
        function = draw(st.sampled_from(("MIN", "MAX")))
        return f"(SELECT {function}(b.c{draw(st.sampled_from(integers))}) FROM ({{b}}) AS b{where})", bool(where)
    return f"(SELECT COUNT(*) FROM ({{b}}) AS b{where})", bool(where)


def _lateral(draw: st.DrawFn, left: Query, right: Query, where: str) -> Query:
    """A LATERAL subquery: rows, groups or one row of aggregates."""
    inner = ", ".join(names_of(right))
    types = right.types
    group, empties = "", True
    match draw(st.integers(0, 2)):
        case 1:
            inner, types = "COUNT(*) AS c0", ("int",)
            empties = bool(where)
        case 2 if right.exact():
            key = draw(st.sampled_from(right.exact()))
            inner, types, group = f"c{key} AS c0, COUNT(*) AS c1", (right.types[key], "int"), f" GROUP BY c{key}"
    columns = [f"a.{name}" for name in names_of(left)] + [f"d.c{index}" for index in range(len(types))]
    listed = ", ".join(f"{column} AS c{index}" for index, column in enumerate(columns))
    template = f"SELECT {listed} FROM ({{a}}) AS a, LATERAL (SELECT {inner} FROM ({{b}}) AS b{where}{group}) AS d"
    return replace(_made(template, left, right, (*left.types, *types), empties))
