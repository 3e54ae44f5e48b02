"""Random queries with what turns groups of rows into other rows: first rows per group, grouping sets, FILTER, frames,
generators and nested keys, each written in both dialects at once, over random queries and below further ones."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.strategies import Query, filtered, joined, names_of, predicates, queries, sources, topped

_RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
_FRAMES = (
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN CURRENT ROW AND 2 FOLLOWING",
    "RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
)


@st.composite
def construct_queries(draw: st.DrawFn) -> Query:
    """One or two constructs, over a query of one operator, and sometimes something above them."""
    query = _construct(draw, draw(queries(1)))
    match draw(st.integers(0, 6)):
        case 0 | 1:
            query = _construct(draw, query)
        case 2:
            query = filtered(draw, query)
        case 3:
            query = topped(draw, query)
        case 4:
            query = joined(draw, draw(st.sampled_from(("join", "outer", "semi"))), query, draw(sources()))
    return query


def _construct(draw: st.DrawFn, child: Query) -> Query:
    exact = child.exact()
    if not exact:
        return child
    made = draw(st.sampled_from((_first_rows, _first_rows, _grouping_sets, _with_filter, _exploded, _nested, _framed)))
    return made(draw, child, exact)


def _some(draw: st.DrawFn, exact: tuple[int, ...], least: int, most: int) -> list[str]:
    chosen = draw(st.lists(st.sampled_from(exact), min_size=min(least, len(exact)), max_size=most, unique=True))
    return [f"c{index}" for index in chosen]


def _first_rows(draw: st.DrawFn, child: Query, exact: tuple[int, ...]) -> Query:
    """The first rows of each group: by their number in an order of all columns, or by a rank, whose ties stay together."""
    partition = _some(draw, exact, 0, 2)
    rank = draw(st.sampled_from(_RANKS))
    order = [f"c{index}" for index in draw(st.permutations(exact))]
    if rank != "ROW_NUMBER":
        order = order[:1]
    elif len(exact) < len(child.types):
        return child
    first = f"{order[0]} {draw(st.sampled_from(('ASC NULLS FIRST', 'DESC NULLS LAST', 'ASC NULLS LAST')))}"
    by = ", ".join([first, *(f"{name} NULLS FIRST" for name in order[1:])])
    over = f"OVER ({'PARTITION BY ' + ', '.join(partition) if partition else ''} ORDER BY {by})"
    bound = draw(st.sampled_from(("<= 1", "<= 2", "< 3", "= 1", "= 2", "> 1")))
    listed = ", ".join(names_of(child))
    return child.over(f"SELECT {listed} FROM ({{a}}) AS a QUALIFY {rank}() {over} {bound}", child.types)


def _grouping_sets(draw: st.DrawFn, child: Query, exact: tuple[int, ...]) -> Query:
    """Grouped in several ways at once. Spark has no row for the group of everything where there are no rows."""
    keys = _some(draw, exact, 1, 2)
    last = keys[-1]
    sets = draw(
        st.sampled_from(
            (
                f"ROLLUP ({', '.join(keys)})",
                f"CUBE ({', '.join(keys)})",
                f"GROUPING SETS (({', '.join(keys)}), ({last}), ())",
            )
        )
    )
    value = f"c{draw(st.sampled_from(exact))}"
    columns = [*keys, f"GROUPING({last})", f"COUNT({value})", f"MAX({value})"]
    types = [child.types[int(name[1:])] for name in keys] + ["int", "int", child.types[int(value[1:])]]
    listed = ", ".join(f"{column} AS c{index}" for index, column in enumerate(columns))
    text = f"SELECT {listed} FROM ({{a}}) AS a GROUP BY {sets}"
    return child.over(text, tuple(types), f"{text} HAVING COUNT(*) > 0")


def _with_filter(draw: st.DrawFn, child: Query, exact: tuple[int, ...]) -> Query:
    """Aggregates of the rows that satisfy a condition, of different values or of all."""
    keys = _some(draw, exact, 1, 2)
    columns, types = list(keys), [child.types[int(name[1:])] for name in keys]
    for _ in range(draw(st.integers(1, 2))):
        value = draw(st.sampled_from(exact))
        where = draw(predicates(names_of(child), child.types))
        function = draw(st.sampled_from(("COUNT", "COUNT DISTINCT", "MIN", "MAX")))
        name, _, distinct = function.partition(" ")
        columns.append(f"{name}({distinct} c{value}) FILTER (WHERE {where})")
        types.append("int" if name == "COUNT" else child.types[value])
    listed = ", ".join(f"{column} AS c{index}" for index, column in enumerate(columns))
    return child.over(f"SELECT {listed} FROM ({{a}}) AS a GROUP BY {', '.join(keys)}", tuple(types))


def _exploded(draw: st.DrawFn, child: Query, exact: tuple[int, ...]) -> Query:
    """A row per element of an array of a column, and of one of the same type, made below a DISTINCT or at once."""
    one = draw(st.sampled_from(exact))
    other = draw(st.sampled_from([index for index in exact if child.types[index] == child.types[one]]))
    kept = _some(draw, exact, 1, 2)
    head = ", ".join(f"{name} AS c{index}" for index, name in enumerate(kept))
    types = (*(child.types[int(name[1:])] for name in kept), child.types[one])
    if draw(st.booleans()):
        sash = (
            f"SELECT {head}, e AS c{len(kept)} FROM ({{a}}) AS a LATERAL VIEW explode(array(c{one}, c{other})) t AS e"
        )
        duck = f"SELECT {head}, unnest([c{one}, c{other}]) AS c{len(kept)} FROM ({{a}}) AS a"
        return child.over(sash, types, duck)
    inner = f"SELECT DISTINCT {', '.join(dict.fromkeys((*kept, f'c{one}', f'c{other}')))} FROM ({{a}}) AS a"
    sash = (
        f"SELECT {head}, e AS c{len(kept)} FROM (SELECT {', '.join(kept)}, array(c{one}, c{other}) AS both "
        f"FROM ({inner})) AS b LATERAL VIEW explode(both) t AS e"
    )
    duck = f"SELECT {head}, unnest([c{one}, c{other}]) AS c{len(kept)} FROM ({inner}) AS b"
    return child.over(sash, types, duck)


def _nested(draw: st.DrawFn, child: Query, exact: tuple[int, ...]) -> Query:
    """Groups by an array and a struct of columns, which are the groups by these columns."""
    keys = _some(draw, exact, 1, 2)
    array, struct = f"array({keys[0]})", f"named_struct('p', {keys[-1]}, 'q', array({keys[-1]}))"
    types = (child.types[int(keys[0][1:])], child.types[int(keys[-1][1:])], "int")
    sash = (
        f"SELECT l[0] AS c0, s.q[0] AS c1, n AS c2 FROM (SELECT {array} AS l, {struct} AS s, COUNT(*) AS n "
        f"FROM ({{a}}) AS a GROUP BY {array}, {struct}) AS b"
    )
    plain = ", ".join(dict.fromkeys(keys))
    duck = f"SELECT {keys[0]} AS c0, {keys[-1]} AS c1, COUNT(*) AS c2 FROM ({{a}}) AS a GROUP BY {plain}"
    return child.over(sash, types, duck)


def _framed(draw: st.DrawFn, child: Query, exact: tuple[int, ...]) -> Query:
    """An aggregate over the rows whose value is near that of the current row; or of the neighbouring rows."""
    numbers = [index for index in exact if child.types[index] == "int"]
    if not numbers:
        return child
    partition, value = _some(draw, exact, 0, 1), draw(st.sampled_from(exact))
    by = f"{'PARTITION BY ' + partition[0] if partition else ''} ORDER BY c{draw(st.sampled_from(numbers))}"
    direction = draw(st.sampled_from(("ASC NULLS FIRST", "DESC NULLS LAST")))
    function = draw(st.sampled_from(("COUNT", "MIN", "MAX")))
    frame = draw(st.sampled_from(_FRAMES))
    call = f"{function}(c{value}) OVER ({by} {direction} {frame})"
    made = "int" if function == "COUNT" else child.types[value]
    listed = ", ".join(names_of(child))
    return child.over(f"SELECT {listed}, {call} AS c{len(child.types)} FROM ({{a}}) AS a", (*child.types, made))
