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
    """CREATE STREAM name (columns) USING source OPTIONS (...) [TIME c] [SLACK '..'] [HEARTBEAT '..'] [BAD ROWS DROP]."""

    place: Place
    input: Input
    time: str | None = None
    slack: str = "0 seconds"
    heartbeat: str | None = None
    bad_rows: Literal["fail", "drop"] = "fail"


@dataclass(frozen=True)
class CreateRelation:
    """CREATE RELATION name (columns) USING source OPTIONS (...) [KEY (columns)] [NON RETROACTIVE] [CHANGES]."""

    place: Place
    input: Input
    key: tuple[str, ...] | None = None
    retroactive: bool = True
    changes: bool = False


@dataclass(frozen=True)
class CreateQuery:
    """CREATE QUERY name AS SELECT ... INTO sink (options) [MODE m] [KEY (columns)] [TRIGGER '..'] [STRATEGY s]."""

    place: Place
    name: str
    query: QueryText
    sink: str
    options: Mapping[str, Value] = field(default_factory=dict)
    mode: str | None = None
    key: tuple[str, ...] | None = None
    trigger: str | None = None
    strategy: str | None = None


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
class Snapshot:
    """SNAPSHOT SELECT ...: one answer, of what is in the windows now."""

    place: Place
    query: QueryText


@dataclass(frozen=True)
class Explain:
    """EXPLAIN [ALL | ANALYZE] SELECT ...: the plan chosen; all plans that were considered; the plan as it ran."""

    place: Place
    query: QueryText
    form: Literal["plan", "all", "analyze"] = "plan"


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
    | Select
    | Snapshot
    | Explain
    | Show
    | Describe
    | Drop
    | SetOption
)
