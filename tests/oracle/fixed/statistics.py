"""Aggregates of bits, booleans, pairs and higher moments, MODE and discrete percentiles, with DISTINCT and FILTER."""

from __future__ import annotations

from tests.oracle.case import SCHEMA, case, table
from tests.oracle.duck import View

PAIRS = table(
    "ts k g v x",
    (1, 1, "a", 4, 0.5),
    (1, 2, "b", 7, 1.25),
    (2, 1, "b", -3, 0.5),
    (2, 1, "a", 4, 2.5),
    (3, 2, "b", 7, -8.25),
    (4, None, "a", 3, None),
    (5, 2, None, None, 2.0),
    (5, 1, "c", 12, 1e6),
    (6, 1, "b", 9, 0.25),
    (6, 2, "a", 7, 1.25),
    (7, 1, "a", 4, 2.5),
    (8, 2, "c", -1, 1.25),
    (20, 2, "b", 1, 8.0),
    (21, 2, "b", 1, 8.0),
    (25, None, None, None, None),
)
"""Groups of one row, of equal values and of NULLs; values far apart."""

_FEW = "COUNT(*) FILTER (WHERE v IS NOT NULL AND x IS NOT NULL) < 2"
_FLAT_X = "MIN(x) FILTER (WHERE v IS NOT NULL) = MAX(x) FILTER (WHERE v IS NOT NULL)"
_FLAT_V = "MIN(v) FILTER (WHERE x IS NOT NULL) = MAX(v) FILTER (WHERE x IS NOT NULL)"
_COMOMENTS = {
    "corr(v, x)": f"CASE WHEN {_FEW} OR {_FLAT_X} OR {_FLAT_V} THEN NULL ELSE corr(v, x) END",
    "covar_pop(v, x)": "covar_pop(v, x)",
    "covar_samp(v, x)": f"CASE WHEN {_FEW} THEN NULL ELSE covar_samp(v, x) END",
    "regr_count(v, x)": "regr_count(v, x)::BIGINT",
    "regr_avgx(v, x)": "regr_avgx(v, x)",
    "regr_avgy(v, x)": "regr_avgy(v, x)",
    "regr_sxx(v, x)": "regr_sxx(v, x)",
    "regr_syy(v, x)": "regr_syy(v, x)",
    "regr_sxy(v, x)": "regr_sxy(v, x)",
    "regr_slope(v, x)": f"CASE WHEN {_FEW} OR {_FLAT_X} THEN NULL ELSE regr_slope(v, x) END",
    "regr_intercept(v, x)": f"CASE WHEN {_FEW} OR {_FLAT_X} THEN NULL ELSE regr_intercept(v, x) END",
    "regr_r2(v, x)": f"CASE WHEN {_FEW} OR {_FLAT_X} THEN NULL WHEN {_FLAT_V} THEN 1 ELSE regr_r2(v, x) END",
}

_EVERYTHING = ", ".join(f"{call} AS c{number}" for number, call in enumerate(_COMOMENTS))
_EVERYTHING_DUCK = ", ".join(f"{call} AS c{number}" for number, call in enumerate(_COMOMENTS.values()))


def _moment(power: int, column: str) -> str:
    return f"AVG(pow({column} - m{column}, {power}))"


_SHAPE = (
    "SELECT k, CASE WHEN {low} = {high} THEN NULL ELSE {third} / pow({second}, 1.5) END AS a, "
    "CASE WHEN {low} = {high} THEN NULL ELSE {fourth} / pow({second}, 2) - 3 END AS b FROM "
    "(SELECT *, AVG(v) OVER (PARTITION BY k) AS mv FROM {{s}}) GROUP BY k"
).format(low="MIN(v)", high="MAX(v)", second=_moment(2, "v"), third=_moment(3, "v"), fourth=_moment(4, "v"))

_COUNTED = "(SELECT k, {value}, COUNT(*) AS n FROM {{s}} WHERE {value} IS NOT NULL GROUP BY k, {value})"


def _mode(value: str, direction: str = "ASC") -> str:
    found = f"first({value} ORDER BY n DESC, {value} {direction})"
    counted = _COUNTED.format(value=value)
    return f"SELECT k, a FROM (SELECT DISTINCT k FROM {{s}}) LEFT JOIN (SELECT k AS j, {found} AS a FROM {counted} GROUP BY k) ON k IS NOT DISTINCT FROM j"


CASES = (
    *(
        case(
            f"{name}_moments",
            "",
            {"s": view},
            sash=f"SELECT {by}{_EVERYTHING} FROM {{s}}{group}",
            duck=f"SELECT {by}{_EVERYTHING_DUCK} FROM {{s}}{group}",
            streams={"s": PAIRS},
            schemas={"s": SCHEMA},
            empties=not name.startswith("global"),
        )
        for name, by, group, view in (
            ("pair", "k, ", " GROUP BY k", 5),
            ("global_pair", "", "", 5),
            ("sliding_pair", "k, ", " GROUP BY k", View("s", 6, slide=2)),
            ("counted_pair", "g, ", " GROUP BY g", View("s", rows=6)),
        )
    ),
    case(
        "pair_moments_filter",
        "",
        {"s": 6},
        sash="SELECT k, COVAR_POP(v, x) FILTER (WHERE g = 'a') AS a, REGR_SXX(v, x) FILTER (WHERE x < 100) AS b, "
        "COVAR_POP(DISTINCT v, x) AS c FROM {s} GROUP BY k",
        duck="SELECT k, COVAR_POP(v, x) FILTER (WHERE g = 'a') AS a, REGR_SXX(v, x) FILTER (WHERE x < 100) AS b, "
        "(SELECT COVAR_POP(v, x) FROM (SELECT DISTINCT k, v, x FROM {s}) AS d WHERE d.k IS NOT DISTINCT FROM s.k) AS c "
        "FROM {s} AS s GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
    *(
        case(
            f"{name}_shape",
            "",
            {"s": view},
            sash="SELECT k, SKEWNESS(v) AS a, KURTOSIS(v) AS b FROM {s} GROUP BY k",
            duck=_SHAPE,
            streams={"s": PAIRS},
            schemas={"s": SCHEMA},
        )
        for name, view in (("moving", 7), ("sliding", View("s", 6, slide=4)), ("counted", View("s", rows=7)))
    ),
    case(
        "bits",
        "",
        {"s": 5},
        sash="SELECT k, BIT_AND(v) AS a, BIT_OR(v) AS b, BIT_XOR(v) AS c, BIT_XOR(DISTINCT v) AS d, "
        "BIT_OR(v) FILTER (WHERE v < 5) AS e FROM {s} GROUP BY k",
        duck="SELECT k, BIT_AND(v) AS a, BIT_OR(v) AS b, BIT_XOR(v) AS c, BIT_XOR(DISTINCT v) AS d, "
        "BIT_OR(v) FILTER (WHERE v < 5) AS e FROM {s} GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
    case(
        "booleans",
        "",
        {"s": 5},
        sash="SELECT k, BOOL_AND(v > 3) AS a, EVERY(x > 0) AS b, BOOL_OR(v > 8) AS c, SOME(x < 0) AS d, ANY(g = 'c') AS e, "
        "ANY(v > 3) FILTER (WHERE g = 'b') AS f, BOOL_AND(DISTINCT v > 3) AS h FROM {s} GROUP BY k",
        duck="SELECT k, BOOL_AND(v > 3) AS a, BOOL_AND(x > 0) AS b, BOOL_OR(v > 8) AS c, BOOL_OR(x < 0) AS d, "
        "BOOL_OR(g = 'c') AS e, BOOL_OR(v > 3) FILTER (WHERE g = 'b') AS f, BOOL_AND(v > 3) AS h FROM {s} GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
    *(
        case(
            f"mode_{name}",
            "",
            {"s": view},
            sash=f"SELECT k, {call} AS a FROM {{s}} GROUP BY k",
            duck=_mode(value, direction),
            streams={"s": PAIRS},
            schemas={"s": SCHEMA},
        )
        for name, call, value, direction, view in (
            ("integer", "MODE(v)", "v", "ASC", 5),
            ("string", "MODE(g, true)", "g", "ASC", 6),
            ("descending", "MODE() WITHIN GROUP (ORDER BY x DESC)", "x", "DESC", 6),
            ("counted", "MODE() WITHIN GROUP (ORDER BY v)", "v", "ASC", View("s", rows=6)),
        )
    ),
    case(
        "mode_distinct",
        "",
        {"s": 5},
        sash="SELECT k, MODE(DISTINCT v) AS a, MODE(v) FILTER (WHERE v > 5) AS b FROM {s} GROUP BY k",
        duck="SELECT k, MIN(v) AS a, MIN(v) FILTER (WHERE v > 5) AS b FROM {s} GROUP BY k",
        streams={"s": PAIRS[:8]},
        schemas={"s": SCHEMA},
    ),
    case(
        "discrete_percentiles",
        "",
        {"s": 6},
        sash="SELECT k, PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY v) AS a, "
        "PERCENTILE_DISC(0.3) WITHIN GROUP (ORDER BY v DESC) AS b, PERCENTILE_CONT(0.3) WITHIN GROUP (ORDER BY v DESC) AS c, "
        "PERCENTILE_DISC(0) WITHIN GROUP (ORDER BY x) FILTER (WHERE v > 3) AS d, "
        "PERCENTILE_DISC(1) WITHIN GROUP (ORDER BY x) AS e, MEDIAN(DISTINCT v) AS f FROM {s} GROUP BY k",
        duck="SELECT k, quantile_disc(v, 0.3)::DOUBLE AS a, -quantile_disc(-v, 0.3)::DOUBLE AS b, "
        "-quantile_cont(-v, 0.3) AS c, MIN(x) FILTER (WHERE v > 3) AS d, MAX(x) AS e, median(DISTINCT v) AS f "
        "FROM {s} GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
    case(
        "try_sums",
        "",
        {"s": 5},
        sash="SELECT k, TRY_SUM(v) AS a, TRY_AVG(v) AS b, TRY_SUM(x) AS c, TRY_SUM(DISTINCT v) AS d, "
        "TRY_SUM(v * 1000000000000000000) AS e FROM {s} GROUP BY k",
        duck="SELECT k, SUM(v)::BIGINT AS a, AVG(v) AS b, SUM(x) AS c, SUM(DISTINCT v)::BIGINT AS d, "
        "TRY_CAST(SUM(v::HUGEINT * 1000000000000000000) AS BIGINT) AS e FROM {s} GROUP BY k",
        streams={"s": [row for row in PAIRS if row["v"] is None or row["v"] < 10]},
        schemas={"s": SCHEMA},
    ),
    case(
        "ignore_nulls",
        "",
        {"s": 5},
        sash="SELECT k, FIRST(v) IGNORE NULLS AS a, LAST(x, true) AS b, ANY_VALUE(v) FILTER (WHERE v > 4) IGNORE NULLS AS c, "
        "LAST(v) RESPECT NULLS AS d FROM {s} GROUP BY k",
        duck="SELECT k, first(v ORDER BY ts, g, v) FILTER (WHERE v IS NOT NULL) AS a, "
        "last(x ORDER BY ts, g, v) FILTER (WHERE x IS NOT NULL) AS b, "
        "first(v ORDER BY ts, g, v) FILTER (WHERE v > 4) AS c, last(v ORDER BY ts, g, v) AS d FROM {s} GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
    case(
        "weighted_percentiles",
        "",
        {"s": 6},
        sash="SELECT k, PERCENTILE(v, 0.5, f) AS a, PERCENTILE(x, 0.25, f) FILTER (WHERE v > 3) AS b, "
        "PERCENTILE(DISTINCT v, 0.5, f) AS c, PERCENTILE(v, 0.5, 1) AS d, PERCENTILE(v, 0.5, 3) AS e FROM "
        "(SELECT ts, k, v, x, CAST(LENGTH(g) AS BIGINT) - 1 AS f FROM {s}) GROUP BY k",
        duck="WITH weighed AS (SELECT *, length(g) - 1 AS f FROM {s}), repeated AS (SELECT w.* FROM weighed AS w, range(9) AS t(i) "
        "WHERE i < f), once AS (SELECT w.* FROM (SELECT DISTINCT k, v, f FROM weighed) AS w, range(9) AS t(i) WHERE i < f) "
        "SELECT k, (SELECT quantile_cont(v, 0.5) FROM repeated AS r WHERE r.k IS NOT DISTINCT FROM s.k) AS a, "
        "(SELECT quantile_cont(x, 0.25) FROM repeated AS r WHERE r.k IS NOT DISTINCT FROM s.k AND v > 3) AS b, "
        "(SELECT quantile_cont(v, 0.5) FROM once AS r WHERE r.k IS NOT DISTINCT FROM s.k) AS c, "
        "quantile_cont(v, 0.5) AS d, "
        "(SELECT quantile_cont(v, 0.5) FROM {s} AS r, range(3) WHERE r.k IS NOT DISTINCT FROM s.k) AS e FROM {s} AS s GROUP BY k",
        streams={"s": [{**row, "g": row["g"] and row["g"] * (1 + row["ts"] % 4)} for row in PAIRS]},
        schemas={"s": SCHEMA},
    ),
    case(
        "estimates_are_exact",
        "",
        {"s": 6},
        sash="SELECT k, APPROX_COUNT_DISTINCT(v) AS a, APPROX_PERCENTILE(v, 0.4) AS b, PERCENTILE_APPROX(CAST(g AS DOUBLE), 0.5) FILTER (WHERE v > 1000) AS c, "
        "PERCENTILE_APPROX(x, 0.7, 100) FILTER (WHERE v > 3) AS d, APPROX_COUNT_DISTINCT(g, 0.01) AS e FROM {s} GROUP BY k",
        duck="SELECT k, COUNT(DISTINCT v) AS a, quantile_disc(v, 0.4) AS b, NULL::DOUBLE AS c, "
        "quantile_disc(x, 0.7) FILTER (WHERE v > 3) AS d, COUNT(DISTINCT g) AS e FROM {s} GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
    case(
        "count_distinct_pairs",
        "",
        {"s": 5},
        sash="SELECT k, COUNT(DISTINCT v, g) AS a, COUNT(DISTINCT v, g) FILTER (WHERE x > 1) AS b FROM {s} GROUP BY k",
        duck="SELECT k, COUNT(DISTINCT (v, g)) FILTER (WHERE v IS NOT NULL AND g IS NOT NULL) AS a, "
        "COUNT(DISTINCT (v, g)) FILTER (WHERE v IS NOT NULL AND g IS NOT NULL AND x > 1) AS b FROM {s} GROUP BY k",
        streams={"s": PAIRS},
        schemas={"s": SCHEMA},
    ),
)
