"""Q(T) by recomputation in DuckDB: the rows valid at T, and plain SQL over them.

A query under test comes as two texts: Sash SQL with its window clauses, and DuckDB SQL without any, over views.
A view shows the rows of one stream that are valid at `now`: a stream row at ts is valid in [ts, ts + length), with a
slide s in [ceil(ts/s)*s, ceil((ts+length)/s)*s), in a window of n rows until the n-th row after it arrives. A
relation's rows are valid from their `+` to their `-`, and if it has a key until the next row of their key. Table
`name_rows` has all of them with their start and end: so a query says which version of a non-retroactive relation a row
met (paper 5, Definition 2; `met`). Nothing here knows Sash's parser, plans or operators.
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

Row = Mapping[str, Any]
Rows = Sequence[Row]
Bag = Counter[tuple[Any, ...]]

MICROSECONDS = {"us": 1, "ms": 1_000, "s": 1_000_000}
_END_OF_TIME = 2**62
_EPOCH = datetime.datetime(1970, 1, 1)
_DATABASE = duckdb.connect(config={"threads": 1})


@dataclass(frozen=True)
class View:
    """A stream through a window: of `length` units (None: for ever) on the grid of `slide`, or of the last `rows`
    rows for each value of the `partition` columns. NOW is a length of zero: valid at its own instant only."""

    stream: str
    length: int | None = None
    slide: int | None = None
    rows: int | None = None
    partition: tuple[str, ...] = ()
    aligned: tuple[int, ...] | None = None
    """No window, but rows are assigned to windows: (length, step), valid until `length` after the last multiple of `step`.
    Windows end at multiples of `step`, or of the third number."""
    edges: tuple[int, ...] = ()
    """Further instants, in units, at which the answer may change: a query that reads NOW() changes while no row does."""

    @property
    def drains(self) -> bool:
        """Whether every row leaves the window when time goes on."""
        return self.length is not None or self.aligned is not None


@dataclass(frozen=True)
class Answer:
    """The rows of Q(T) as a bag of tuples, and the names of their columns."""

    columns: tuple[str, ...]
    bag: Bag


class Oracle:
    """The answers of one DuckDB query over the given streams and relations, at any instant."""

    def __init__(
        self,
        duck_sql: str,
        streams: Mapping[str, Rows],
        views: Mapping[str, View],
        relations: Mapping[str, Rows] | None = None,
        schemas: Mapping[str, str] | None = None,
        unit: str = "s",
        keys: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._sql = duck_sql
        self._scale = MICROSECONDS[unit]
        self._connection = _DATABASE.cursor()
        self._connection.execute("PRAGMA disable_optimizer")
        self._edges: set[int] = {0}
        self._answers: dict[int, Answer] = {}
        schemas = schemas or {}
        for name, view in views.items():
            rows = streams[view.stream]
            self._load(name, rows, self._validity(rows, view), schemas.get(view.stream))
            self._edges |= {edge * self._scale for edge in view.edges}
        for name, updates in (relations or {}).items():
            key = (keys or {}).get(name)
            rows, validity = self._versions(updates if key is None else unkeyed(updates, key))
            self._load(name, rows, validity, schemas.get(name))

    def at(self, instant: int) -> Answer:
        """Q(T), for T in the oracle's unit."""
        now = max((edge for edge in self._edges if edge <= instant * self._scale), default=0)
        if now not in self._answers:
            self._connection.execute(f"SET VARIABLE now = {now}")
            self._connection.execute(self._sql)
            columns = tuple(str(column[0]) for column in self._connection.description or ())
            self._answers[now] = Answer(columns, bag_of(self._connection.fetchall()))
        return self._answers[now]

    def instants(self, until: int) -> list[int]:
        """Every instant in [0, until] at which the answer can change, its neighbours, and both ends."""
        edges = {edge // self._scale for edge in self._edges}
        around = {edge + step for edge in edges for step in (-1, 0, 1)} | {0, until}
        return sorted(instant for instant in around if 0 <= instant <= until)

    def last_edge(self) -> int:
        """The last instant, in units and rounded up, at which a row arrives or expires."""
        return -(-max(self._edges) // self._scale)

    def close(self) -> None:
        """Give the tables back."""
        self._connection.close()

    def _validity(self, rows: Rows, view: View) -> list[tuple[int, int]]:
        starts = [self._start(row) for row in rows]
        if view.rows is not None:
            return self._validity_by_count(rows, view)
        if view.aligned is not None:
            length, step, *others = (self._scale * part for part in view.aligned)
            grain = others[0] if others else step
            ends = [start // step * step + length for start in starts]
            self._edges |= {edge for start, end in zip(starts, ends, strict=True) for edge in range(end, start, -grain)}
            return list(zip(starts, ends, strict=True))
        if view.length is None:
            return [(start, _END_OF_TIME) for start in starts]
        length = view.length * self._scale if view.length else 1
        if view.slide is None:
            return [(start, start + length) for start in starts]
        grid = view.slide * self._scale
        return [(-(-start // grid) * grid, -(-(start + length) // grid) * grid) for start in starts]

    def _validity_by_count(self, rows: Rows, view: View) -> list[tuple[int, int]]:
        """A row leaves when `rows` later ones are there; order is by ts, then by all columns, NULLs first."""

        def order(index: int) -> tuple[Any, ...]:
            row = rows[index]
            return (row["ts"], *((value is not None, value) for value in row.values()))

        validity: list[tuple[int, int]] = [(0, 0)] * len(rows)
        queues: dict[tuple[Any, ...], list[int]] = {}
        for index in sorted(range(len(rows)), key=order):
            queues.setdefault(tuple(rows[index][column] for column in view.partition), []).append(index)
        for queue in queues.values():
            for place, index in enumerate(queue):
                after = place + (view.rows or 0)
                end = rows[queue[after]]["ts"] * self._scale if after < len(queue) else _END_OF_TIME
                validity[index] = (rows[index]["ts"] * self._scale, end)
        return validity

    def _versions(self, updates: Rows) -> tuple[list[Row], list[tuple[int, int]]]:
        """A relation's rows and when each is there; rows without `_op` are there for ever."""
        rows: list[Row] = []
        validity: list[tuple[int, int]] = []
        if not any("_op" in update for update in updates):
            return list(updates), [(0, _END_OF_TIME)] * len(updates)
        for update in sorted(updates, key=lambda update: (update["ts"], update["_op"])):
            at = update["ts"] * self._scale
            row = {name: value for name, value in update.items() if name not in ("ts", "_op")}
            if update["_op"] == "+":
                rows.append(row)
                validity.append((at, _END_OF_TIME))
            else:
                live = (i for i, old in enumerate(rows) if old == row and validity[i][1] == _END_OF_TIME)
                index = next(live, None)
                if index is not None:
                    validity[index] = (validity[index][0], at)
        return rows, validity

    def _start(self, row: Row) -> int:
        """When a row arrives, in microseconds: its `ts` is in the oracle's unit, or a datetime."""
        ts = row["ts"]
        if not isinstance(ts, datetime.datetime):
            return int(ts * self._scale)
        return (naive(ts) - _EPOCH) // datetime.timedelta(microseconds=1)

    def _value(self, value: object, dtype: str) -> object:
        """A value as DuckDB takes it: a number in a column of times is a time in the oracle's unit."""
        if dtype.startswith("TIMESTAMP") and isinstance(value, int):
            return _EPOCH + datetime.timedelta(microseconds=value * self._scale)
        return naive(value) if isinstance(value, datetime.datetime) else value

    def _load(self, name: str, rows: Rows, validity: list[tuple[int, int]], schema: str | None) -> None:
        """Table `name_rows` with every row and its start and end; view `name` with the rows valid at `now`."""
        columns = declared(schema) if schema else inferred(rows)
        declarations = "".join(f', "{column}" {dtype}' for column, dtype in columns.items())
        self._connection.execute(f'CREATE TEMP TABLE "{name}_rows" (start_ BIGINT, end_ BIGINT{declarations})')
        values = [
            value
            for row, (start, end) in zip(rows, validity, strict=True)
            for value in (start, end, *(self._value(row.get(column), dtype) for column, dtype in columns.items()))
        ]
        if rows:
            marks = ", ".join(["(" + ", ".join("?" * (len(columns) + 2)) + ")"] * len(rows))
            self._connection.execute(f'INSERT INTO "{name}_rows" VALUES {marks}', values)
        names = ", ".join(f'"{column}"' for column in columns)
        self._connection.execute(
            f'CREATE TEMP VIEW "{name}" AS SELECT {names} FROM "{name}_rows" '
            "WHERE start_ <= getvariable('now') AND getvariable('now') < end_"
        )
        self._edges |= {edge for pair in validity for edge in pair if edge < _END_OF_TIME}


def unkeyed(updates: Rows, key: Sequence[str]) -> list[Row]:
    """Updates by key as updates of a bag: the rows that a `+` replaces and that a `-` deletes are written out.

    At one instant the `-` come first; of several `+` of one key the largest row holds.
    """

    def order(update: Row) -> tuple[Any, ...]:
        return (update["ts"], update["_op"] == "+", *((value is not None, value) for value in update.values()))

    changes: list[Row] = []
    now: dict[tuple[Any, ...], Row] = {}
    for update in sorted(updates, key=order):
        old = now.pop(tuple(update[column] for column in key), None)
        if old is not None:
            changes.append({**old, "ts": update["ts"], "_op": "-"})
        if update["_op"] == "+":
            now[tuple(update[column] for column in key)] = update
            changes.append(update)
    return changes


def met(relation: str, moment: str, unit: str = "s") -> str:
    """The condition under which a row that came at `moment` met a row of `name_rows AS relation`."""
    return (
        f"({relation}.start_ < {moment} * {MICROSECONDS[unit]} AND {moment} * {MICROSECONDS[unit]} <= {relation}.end_)"
    )


def declared(schema: str) -> dict[str, str]:
    """The columns of `ts BIGINT, price DECIMAL(10, 2)`, whose types DuckDB and Spark name alike, but for TIMESTAMP_NTZ.

    >>> declared("ts BIGINT, price DECIMAL(10, 2)")
    {'ts': 'BIGINT', 'price': 'DECIMAL(10, 2)'}
    """
    columns: dict[str, str] = {}
    for part in schema.replace("TIMESTAMP_NTZ", "TIMESTAMP").replace(", ", ",").replace(",", ", ").split(", "):
        name, blank, dtype = part.strip().partition(" ")
        if blank:
            columns[name] = dtype
        else:
            last = next(reversed(columns))
            columns[last] += ", " + name
    return columns


def inferred(rows: Rows) -> dict[str, str]:
    """The columns of some rows, each with the type of its first value that is not NULL."""
    columns: dict[str, str] = {}
    for row in rows:
        for name, value in row.items():
            if value is not None:
                columns.setdefault(name, _type_of(value, [other.get(name) for other in rows]))
            elif all(other.get(name) is None for other in rows):
                raise ValueError(f"column {name} holds only NULLs: give its schema")
    order = {name: None for row in rows for name in row}
    return {name: columns[name] for name in order}


def _type_of(value: object, column: Iterable[object]) -> str:
    match value:
        case bool():
            return "BOOLEAN"
        case int():
            return "BIGINT"
        case float():
            return "DOUBLE"
        case str():
            return "VARCHAR"
        case decimal.Decimal():
            scale = max(-int(v.as_tuple().exponent) for v in column if isinstance(v, decimal.Decimal))
            return f"DECIMAL(18, {scale})"
        case datetime.datetime():
            return "TIMESTAMP"
        case datetime.date():
            return "DATE"
        case bytes():
            return "BLOB"
    raise TypeError(f"no column type for {value!r}")


def naive(value: datetime.datetime) -> datetime.datetime:
    """The datetime in UTC, without a zone."""
    return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo else value


def canonical(value: object) -> object:
    """A value as it is compared: with its type, so that 1, 1.0 and TRUE differ; NaN equal to itself."""
    match value:
        case None:
            return ("null", None)
        case float():
            return ("double", "NaN" if math.isnan(value) else value + 0.0)
        case datetime.datetime():
            return ("timestamp", naive(value))
        case list() | tuple():
            return ("array", tuple(map(canonical, value)))
        case dict():
            return ("struct", tuple((name, canonical(inner)) for name, inner in value.items()))
        case _:
            return (type(value).__name__, value)


def bag_of(rows: Iterable[Iterable[object]]) -> Bag:
    """Rows as a bag of canonical tuples."""
    return Counter(tuple(canonical(value) for value in row) for row in rows)
