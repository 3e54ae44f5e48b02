"""Random streams and random type-correct queries, each query written in both dialects at once.

A column has one of four types: int, str, double (dyadic values, so that sums are exact in any order) and real (results
of AVG, VAR and STDDEV, right only to the last digits): reals are carried along but never compared, grouped or ordered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

from tests.oracle.case import clause
from tests.oracle.duck import Row, View

OPERATORS = ("filter", "project", "distinct", "aggregate", "top", "over", "join", "outer", "semi", "set")
"""What `queries` builds with; `top` is an ORDER BY with a LIMIT, `over` has window functions. Besides these there is `relation`, a relation `t` that
changes."""

_COLUMNS = {"k": "int", "g": "str", "v": "int", "x": "double", "ts": "int"}
_SETS = ("UNION ALL", "UNION", "EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT")
_AGGREGATES = {
    "int": (
        "SUM",
        "COUNT",
        "AVG",
        "MIN",
        "MAX",
        "COUNT DISTINCT",
        "SUM DISTINCT",
        "MEDIAN",
        "PERCENTILE",
        "VAR_POP",
        "BIT_AND",
        "BIT_OR",
        "BIT_XOR",
        "PERCENTILE_DISC",
        "COVAR_POP",
    ),
    "double": (
        "SUM",
        "COUNT",
        "AVG",
        "MIN",
        "MAX",
        "COUNT DISTINCT",
        "MEDIAN",
        "PERCENTILE",
        "STDDEV_SAMP",
        "PERCENTILE_DISC",
        "COVAR_POP",
    ),
    "str": ("COUNT", "MIN", "MAX", "COUNT DISTINCT", "LISTAGG", "LISTAGG DISTINCT"),
}
_RENAMED = {
    "PERCENTILE_DISC": (
        "PERCENTILE_DISC(0.4) WITHIN GROUP (ORDER BY {0} DESC)",
        "CAST(-quantile_disc(-{0}, 0.4) AS DOUBLE)",
        "double",
    ),
    "COVAR_POP": ("COVAR_POP({0}, {0} + 1)", "COVAR_POP({0}, {0} + 1)", "real"),
    "LISTAGG": ("LISTAGG({0}, ',') WITHIN GROUP (ORDER BY {0})", "string_agg({0}, ',' ORDER BY {0})", "str"),
    "LISTAGG DISTINCT": (
        "LISTAGG(DISTINCT {0}, ',') WITHIN GROUP (ORDER BY {0} DESC)",
        "string_agg(DISTINCT {0}, ',' ORDER BY {0} DESC)",
        "str",
    ),
}
"""Aggregates whose calls differ between the dialects: that of Sash, that of DuckDB, and the type."""


@dataclass(frozen=True)
class Query:
    """A SELECT in both dialects whose output columns are c0, c1 ... of the given types."""

    sash: str
    duck: str
    types: tuple[str, ...]
    views: tuple[tuple[str, View], ...]
    empties: bool = True

    def over(self, template: str, types: tuple[str, ...], duck: str | None = None) -> Query:
        """A query around this one, which stands for `{a}` in the template."""
        return replace(
            self, sash=template.format(a=self.sash), duck=(duck or template).format(a=self.duck), types=types
        )

    def exact(self) -> tuple[int, ...]:
        """The positions of columns that may be compared."""
        return tuple(index for index, dtype in enumerate(self.types) if dtype != "real")


def streams(max_rows: int = 8) -> st.SearchStrategy[list[Row]]:
    """Rows of one stream in order of ts: ties, gaps past most windows, NULLs, duplicates."""
    gap = st.sampled_from((1, 0, 2, 0, 1, 3, 0, 11))
    key = st.sampled_from((1, 2, 1, 3, None))
    string = st.sampled_from(("a", "b", "a", "", None))
    value = st.sampled_from((2, 1, 0, 1, 5, -3, None))
    number = st.sampled_from((0.25, 1.5, 0.25, 0.0, -2.0, None))
    row = st.tuples(gap, key, string, value, number)
    half = max_rows // 2
    size = st.sampled_from((half, max_rows, max_rows, max_rows - 1, half + 1, max_rows, half, 1, 0))
    return size.flatmap(lambda size: st.lists(row, min_size=size, max_size=size)).map(_timed)


def _timed(drawn: list[tuple[int, int | None, str | None, int | None, float | None]]) -> list[Row]:
    rows: list[Row] = []
    ts = 0
    for gap, k, g, v, x in drawn:
        ts += gap
        rows.append({"ts": ts, "k": k, "g": g, "v": v, "x": x})
    return rows


def windows(stream: str, counted: bool = True) -> st.SearchStrategy[View]:
    """Mostly plain ranges; some with a slide, some of a number of rows, of all or for each key."""
    length = st.integers(2, 9)
    plain = length.map(lambda n: View(stream, n))
    sliding = st.tuples(length, st.integers(1, 4)).map(lambda pair: View(stream, pair[0], slide=pair[1]))
    key = st.sampled_from(((), (), ("k",), ("g", "k")))
    rows = st.tuples(st.integers(1, 4), key).map(lambda pair: View(stream, rows=pair[0], partition=pair[1]))
    return st.one_of(plain, plain, plain, sliding, *([rows] if counted else []))


def updates(max_rows: int = 10) -> st.SearchStrategy[list[Row]]:
    """Updates of a relation in order of ts: many of few rows, `-` of rows that are there and some that are not."""
    row = st.tuples(
        st.sampled_from((1, 0, 2, 0, 1, 5)),
        st.sampled_from("+++-"),
        st.sampled_from((1, 2, 3, None)),
        st.sampled_from(("a", "b", "a", None)),
        st.sampled_from((1, 2)),
        st.sampled_from((0.25, 1.5)),
    )

    def timed(drawn: list[tuple[int, str, int | None, str | None, int, float]]) -> list[Row]:
        rows: list[Row] = []
        ts = 0
        for gap, op, k, g, v, x in drawn:
            ts += gap
            rows.append({"ts": ts, "_op": op, "k": k, "g": g, "v": v, "x": x})
        return rows

    return st.lists(row, min_size=1, max_size=max_rows).map(timed)


@st.composite
def sources(draw: st.DrawFn, relation: bool = False) -> Query:
    """Some columns of a window, or of relation `t`, sometimes filtered."""
    if relation and draw(st.booleans()):
        chosen = draw(st.lists(st.sampled_from(("k", "g", "v")), min_size=2, max_size=3, unique=True))
        columns = ", ".join(f"{column} AS c{index}" for index, column in enumerate(chosen))
        text = f"SELECT {columns} FROM t{' WHERE v < 2' if draw(st.integers(0, 3)) == 3 else ''}"
        return Query(text, text, tuple("str" if column == "g" else "int" for column in chosen), ())
    chosen = draw(st.lists(st.sampled_from(tuple(_COLUMNS)), min_size=2, max_size=4, unique=True))
    return scan(draw, tuple(chosen))


def scan(draw: st.DrawFn, chosen: tuple[str, ...], counted: bool = True) -> Query:
    """These columns of a window, sometimes filtered."""
    view = draw(windows(draw(st.sampled_from(("s", "s", "r", "q"))), counted))
    name = "_".join(map(str, (view.stream, view.length, view.slide, view.rows, *view.partition))).replace("None", "x")
    columns = ", ".join(f"{column} AS c{index}" for index, column in enumerate(chosen))
    types = tuple(_COLUMNS[column] for column in chosen)
    where = ""
    if draw(st.integers(0, 3)) == 3:
        where = " WHERE " + draw(predicates(chosen, types))
    text = "SELECT " + columns + " FROM {}" + where
    return Query(text.format(f"{view.stream} {clause(view, 's')}"), text.format(name), types, ((name, view),))


@st.composite
def predicates(draw: st.DrawFn, names: tuple[str, ...], types: tuple[str, ...]) -> str:
    """A condition over columns that may be compared; TRUE-like if there are none."""
    comparable = [(name, dtype) for name, dtype in zip(names, types, strict=True) if dtype != "real"]
    if not comparable:
        return "1 = 1"
    parts = []
    for _ in range(draw(st.integers(1, 2))):
        name, dtype = draw(st.sampled_from(comparable))
        choices = {
            "int": (f"{name} > 0", f"{name} <= 2", f"{name} IS NOT NULL", f"{name} % 2 <> 0", f"{name} IN (1, 2)"),
            "double": (f"{name} >= 0.25", f"{name} <= 1.5", f"{name} IS NOT NULL", f"{name} + 1 <> 2.5"),
            "str": (f"{name} = 'a'", f"{name} <> 'b'", f"{name} IS NULL", f"{name} LIKE 'a%'", f"LENGTH({name}) > 0"),
        }[dtype]
        part = draw(st.sampled_from(choices))
        parts.append(f"NOT ({part})" if draw(st.integers(0, 4)) == 4 else part)
    return draw(st.sampled_from((" AND ", " OR "))).join(parts)


@st.composite
def queries(draw: st.DrawFn, depth: int = 3, operators: tuple[str, ...] = OPERATORS) -> Query:
    """Up to `depth` operators over one another, sources at the bottom."""
    if depth == 0 or draw(st.integers(0, 7)) == 7:
        return draw(sources("relation" in operators))
    operator = draw(st.sampled_from([name for name in operators if name != "relation"]))
    child = draw(queries(depth - 1, operators))
    match operator:
        case "filter":
            return filtered(draw, child)
        case "project":
            return projected(draw, child)
        case "distinct":
            return made_distinct(child)
        case "aggregate":
            return aggregated(draw, child)
        case "top":
            return topped(draw, child)
        case "over":
            return numbered(draw, child)
        case "set":
            return combined(draw, child, draw(queries(depth - 1, operators)))
        case _:
            return joined(draw, operator, child, draw(queries(depth - 1, operators)))


def names_of(query: Query) -> tuple[str, ...]:
    return tuple(f"c{index}" for index in range(len(query.types)))


def filtered(draw: st.DrawFn, child: Query) -> Query:
    where = draw(predicates(names_of(child), child.types))
    return child.over(f"SELECT {', '.join(names_of(child))} FROM ({{a}}) AS a WHERE {where}", child.types)


def projected(draw: st.DrawFn, child: Query) -> Query:
    """One to four columns, each an old one or computed from one."""
    expressions = {
        "int": (
            ("{c}", "int"),
            ("{c} + 1", "int"),
            ("-{c}", "int"),
            ("{c} / 4", "double"),
            ("{c} % 2", "int"),
            ("COALESCE({c}, 7)", "int"),
            ("CASE WHEN {c} > 1 THEN 'b' ELSE 'a' END", "str"),
        ),
        "double": (("{c}", "double"), ("{c} * 2", "double"), ("ABS({c})", "double"), ("{c} - 0.25", "double")),
        "str": (("{c}", "str"), ("UPPER({c})", "str"), ("{c} || 'a'", "str"), ("LENGTH({c})", "int")),
        "real": (("{c}", "real"),),
    }
    picked = []
    for index in draw(st.lists(st.integers(0, len(child.types) - 1), min_size=1, max_size=4)):
        template, dtype = draw(st.sampled_from(expressions[child.types[index]]))
        picked.append((template.format(c=f"c{index}"), dtype))
    columns = ", ".join(f"{expression} AS c{index}" for index, (expression, _) in enumerate(picked))
    return child.over(f"SELECT {columns} FROM ({{a}}) AS a", tuple(dtype for _, dtype in picked))


def _compared(child: Query) -> Query | None:
    """The child without its reals; None if nothing is left."""
    positions = child.exact()
    if not positions:
        return None
    if len(positions) == len(child.types):
        return child
    return _pick(child, positions)


def _pick(child: Query, positions: tuple[int, ...]) -> Query:
    columns = ", ".join(f"c{old} AS c{new}" for new, old in enumerate(positions))
    return child.over(f"SELECT {columns} FROM ({{a}}) AS a", tuple(child.types[position] for position in positions))


def made_distinct(child: Query) -> Query:
    exact = _compared(child)
    if exact is None:
        return child
    return exact.over(f"SELECT DISTINCT {', '.join(names_of(exact))} FROM ({{a}}) AS a", exact.types)


def aggregated(draw: st.DrawFn, child: Query) -> Query:
    exact = child.exact()
    keys = draw(st.lists(st.sampled_from(exact), max_size=2, unique=True)) if exact else []
    sash, duck, types = [f"c{key}" for key in keys], [f"c{key}" for key in keys], [child.types[key] for key in keys]
    for _ in range(draw(st.integers(0 if keys else 1, 3))):
        index = draw(st.sampled_from(exact)) if exact and draw(st.integers(0, 5)) > 0 else None
        one, other, dtype = _aggregate_call(draw, index, "" if index is None else child.types[index])
        sash.append(one)
        duck.append(other)
        types.append(dtype)
    group = " GROUP BY " + ", ".join(f"c{key}" for key in keys) if keys else ""
    having = " HAVING COUNT(*) > 1" if keys and draw(st.integers(0, 4)) == 4 else ""

    def text(columns: list[str]) -> str:
        listed = ", ".join(f"{column} AS c{index}" for index, column in enumerate(columns))
        return f"SELECT {listed} FROM ({{a}}) AS a{group}{having}"

    return replace(child.over(text(sash), tuple(types), text(duck)), empties=child.empties and bool(keys))


def _aggregate_call(draw: st.DrawFn, index: int | None, dtype: str) -> tuple[str, str, str]:
    """An aggregate in both dialects and its type."""
    if index is None:
        return "COUNT(*)", "COUNT(*)", "int"
    function = draw(st.sampled_from(_AGGREGATES[dtype]))
    column = f"c{index}"
    if function == "PERCENTILE":
        p = draw(st.sampled_from(("0.25", "0.5", "0.75", "1.0")))
        return f"PERCENTILE({column}, {p})", f"quantile_cont({column}, {p})", "double"
    if function in _RENAMED:
        sash, duck, made = _RENAMED[function]
        return sash.format(column), duck.format(column), made
    name, _, distinct = function.partition(" ")
    call = f"{name}({distinct} {column})" if distinct else f"{name}({column})"
    if name == "COUNT":
        return call, call, "int"
    if name in ("AVG", "VAR_POP", "STDDEV_SAMP"):
        return call, call, "real"
    if name == "MEDIAN":
        return call, call, "double"
    return call, f"CAST({call} AS BIGINT)" if dtype == "int" else call, dtype


def topped(draw: st.DrawFn, child: Query) -> Query:
    exact = _compared(child)
    if exact is None:
        return child
    order = draw(st.lists(st.sampled_from(names_of(exact)), min_size=1, max_size=2, unique=True))
    limit = draw(st.integers(1, 3))
    sash, duck = [], []
    for name in order:
        descending, explicit, first = draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        first = first if explicit else not descending
        direction = f"{name} DESC" if descending else name
        nulls = "NULLS FIRST" if first else "NULLS LAST"
        sash.append(f"{direction} {nulls}" if explicit else direction)
        duck.append(f"{direction} {nulls}")
    duck += [f"{name} NULLS FIRST" for name in names_of(exact) if name not in order]
    head = f"SELECT {', '.join(names_of(exact))} FROM ({{a}}) AS a ORDER BY "
    return exact.over(f"{head}{', '.join(sash)} LIMIT {limit}", exact.types, f"{head}{', '.join(duck)} LIMIT {limit}")


_FRAMES = (
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
)


def numbered(draw: st.DrawFn, child: Query) -> Query:
    """One window function in an order of all columns, so that nothing depends on how ties are broken."""
    exact = _compared(child)
    if exact is None:
        return child
    names = names_of(exact)
    partition = draw(st.lists(st.sampled_from(names), max_size=1))
    order = draw(st.permutations(names))
    descending = draw(st.booleans())
    keys = [f"{order[0]} DESC NULLS LAST" if descending else f"{order[0]} NULLS FIRST"]
    keys += [f"{name} NULLS FIRST" for name in order[1:]]
    by = f"{'PARTITION BY ' if partition else ''}{', '.join(partition)} ORDER BY {', '.join(keys)}"
    value = draw(st.sampled_from(range(len(names))))
    functions = [
        (f"ROW_NUMBER() OVER ({by})", "int"),
        (f"RANK() OVER ({by})", "int"),
        (f"LAG({names[value]}) OVER ({by})", exact.types[value]),
        *(
            (f"{one}({names[value]}) OVER ({by} {frame})", exact.types[value])
            for one in ("MIN", "MAX")
            for frame in _FRAMES
        ),
        *((f"COUNT({names[value]}) OVER ({by} {frame})", "int") for frame in _FRAMES),
    ]
    made, dtype = draw(st.sampled_from(functions))
    text = f"SELECT {', '.join(names)}, {made} AS c{len(names)} FROM ({{a}}) AS a"
    return exact.over(text, (*exact.types, dtype))


def joined(draw: st.DrawFn, operator: str, left: Query, right: Query) -> Query:
    pairs = [(i, j) for i in left.exact() for j in right.exact() if left.types[i] == right.types[j]]
    conditions = []
    if pairs:
        for i, j in draw(
            st.lists(st.sampled_from(pairs), min_size=1, max_size=draw(st.sampled_from((1, 1, 2))), unique=True)
        ):
            comparison = draw(st.sampled_from(("=", "=", "=", "=", "<")))
            conditions.append(f"a.c{i} {comparison} b.c{j}")
    if not pairs or draw(st.integers(0, 4)) == 4:
        conditions.append(draw(predicates(tuple(f"a.{name}" for name in names_of(left)), left.types)))
    sash_kind = duck_kind = "JOIN"
    if operator == "outer":
        sash_kind = duck_kind = draw(st.sampled_from(("LEFT JOIN", "RIGHT JOIN", "FULL JOIN")))
    elif operator == "semi":
        duck_kind = draw(st.sampled_from(("SEMI JOIN", "ANTI JOIN")))
        sash_kind = f"LEFT {duck_kind}"
    columns = [f"a.c{index}" for index in range(len(left.types))]
    types = list(left.types)
    if operator != "semi":
        columns += [f"b.c{index}" for index in range(len(right.types))]
        types += right.types
        kept = draw(st.lists(st.integers(0, len(columns) - 1), min_size=1, max_size=5, unique=True))
        columns, types = [columns[index] for index in kept], [types[index] for index in kept]
    listed = ", ".join(f"{column} AS c{index}" for index, column in enumerate(columns))
    text = f"SELECT {listed} FROM ({{}}) AS a {{}} ({{}}) AS b ON {' AND '.join(f'({c})' for c in conditions)}"
    return Query(
        text.format(left.sash, sash_kind, right.sash),
        text.format(left.duck, duck_kind, right.duck),
        tuple(types),
        left.views + right.views,
        left.empties and right.empties,
    )


def combined(draw: st.DrawFn, left: Query, right: Query, operators: tuple[str, ...] = _SETS) -> Query:
    """A set operator over the columns that both sides have; the left side alone if there are none."""
    free = list(right.exact())
    pairs: list[tuple[int, int]] = []
    for i in left.exact():
        match = next((j for j in free if right.types[j] == left.types[i]), None)
        if match is not None:
            pairs.append((i, match))
            free.remove(match)
    if not pairs:
        return left
    operator = draw(st.sampled_from(operators))
    one, other = _pick(left, tuple(i for i, _ in pairs)), _pick(right, tuple(j for _, j in pairs))
    return Query(
        f"{one.sash} {operator} {other.sash}",
        f"{one.duck} {operator} {other.duck}",
        one.types,
        one.views + other.views,
        one.empties and other.empties,
    )
