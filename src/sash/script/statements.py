"""The statements of a script: what the shell and jobs can be told, besides the queries themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from sash.errors import SqlSyntaxError
from sash.plan.types import Schema

Value = str | int | float | bool
"""Of an option or a setting."""

Kind = Literal["STREAM", "RELATION", "QUERY", "WINDOW"]

BadRows = Literal["fail", "drop"]
"""What rows without a time do: fail the query, or get dropped and counted."""


@dataclass(frozen=True)
class Place:
    """Where a statement, or a part of it, starts in the script: line and column from 1."""

    line: int
    column: int

    @contextmanager
    def of_errors(self) -> Iterator[None]:
        """Errors that name a place in the part name it in the whole script."""
        try:
            yield
        except SqlSyntaxError as problem:
            if problem.line is None or problem.column is None:
                raise
            problem.move(self.line, self.column)
            raise


@dataclass(frozen=True)
class QueryText:
    """A query as it is written, and where."""

    sql: str
    place: Place


@dataclass(frozen=True)
class Input:
    """Where rows come from: a kind of source and its options; `columns` where they are declared."""

    name: str
    columns: Schema | None
    source: str
    options: Mapping[str, Value]


@dataclass(frozen=True)
class CreateStream:
    """CREATE STREAM name (columns) USING source OPTIONS (...) [TIME c] [SLACK '..'] [HEARTBEAT '..'] [BAD ROWS DROP].

    [RATE n] and [DISTINCT (column n, ...)] are what is known of it.
    """

    place: Place
    input: Input
    time: str | None = None
    slack: str = "0 seconds"
    heartbeat: str | None = None
    bad_rows: BadRows = "fail"
    rate: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateRelation:
    """CREATE RELATION name (columns) USING source OPTIONS (...) [KEY (columns)] [NON RETROACTIVE].

    A table that is read once; with REFRESH '..' again and again; with CHANGES a stream of updates, which may have
    [TIME c] [HEARTBEAT '..'] [BAD ROWS DROP]. [ROWS n] and [DISTINCT (column n, ...)] are what is known of it.
    """

    place: Place
    input: Input
    key: tuple[str, ...] | None = None
    retroactive: bool = True
    changes: bool = False
    time: str | None = None
    heartbeat: str | None = None
    refresh: str | None = None
    bad_rows: BadRows = "fail"
    rows: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CreateQuery:
    """CREATE QUERY name AS SELECT ... INTO sink (options) [MODE m] [KEY (columns)] [TRIGGER '..'].

    How it is executed: [STRATEGY s] [JOIN j] [TAU '..'].
    """

    place: Place
    name: str
    query: QueryText
    sink: str
    options: Mapping[str, Value] = field(default_factory=dict)
    mode: str | None = None
    key: tuple[str, ...] | None = None
    trigger: str | None = None
    strategy: str | None = None
    join: str | None = None
    tau: str | None = None


@dataclass(frozen=True)
class Select:
    """SELECT ...: run it and show its answer."""

    place: Place
    query: QueryText


@dataclass(frozen=True)
class Keep:
    """KEEP stream WINDOW '60 seconds' EVERY '1 second' [PATH '..'] [RETAIN n]: keep its window for SNAPSHOT SELECT.

    Lengths are of time, or both are numbers of rows.
    """

    place: Place
    name: str
    window: Value
    every: Value
    path: str | None = None
    retain: int = 0


@dataclass(frozen=True)
class Attach:
    """ATTACH name PATH '..': ask the window that another process keeps there, under this name."""

    place: Place
    name: str
    path: str


@dataclass(frozen=True)
class Snapshot:
    """SNAPSHOT SELECT ...: one answer, of what is in the windows now."""

    place: Place
    query: QueryText


@dataclass(frozen=True)
class Explain:
    """EXPLAIN [ALL | ANALYZE | SNAPSHOT] SELECT ...: the plan chosen; all plans that were considered; the plan as it ran;
    how a kept window would be read."""

    place: Place
    query: QueryText
    form: Literal["plan", "all", "analyze", "snapshot"] = "plan"


@dataclass(frozen=True)
class Analyze:
    """EXPLAIN ANALYZE name: the plan of a standing query, with what each operator has done."""

    place: Place
    name: str


@dataclass(frozen=True)
class Show:
    """SHOW STREAMS | RELATIONS | QUERIES | WINDOWS."""

    place: Place
    what: Kind


@dataclass(frozen=True)
class Describe:
    """DESCRIBE name."""

    place: Place
    name: str


@dataclass(frozen=True)
class Drop:
    """DROP STREAM | RELATION | QUERY | WINDOW [IF EXISTS] name."""

    place: Place
    what: Kind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class SetOption:
    """SET name = value."""

    place: Place
    name: str
    value: Value


Statement = (
    CreateStream
    | CreateRelation
    | CreateQuery
    | Keep
    | Attach
    | Select
    | Snapshot
    | Explain
    | Analyze
    | Show
    | Describe
    | Drop
    | SetOption
)
