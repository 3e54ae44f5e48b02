"""The statements of a script, as the reader makes them and a session executes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from sash.errors import SashError, SqlSyntaxError
from sash.plan.options import BadRows, Mode
from sash.plan.types import Schema

Value = str | int | float | bool
"""The value of an option or a setting."""

ObjectKind = Literal["STREAM", "RELATION", "QUERY", "WINDOW"]
"""The objects that DROP drops."""

JobAction = Literal["STOP", "PAUSE", "RESUME"]
"""What can be done with a running job."""

OnError = Literal["fail", "suspend"]
"""What an error of one query does: it fails the job, or suspends the query."""


@dataclass(frozen=True)
class Position:
    """Line and column, both from 1, at which a statement or a part of it starts in the script."""

    line: int
    column: int

    @contextmanager
    def relocate_errors(self) -> Iterator[None]:
        """Turn positions in the part, in errors raised meanwhile, into positions in the script."""
        try:
            yield
        except SqlSyntaxError as problem:
            if problem.line is not None and problem.column is not None:
                problem.move(self.line, self.column)
            raise


@dataclass(frozen=True)
class QueryText:
    """The text of a query within a script, and its position."""

    sql: str
    position: Position


@dataclass(frozen=True)
class Declaration:
    """name [(columns)] USING source [OPTIONS (...)]: where the rows of a stream or relation come from."""

    name: str
    columns: Schema | None
    source: str
    options: Mapping[str, Value]


@dataclass(frozen=True)
class Positioned:
    """The base of all statements, which have a position in the script; `places` are those of their clauses."""

    position: Position
    places: Mapping[str, Position] = field(default_factory=dict, kw_only=True, compare=False, repr=False)

    def place(self, part: str | None) -> Position:
        """The position of a clause, by which the whole statement is meant if it is unknown."""
        return self.places.get(part or "", self.position)


@contextmanager
def about(part: str) -> Iterator[None]:
    """Note in errors raised meanwhile that they are about this clause of a statement."""
    try:
        yield
    except SashError as problem:
        problem.part = problem.part or part
        raise


@contextmanager
def about_query(name: str) -> Iterator[None]:
    """Note in errors raised meanwhile that they are about the query of this name."""
    try:
        yield
    except SashError as problem:
        problem.query = problem.query or name
        raise


@dataclass(frozen=True)
class CreateStream(Positioned):
    """CREATE STREAM name (columns) USING source OPTIONS (...) [TIME c] [SLACK '..'] [HEARTBEAT '..'] [BAD ROWS DROP].

    [PARTITION BY (columns)] [IDLE AFTER '..'] are for streams whose partitions may be out of step. [BAD ROWS INTO target]
    and [LATE ROWS INTO target] keep dropped rows, in a sink with its options; [MAX BAD ROWS n PERCENT] bounds them. [MAX JUMP '..']
    drops rows that are further in the future. [MAX ROWS PER BATCH n] bounds what a batch reads.

    With [UNBOUNDED ALLOW] queries may keep all its rows for ever. [RATE n], [PEAK n] and [DISTINCT (column n, ...)] give statistics to
    the optimizer.
    """

    declaration: Declaration
    time: str | None = None
    slack: str = "0 seconds"
    heartbeat: str | None = None
    bad_rows: BadRows = "fail"
    rate: float | None = None
    distinct: Mapping[str, float] = field(default_factory=dict)
    unbounded: str = "refuse"
    partition_by: tuple[str, ...] | None = None
    idle_after: str | None = None
    bad_rows_into: tuple[str, Mapping[str, Value]] | None = None
    late_rows_into: tuple[str, Mapping[str, Value]] | None = None
    max_bad_rows: float | None = None
    max_jump: str | None = None
    max_rows_per_batch: int | None = None
    peak: float | None = None


@dataclass(frozen=True)
class CreateRelation(Positioned):
    """CREATE RELATION name (columns) USING source OPTIONS (...) [KEY (columns)] [NON RETROACTIVE].

    The source is a table that is read once, or, with REFRESH '..', periodically. With CHANGES it is a stream of updates,
    which may have [TIME c] [HEARTBEAT '..'] [BAD ROWS DROP]. [ROWS n] and [DISTINCT (column n, ...)] give statistics.
    """

    declaration: Declaration
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
class CreateFunction(Positioned):
    """CREATE FUNCTION name AS 'module:function' RETURNS type [VERSION '..'], or CREATE AGGREGATE with a class."""

    name: str
    aggregate: bool
    code: str
    returns: pa.DataType
    version: str = "1"


@dataclass(frozen=True)
class CreateQuery(Positioned):
    """CREATE QUERY name AS SELECT ... INTO sink (options) [MODE m] [KEY (columns)] [TRIGGER '..'].

    [STRATEGY s] [JOIN j] [REORDER ON | OFF] [TAU '..'] [PROBE '..'] [PATIENCE '..'] choose how it is executed. Queries with
    the same trigger are one job; SEPARATE makes the query one of its own. In a job, [ON ERROR SUSPEND | FAIL] says what an error of this query does, [MAX STATE '1 GB']
    suspends it when its state grows beyond that size, and [OUTBOX '64 MB'] bounds the changes that are kept while it is
    suspended. With WHEN COMPLETE its sink gets nothing before the answer is complete; BACKFILL completes it at once, by
    reading its sources again.
    """

    name: str
    query: QueryText
    sink: str
    options: Mapping[str, Value] = field(default_factory=dict)
    mode: Mode | None = None
    key: tuple[str, ...] | None = None
    trigger: str | None = None
    strategy: str | None = None
    join: str | None = None
    tau: str | None = None
    probe: str | None = None
    patience: str | None = None
    reorder: bool | None = None
    separate: bool = False
    on_error: OnError = "fail"
    max_state: str | None = None
    outbox: str | None = None
    when_complete: bool = False
    backfill: bool = False


@dataclass(frozen=True)
class AlterQuery(Positioned):
    """ALTER QUERY name AS SELECT ... [INTO sink (options) clauses], or ALTER QUERY name SET clauses.

    Without INTO, the sink and the clauses stay as they are. `query` and `sink` are None, and `clauses` empty, for what
    stays; with a sink, clauses that are not given have their defaults.
    """

    name: str
    query: QueryText | None = None
    sink: str | None = None
    options: Mapping[str, Value] = field(default_factory=dict)
    clauses: Mapping[str, Any] = field(default_factory=dict)

    def applied_to(self, old: CreateQuery) -> CreateQuery:
        """The statement that would have created the altered query."""
        query = old.query if self.query is None else self.query
        places = {**old.places, **self.places}
        if self.sink is None:
            return replace(old, position=self.position, query=query, places=places, **self.clauses)
        return CreateQuery(self.position, old.name, query, self.sink, self.options, places=self.places, **self.clauses)


@dataclass(frozen=True)
class ResumeQuery(Positioned):
    """RESUME QUERY name: let a suspended query run again."""

    name: str


@dataclass(frozen=True)
class ControlJob(Positioned):
    """STOP | PAUSE | RESUME JOB name: steer a job of this session, or of another process of the user's."""

    action: JobAction
    name: str


@dataclass(frozen=True)
class Select(Positioned):
    """SELECT ...: run the query and show its answer."""

    query: QueryText


@dataclass(frozen=True)
class Keep(Positioned):
    """KEEP stream WINDOW '60 seconds' EVERY '1 second' [PATH '..'] [RETAIN n]: keep its window for SNAPSHOT SELECT.

    WINDOW and EVERY are both lengths of time, or both numbers of rows.
    """

    name: str
    window: str | int
    every: str | int
    path: str | None = None
    retain: int = 0


@dataclass(frozen=True)
class Attach(Positioned):
    """ATTACH name PATH '..': read the window that another process keeps there, under this name."""

    name: str
    path: str


@dataclass(frozen=True)
class SnapshotStatement(Positioned):
    """SNAPSHOT SELECT ...: answer the query once, from the current contents of a kept window."""

    query: QueryText


@dataclass(frozen=True)
class Explain(Positioned):
    """EXPLAIN [ALL | ANALYZE | SNAPSHOT] SELECT ....

    It shows the chosen plan; ALL adds the rejected ones; ANALYZE runs the query first and adds what each operator did;
    SNAPSHOT shows how a kept window would be read.
    """

    query: QueryText
    form: Literal["plan", "all", "analyze", "snapshot"] = "plan"


@dataclass(frozen=True)
class ExplainJob(Positioned):
    """EXPLAIN JOB: the dataflow of all queries so far, with what they share."""


@dataclass(frozen=True)
class Analyze(Positioned):
    """EXPLAIN ANALYZE name: the plan of a running query, with what each operator has done so far."""

    name: str


@dataclass(frozen=True)
class Show(Positioned):
    """SHOW STREAMS | RELATIONS | QUERIES | WINDOWS | JOBS."""

    what: ObjectKind | Literal["JOB"]


@dataclass(frozen=True)
class Describe(Positioned):
    """DESCRIBE name."""

    name: str


@dataclass(frozen=True)
class Drop(Positioned):
    """DROP STREAM | RELATION | QUERY | WINDOW [IF EXISTS] name."""

    what: ObjectKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class SetOption(Positioned):
    """SET name = value."""

    name: str
    value: Value


_Change = (
    CreateStream
    | CreateRelation
    | CreateFunction
    | CreateQuery
    | AlterQuery
    | ResumeQuery
    | Keep
    | Attach
    | Drop
    | SetOption
)
Statement = _Change | ControlJob | Select | SnapshotStatement | Explain | ExplainJob | Analyze | Show | Describe
