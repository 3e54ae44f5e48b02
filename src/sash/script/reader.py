"""Reads a script, several statements in one text, into the classes of `statements.py`; errors give their position."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from sash.arguments import check_query_name
from sash.errors import OptionError, SqlSyntaxError
from sash.plan.options import MODES
from sash.plan.types import Field, Schema
from sash.script import statements
from sash.script.cursor import Cursor
from sash.script.statements import JobAction, ObjectKind, Position, Statement, Value
from sash.sql.source import SqlText
from sash.sql.type_names import read_type

STARTS = (
    "CREATE", "ALTER", "SELECT", "WITH", "EXPLAIN", "SHOW", "DESCRIBE", "DROP", "STOP", "PAUSE", "RESUME", "KEEP", "ATTACH",
    "SNAPSHOT", "SET",
)  # fmt: skip
"""The keywords with which a statement can start."""

_CREATED: tuple[ObjectKind, ...] = ("STREAM", "RELATION", "QUERY")
_KINDS: tuple[ObjectKind, ...] = (*_CREATED, "WINDOW")
_ACTIONS: tuple[JobAction, ...] = ("STOP", "PAUSE", "RESUME")
_PLURALS: dict[str, Any] = {
    "STREAMS": "STREAM",
    "RELATIONS": "RELATION",
    "QUERIES": "QUERY",
    "WINDOWS": "WINDOW",
    "JOBS": "JOB",
}
_STREAM_CLAUSES = (
    "TIME", "SLACK", "HEARTBEAT", "BAD", "RATE", "PEAK", "DISTINCT", "UNBOUNDED", "PARTITION", "IDLE", "LATE", "MAX",
)  # fmt: skip
_QUERY_CLAUSES = (
    "MODE", "KEY", "TRIGGER", "STRATEGY", "JOIN", "TAU", "PROBE", "PATIENCE", "REORDER", "SEPARATE", "ON", "MAX", "OUTBOX", "WHEN",
    "BACKFILL",
)  # fmt: skip
_AFTER_SINK = ("OPTIONS", *_QUERY_CLAUSES)
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE")
"""The keywords with which a query starts, unless it is in parentheses."""


def read_script(text: str) -> list[Statement]:
    """The statements of a text, separated by semicolons.

    >>> [type(statement).__name__ for statement in read_script("SHOW STREAMS; DESCRIBE sales")]
    ['Show', 'Describe']
    """
    reader = _Reader(SqlText(text))
    found = []
    while reader.more():
        found.append(reader.statement())
    return found


class _Reader(Cursor):
    def more(self) -> bool:
        """Whether another statement follows."""
        while self._mark(";"):
            pass
        return self._next.kind != "end"

    def statement(self) -> Statement:
        """Read the next statement, up to its semicolon."""
        start = self._next
        position = self._position(start)
        self._places = {}
        if start.is_word(*_QUERIES) or start.is_mark("("):
            statement: Statement = statements.Select(position, self._query())
        elif self._word("CREATE"):
            statement = self._create(position)
        elif self._word("ALTER"):
            self._one_of("QUERY")
            statement = self._alter(position)
        elif action := self._word(*_ACTIONS):
            statement = self._control(position, action)
        elif self._word("EXPLAIN"):
            statement = self._explain(position)
        elif self._word("KEEP"):
            statement = self._keep(position)
        elif self._word("ATTACH"):
            name = self._name("the name of a window")
            self._one_of("PATH")
            statement = statements.Attach(position, name, self._string("the path of the window"))
        elif self._word("SNAPSHOT"):
            statement = statements.SnapshotStatement(position, self._query())
        elif self._word("SHOW"):
            statement = statements.Show(position, _PLURALS[self._one_of(*_PLURALS)])
        elif self._word("DESCRIBE", "DESC"):
            self._word(*_CREATED)
            statement = statements.Describe(position, self._name("the name of a stream, relation or query"))
        elif self._word("DROP"):
            kind = cast("ObjectKind", self._one_of(*_KINDS))
            if_exists = bool(self._word("IF") and self._one_of("EXISTS"))
            statement = statements.Drop(position, kind, self._name(f"the name of a {kind.lower()}"), if_exists)
        elif self._word("SET"):
            statement = statements.SetOption(position, *self._assignment())
        else:
            raise self._expected(f"a statement ({', '.join(STARTS)})", STARTS)
        if self._next.kind != "end" and not self._mark(";"):
            raise self._expected("; at the end of the statement")
        return replace(statement, places=self._places)

    def _control(self, position: Position, action: str) -> Statement:
        if action == "RESUME" and self._one_of("QUERY", "JOB") == "QUERY":
            return statements.ResumeQuery(position, self._name("the name of a query"))
        if action != "RESUME":
            self._one_of("JOB")
        what = "the name of a job, in quotes if it has a dot"
        name = self._string(what) if self._next.kind == "string" else self._name(what)
        return statements.ControlJob(position, cast("JobAction", action), name)

    def _create(self, position: Position) -> Statement:
        match self._one_of(*_CREATED, "FUNCTION", "AGGREGATE"):
            case "STREAM":
                declaration = self._declaration("stream")
                clauses = self._clauses(*_STREAM_CLAUSES)
                return statements.CreateStream(position, declaration, **clauses)
            case "RELATION":
                declaration = self._declaration("relation")
                words = ("KEY", "NON", "CHANGES", "REFRESH", "TIME", "HEARTBEAT", "BAD", "ROWS", "DISTINCT")
                return statements.CreateRelation(position, declaration, **self._clauses(*words))
            case "FUNCTION":
                return self._function(position, "function")
            case "AGGREGATE":
                return self._function(position, "aggregate")
            case _:
                return self._continuous_query(position)

    def _function(self, position: Position, what: str) -> statements.CreateFunction:
        """name AS 'module:name' RETURNS type [VERSION '..']."""
        name = self._name(f"a name for the {what}")
        self._one_of("AS")
        self._note("code")
        code = self._string("the code, as 'module:name'")
        self._one_of("RETURNS")
        start = self._next
        if start.kind != "word":
            raise self._expected(f"the type that the {what} returns")
        returns = read_type(self._source, start.start, self._skip((";",), ("VERSION",)))
        version = self._string("a version such as '2'") if self._word("VERSION") else "1"
        return statements.CreateFunction(position, name, what == "aggregate", code, returns, version)

    def _clauses(self, *words: str) -> dict[str, Any]:
        """The clauses that follow, in any order, each at most once: values by the name of the statement's field."""
        seen: set[str] = set()
        found: dict[str, Any] = {}
        while clause := self._clause(seen, *words):
            if clause != "MAX" or "LATE" not in words:
                seen.add(clause)
            self._note(clause.lower())
            match clause:
                case "BAD":
                    self._one_of("ROWS")
                    into = ("INTO",) if "LATE" in words else ()
                    what = self._one_of("FAIL", "DROP", *into)
                    found["bad_rows"] = "fail" if what == "FAIL" else "drop"
                    if what == "INTO":
                        found["bad_rows_into"] = self._kept_in()
                case "LATE":
                    self._one_of("ROWS")
                    self._one_of("INTO")
                    found["late_rows_into"] = self._kept_in()
                case "MAX" if "LATE" in words:
                    self._stream_limit(found)
                case "UNBOUNDED":
                    found["unbounded"] = self._one_of("ALLOW", "REFUSE").lower()
                case "NON":
                    self._one_of("RETROACTIVE")
                    found["retroactive"] = False
                case "PARTITION":
                    self._one_of("BY")
                    found["partition_by"] = self._columns()
                case "IDLE":
                    self._one_of("AFTER")
                    found["idle_after"] = self._string("a time such as '1 minute'")
                case "ON":
                    self._one_of("ERROR")
                    found["on_error"] = self._one_of("SUSPEND", "FAIL").lower()
                case "MAX":
                    self._one_of("STATE")
                    found["max_state"] = self._string("a size such as '1 GB'")
                case "WHEN":
                    self._one_of("COMPLETE")
                    found["when_complete"] = True
                case _:
                    found[clause.lower()] = self._clause_value(clause)
        return found

    def _stream_limit(self, found: dict[str, Any]) -> None:
        """BAD ROWS n PERCENT, JUMP '..', or ROWS PER BATCH n, each at most once after MAX."""
        token = self._next
        what = self._one_of("BAD", "JUMP", "ROWS")
        limit = {"BAD": "max_bad_rows", "JUMP": "max_jump", "ROWS": "max_rows_per_batch"}[what]
        if limit in found:
            raise self._source.error(SqlSyntaxError, f"MAX {what} is given twice", token.start)
        self._places[f"max {what.lower()}"] = self._position(token)
        if what == "JUMP":
            found[limit] = self._string("a time such as '1 day'")
            return
        if what == "ROWS":
            self._one_of("PER")
            self._one_of("BATCH")
            found[limit] = self._number()
            return
        self._one_of("ROWS")
        found[limit] = self._number()
        self._one_of("PERCENT")

    def _clause_value(self, clause: str) -> Any:
        match clause:
            case "TIME":
                return self._name("the name of the time column")
            case "KEY":
                return self._columns()
            case "CHANGES" | "SEPARATE" | "BACKFILL":
                return True
            case "OUTBOX":
                return self._string("a size such as '64 MB'")
            case "MODE":
                return self._one_of(*(mode.upper() for mode in MODES)).lower()
            case "TRIGGER":
                return self._string("'available_now', 'once' or a time such as '1 second'")
            case "STRATEGY" | "JOIN":
                return str(self._value())
            case "PATH":
                return self._string("a path")
            case "RETAIN":
                return self._count()
            case "REORDER":
                return self._one_of("ON", "OFF") == "ON"
            case "RATE" | "PEAK" | "ROWS":
                return self._number()
            case "DISTINCT":
                return self._numbers()
            case _:
                return self._string("a time such as '5 seconds'")

    def _explain(self, position: Position) -> Statement:
        if self._word("JOB"):
            return statements.ExplainJob(position)
        form = self._word("ALL", "ANALYZE", "SNAPSHOT")
        if form == "ANALYZE" and self._next.kind in ("word", "name") and not self._next.is_word(*_QUERIES):
            return statements.Analyze(position, self._name("the name of a query"))
        return statements.Explain(position, self._query(), cast("Any", form.lower() if form else "plan"))

    def _continuous_query(self, position: Position) -> statements.CreateQuery:
        token = self._next
        name = self._name("a name for the query")
        try:
            check_query_name(name)
        except OptionError as problem:
            raise self._source.error(SqlSyntaxError, str(problem), token.start) from None
        self._one_of("AS")
        query = self._query(ends=("INTO",))
        if not self._word("INTO"):
            raise self._expected("INTO and a sink, such as INTO console")
        sink, options = self._sink()
        return statements.CreateQuery(position, name, query, sink, options, **self._clauses(*_QUERY_CLAUSES))

    def _alter(self, position: Position) -> statements.AlterQuery:
        name = self._name("the name of a query")
        if self._one_of("AS", "SET") == "SET":
            clauses = self._clauses(*_QUERY_CLAUSES)
            if not clauses:
                raise self._expected(f"a clause ({', '.join(_QUERY_CLAUSES)})")
            return statements.AlterQuery(position, name, clauses=clauses)
        query = self._query(ends=("INTO",))
        if not self._word("INTO"):
            return statements.AlterQuery(position, name, query)
        sink, options = self._sink()
        return statements.AlterQuery(position, name, query, sink, options, self._clauses(*_QUERY_CLAUSES))

    def _sink(self) -> tuple[str, dict[str, Value]]:
        """sink [OPTIONS] [(options)], or TABLE name [OPTIONS] [(options)]."""
        self._note("sink")
        sink = self._source_name("a sink, such as console or postgres")
        named: dict[str, Value] = {}
        if sink == "table" and self._next.kind in ("word", "name", "string") and not self._next.is_word(*_AFTER_SINK):
            named = {"table": self._dotted("the name of a table")}
        self._word("OPTIONS")
        return sink, {**named, **(self._options() if self._next.is_mark("(") else {})}

    def _kept_in(self) -> tuple[str, dict[str, Value]]:
        """'path' of a changelog, or a sink [(options)]."""
        if self._next.kind == "string":
            return "changelog", {"path": self._string("a path")}
        return self._sink()

    def _keep(self, position: Position) -> statements.Keep:
        name = self._name("the name of a stream")
        lengths: list[Any] = []
        for word in ("WINDOW", "EVERY"):
            self._one_of(word)
            token = self._next
            lengths.append(self._value())
            if isinstance(lengths[-1], bool | float):
                message = f"{word} takes a time such as '60 seconds', or a number of rows"
                raise self._source.error(SqlSyntaxError, message, token.start)
        return statements.Keep(position, name, lengths[0], lengths[1], **self._clauses("PATH", "RETAIN"))

    def _count(self) -> int:
        token = self._next
        value = self._value()
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._source.error(SqlSyntaxError, "expected a number of sub-windows", token.start)
        return value

    def _declaration(self, what: str) -> statements.Declaration:
        """name [(columns)] USING source [OPTIONS (...)]."""
        name = self._name(f"a name for the {what}")
        columns = self._typed_columns() if self._next.is_mark("(") else None
        self._one_of("USING")
        self._note("source")
        source = self._source_name("a source, such as csv or rate")
        options = self._options() if self._word("OPTIONS") else {}
        return statements.Declaration(name, columns, source, options)

    def _typed_columns(self) -> Schema:
        """(name type, ...)."""
        self._need("(")
        fields: list[Field] = []
        while True:
            token = self._next
            name = self._name("the name of a column")
            if name.lower() in {field.name.lower() for field in fields}:
                raise self._source.error(SqlSyntaxError, f"column {name} is declared twice", token.start)
            fields.append(Field(name, self._type()))
            if not self._mark(","):
                break
        self._need(")")
        return tuple(fields)

    def _type(self) -> Any:
        start = self._next
        if start.kind != "word":
            raise self._expected("the type of the column")
        end = self._skip((",", ")"), brackets=("(<", ")>"))
        return read_type(self._source, start.start, end)

    def _query(self, ends: tuple[str, ...] = ()) -> statements.QueryText:
        """The text of a query, up to the semicolon or to one of the keywords."""
        start = self._next
        self._note("query")
        if not (start.is_word(*_QUERIES) or start.is_mark("(")):
            raise self._expected("a query (SELECT ...)", ("SELECT", "WITH"))
        end = self._skip((";",), ends)
        return statements.QueryText(self._source.text[start.start : end], self._position(start))
