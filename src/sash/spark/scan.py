"""A scan in Spark's own engine: one pass over a stream for all legs of a job that read it.

The rows have `_ts`, mask columns m0 ... with a bit per filter that accepts them, and columns c0 ... cn. A row that no filter
accepts is kept for its time, with NULL columns, unless some leg reads all rows. An expression that may fail is evaluated only
for rows that the filter of its own legs accepts.

Spark compiles a projection into one method, and Java limits the size of methods. So masks are computed by projections of
`_GROUP` filters each. An expression that may fail reads its columns under names that contain the queries that need it:
Spark's error shows the part of the text that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from pyspark.sql import DataFrame

from sash.physical.channels import MASK_BITS, Scan
from sash.plan.compound import balanced
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Expression, columns_of
from sash.plan.types import type_name
from sash.spark.legs import NO_EXTRA, Extra, micros, named_columns, typed
from sash.spark.scatter import MASK, TIME
from sash.spark.sql_types import stored_column
from sash.spark.stage_errors import queries_in_text
from sash.sql.render import quoted, to_spark_sql

_GROUP = MASK_BITS // 2


def scan_frame(
    scan: Scan,
    stream: DataFrame,
    time: str | None,
    filters: Mapping[int, Sequence[str]],
    columns: Mapping[int, Sequence[str]],
    parked: Collection[str] = (),
    extra: Extra = NO_EXTRA,
) -> DataFrame:
    """Build the rows of a scan. `filters` and `columns` have the queries that need each filter and each column.

    What may fail, and only parked queries need, is not evaluated: such a filter accepts nothing, and such a column is NULL.
    Columns that are `extra` follow.
    """
    used = sorted(
        set().union(*(columns_of(column.expression) for column in scan.columns))
        | set().union(*(columns_of(part) for conjuncts in scan.filters for part in conjuncts))
    )
    schema = scan.stream.schema
    named = [f"{stored_column(stream, schema[index].name)} AS s{index}" for index in used]
    field = schema[scan.stream.time]
    moment = quoted(time) if time is not None else micros(quoted(field.name), field.dtype)
    frame = stream.selectExpr(f"{moment} AS {TIME}", *named, *named_columns(extra))
    tail = list(extra)
    frame, sources = _named_by_queries(frame, scan, used, filters, columns, tail)

    def skipped(expressions: Sequence[Expression], queries: Sequence[str]) -> bool:
        return any(map(may_fail, expressions)) and bool(queries) and set(queries) <= set(parked)

    kept = [quoted(name) for name in frame.columns]
    bits: list[list[str]] = [[] for _ in range(scan.masks)]
    for start in range(0, len(scan.filters), _GROUP):
        group = range(start, min(start + _GROUP, len(scan.filters)))
        made = [
            _bit(scan.filters[number], sources(filters.get(number, ())), number % MASK_BITS)
            for number in group
            if not skipped(scan.filters[number], filters.get(number, ()))
        ]
        name = f"g{start // _GROUP}"
        combined = balanced(made or ["0L"], lambda left, right: f"({left} | {right})")
        frame = frame.selectExpr(*kept, f"{combined} AS {name}")
        kept.append(name)
        bits[start // MASK_BITS].append(name)
    masks = [f"{MASK}{index}" for index in range(scan.masks)]
    if masks:
        joined = [f"({' | '.join(names)}) AS {name}" for names, name in zip(bits, masks, strict=True)]
        frame = frame.selectExpr(*kept[: -sum(map(len, bits))], *joined)
    some = " OR ".join(f"{name} <> 0" for name in masks)
    computed = []
    for index, column in enumerate(scan.columns):
        queries = columns.get(index, ())
        if skipped([column.expression], queries):
            computed.append(f"CAST(NULL AS {type_name(column.expression.dtype)}) AS c{index}")
            continue
        names = sources(queries if may_fail(column.expression) else ())
        sql = to_spark_sql(column.expression, names)
        if column.guard is not None:
            sql = f"CASE WHEN {_accepts(column.guard)} THEN {sql} END"
        elif not scan.everything:
            sql = f"CASE WHEN {some} THEN {sql} END"
        computed.append(f"{typed(sql, column.expression)} AS c{index}")
    return frame.selectExpr(TIME, *masks, *computed, *tail)


def _accepts(number: int) -> str:
    return f"({MASK}{number // MASK_BITS} & {1 << number % MASK_BITS}L) <> 0"


def _bit(conjuncts: Sequence[Expression], sources: Sequence[str], bit: int) -> str:
    """The bit of a filter, if it accepts the row. A conjunct that may fail is evaluated if those before it hold."""
    safe = [to_spark_sql(part, sources) for part in conjuncts if not may_fail(part)]
    condition = balanced(safe, lambda left, right: f"({left} AND {right})") if safe else "true"
    for part in conjuncts:
        if may_fail(part):
            condition = f"(CASE WHEN {condition} THEN {to_spark_sql(part, sources)} END)"
    return f"(CASE WHEN {condition} THEN {1 << bit}L ELSE 0L END)"


def _named_by_queries(
    frame: DataFrame,
    scan: Scan,
    used: Sequence[int],
    filters: Mapping[int, Sequence[str]],
    columns: Mapping[int, Sequence[str]],
    tail: Sequence[str],
) -> tuple[DataFrame, Callable[[Sequence[str]], list[str]]]:
    """Add the columns of what may fail once more, under names with its queries; also returns the names for queries."""
    risky: dict[tuple[str, ...], set[int]] = {}
    for number, conjuncts in enumerate(scan.filters):
        if any(map(may_fail, conjuncts)):
            read = frozenset[int]().union(*map(columns_of, conjuncts))
            risky.setdefault(tuple(filters.get(number, ())), set()).update(read)
    for number, column in enumerate(scan.columns):
        if may_fail(column.expression):
            risky.setdefault(tuple(columns.get(number, ())), set()).update(columns_of(column.expression))

    def names(queries: Sequence[str]) -> list[str]:
        named = tuple(queries) in risky and any(queries)
        return [
            quoted(f"s{index} {queries_in_text(queries)}") if named and index in risky[tuple(queries)] else f"s{index}"
            for index in range(len(scan.stream.schema))
        ]

    added = [
        f"s{index} AS {names(queries)[index]}"
        for queries, read in risky.items()
        if any(queries)
        for index in sorted(read)
    ]
    return frame.selectExpr(TIME, *(f"s{index}" for index in used), *added, *tail) if added else frame, names
