"""Random queries with any aggregate there is, over columns of a stream, each written in both dialects at once."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.case import SCHEMA, Case, clause
from tests.oracle.duck import View
from tests.oracle.strategies import (
    Query,
    filtered,
    joined,
    made_distinct,
    predicates,
    sources,
    streams,
    topped,
    windows,
)

_BY_TIME = "ORDER BY {first}ts, k NULLS FIRST, g NULLS FIRST, v NULLS FIRST, x NULLS FIRST"
_TIMED = _BY_TIME.format(first="")
_FEW = "COUNT(*) FILTER (WHERE v IS NOT NULL AND x IS NOT NULL) < 2"
_FLAT_X = "MIN(x) FILTER (WHERE v IS NOT NULL) = MAX(x) FILTER (WHERE v IS NOT NULL)"
_FLAT_V = "MIN(v) FILTER (WHERE x IS NOT NULL) = MAX(v) FILTER (WHERE x IS NOT NULL)"
_SECOND = "(AVG(v * v) - AVG(v) ** 2)"
_THIRD = "(AVG(v ** 3) - 3 * AVG(v) * AVG(v * v) + 2 * AVG(v) ** 3)"
_FOURTH = "(AVG(v ** 4) - 4 * AVG(v) * AVG(v ** 3) + 6 * AVG(v) ** 2 * AVG(v * v) - 3 * AVG(v) ** 4)"
_SAME = "CASE WHEN MIN(v) = MAX(v) THEN NULL ELSE {} END"

AGGREGATES: dict[str, tuple[str, str]] = {
    "COUNT(*)": ("COUNT(*)", "int"),
    "COUNT(v)": ("COUNT(v)", "int"),
    "COUNT(DISTINCT g)": ("COUNT(DISTINCT g)", "int"),
    "COUNT_IF(v > 1)": ("COUNT(*) FILTER (WHERE v > 1)", "int"),
    "SUM(v)": ("SUM(v)::BIGINT", "int"),
    "SUM(x)": ("SUM(x)", "double"),
    "SUM(DISTINCT x)": ("SUM(DISTINCT x)", "double"),
    "TRY_SUM(v)": ("SUM(v)::BIGINT", "int"),
    "AVG(x)": ("AVG(x)", "real"),
    "MEAN(v)": ("AVG(v)", "real"),
    "TRY_AVG(v)": ("AVG(v)", "real"),
    "MIN(v)": ("MIN(v)", "int"),
    "MIN(g)": ("MIN(g)", "str"),
    "MAX(x)": ("MAX(x)", "double"),
    "MAX(g)": ("MAX(g)", "str"),
    "BOOL_AND(v > 1)": ("CAST(BOOL_AND(v > 1) AS VARCHAR)", "str"),
    "ANY(v > 2)": ("CAST(BOOL_OR(v > 2) AS VARCHAR)", "str"),
    "BIT_AND(v)": ("BIT_AND(v)", "int"),
    "BIT_OR(v)": ("BIT_OR(v)", "int"),
    "BIT_XOR(v)": ("BIT_XOR(v)", "int"),
    "VAR_POP(v)": ("VAR_POP(v)", "real"),
    "VAR_SAMP(x)": ("VAR_SAMP(x)", "real"),
    "STDDEV_POP(x)": ("STDDEV_POP(x)", "real"),
    "STDDEV(v)": ("STDDEV_SAMP(v)", "real"),
    "SKEWNESS(v)": (_SAME.format(f"{_THIRD} / {_SECOND} ** 1.5"), "real"),
    "KURTOSIS(v)": (_SAME.format(f"{_FOURTH} / {_SECOND} ** 2 - 3"), "real"),
    "CORR(v, x)": (f"CASE WHEN {_FEW} OR {_FLAT_X} OR {_FLAT_V} THEN NULL ELSE corr(v, x) END", "real"),
    "COVAR_POP(v, x)": ("COVAR_POP(v, x)", "real"),
    "COVAR_SAMP(v, x)": (f"CASE WHEN {_FEW} THEN NULL ELSE covar_samp(v, x) END", "real"),
    "REGR_COUNT(v, x)": ("regr_count(v, x)::BIGINT", "int"),
    "REGR_AVGX(v, x)": ("regr_avgx(v, x)", "real"),
    "REGR_AVGY(v, x)": ("regr_avgy(v, x)", "real"),
    "REGR_SXX(v, x)": ("regr_sxx(v, x)", "real"),
    "REGR_SYY(v, x)": ("regr_syy(v, x)", "real"),
    "REGR_SXY(v, x)": ("regr_sxy(v, x)", "real"),
    "REGR_SLOPE(v, x)": (f"CASE WHEN {_FEW} OR {_FLAT_X} THEN NULL ELSE regr_slope(v, x) END", "real"),
    "REGR_INTERCEPT(v, x)": (f"CASE WHEN {_FEW} OR {_FLAT_X} THEN NULL ELSE regr_intercept(v, x) END", "real"),
    "REGR_R2(v, x)": (
        f"CASE WHEN {_FEW} OR {_FLAT_X} THEN NULL WHEN {_FLAT_V} THEN 1 ELSE regr_r2(v, x) END",
        "real",
    ),
    "MODE(v)": ("mode(v ORDER BY v)", "int"),
    "MEDIAN(v)": ("MEDIAN(v)", "double"),
    "PERCENTILE(x, 0.75)": ("quantile_cont(x, 0.75)", "double"),
    "PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY v)": ("quantile_cont(v, 0.3)", "real"),
    "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY v)": ("quantile_disc(v, 0.3)::DOUBLE", "double"),
    "APPROX_PERCENTILE(v, 0.4)": ("quantile_disc(v, 0.4)", "int"),
    "APPROX_COUNT_DISTINCT(v)": ("COUNT(DISTINCT v)", "int"),
    "MIN_BY(g, v)": (f"first(g {_BY_TIME.format(first='v, ')}) FILTER (WHERE v IS NOT NULL)", "str"),
    "MAX_BY(v, x)": (f"last(v {_BY_TIME.format(first='x, ')}) FILTER (WHERE x IS NOT NULL)", "int"),
    "FIRST(v)": (f"first(v {_TIMED})", "int"),
    "LAST(g)": (f"last(g {_TIMED})", "str"),
    "LAST(v) IGNORE NULLS": (f"last(v {_TIMED}) FILTER (WHERE v IS NOT NULL)", "int"),
    "ANY_VALUE(x)": (f"first(x {_TIMED})", "double"),
    "COLLECT_LIST(v)": (f"COALESCE(list(v {_TIMED}) FILTER (WHERE v IS NOT NULL), [])", "real"),
    "LISTAGG(g, ',')": (f"string_agg(g, ',' {_TIMED})", "str"),
}
"""Aggregates of Sash -> of DuckDB, over columns ts, k, g, v and x, and the type of the result."""

_AS_TEXT = ("BOOL_AND", "ANY(")
"""Booleans become text, since columns of queries are numbers and texts."""


@st.composite
def aggregate_cases(draw: st.DrawFn) -> Case:
    """One to four aggregates, each as often as any other, over a stream; sometimes something above them."""
    view = draw(windows("s"))
    if draw(st.integers(0, 7)) == 7:
        view = View("s", 0)
    keys = draw(st.sampled_from((("k",), ("k",), ("g",), ("g", "k"), ())))
    calls = draw(st.lists(st.sampled_from(tuple(AGGREGATES)), min_size=1, max_size=4, unique=True))
    where = f" WHERE {draw(predicates(('k', 'x'), ('int', 'double')))}" if draw(st.integers(0, 3)) == 3 else ""
    group = f" GROUP BY {', '.join(keys)}" if keys else ""
    types = (*("str" if key == "g" else "int" for key in keys), *(AGGREGATES[call][1] for call in calls))

    def text(columns: list[str], source: str) -> str:
        listed = ", ".join(f"{column} AS c{number}" for number, column in enumerate((*keys, *columns)))
        return f"SELECT {listed} FROM {source}{where}{group}"

    sash = [f"CAST({call} AS STRING)" if call.startswith(_AS_TEXT) else call for call in calls]
    query = Query(
        text(sash, f"s {clause(view, 's')}"),
        text([AGGREGATES[call][0] for call in calls], "w"),
        types,
        (("w", view),),
        bool(keys),
    )
    match draw(st.integers(0, 7)):
        case 0:
            query = filtered(draw, query)
        case 1:
            query = made_distinct(query)
        case 2:
            query = topped(draw, query)
        case 3:
            query = joined(draw, "join", query, draw(sources()))
    views = dict(query.views)
    names = sorted({one.stream for one in views.values()})
    rows = {name: draw(streams(10)) for name in names}
    return Case(
        "aggregates", query.sash, query.duck, rows, views, schemas=dict.fromkeys(names, SCHEMA), empties=query.empties
    )
