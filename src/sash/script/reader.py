"""Scripts: several statements in one text, read into what `statements.py` names, with the place of every mistake."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import ParseError

from sash.errors import SqlSyntaxError, UnsupportedSqlError
from sash.plan.types import Field, Schema
from sash.script.cursor import Cursor
from sash.script.statements import (
    Analyze,
    Attach,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Describe,
    Drop,
    Explain,
    Input,
    Keep,
    Kind,
    Place,
    QueryText,
    Select,
    SetOption,
    Show,
    Snapshot,
    Statement,
)
from sash.sql.source import SqlText
from sash.sql.type_names import type_of

STARTS = ("CREATE", "SELECT", "WITH", "EXPLAIN", "SHOW", "DESCRIBE", "DROP", "KEEP", "ATTACH", "SNAPSHOT", "SET")
"""What a statement can start with."""

_MADE: tuple[Kind, ...] = ("STREAM", "RELATION", "QUERY")
_KINDS: tuple[Kind, ...] = (*_MADE, "WINDOW")
_PLURALS: dict[str, Kind] = {"STREAMS": "STREAM", "RELATIONS": "RELATION", "QUERIES": "QUERY", "WINDOWS": "WINDOW"}
_QUERIES = ("SELECT", "WITH", "FROM")
"""What a query starts with, unless it is in parentheses."""

_MODES = ("changes", "net", "upsert")


def read_script(text: str) -> list[Statement]:
    """The statements of a text, which semicolons part.

    >>> [type(statement).__name__ for statement in read_script("SHOW STREAMS; DESCRIBE sales")]
    ['Show', 'Describe']
    """
    reader = _Reader(SqlText(text))
    statements = []
    while reader.more():
        statements.append(reader.statement())
    return statements


class _Reader(Cursor):
    def more(self) -> bool:
        """Whether another statement follows."""
        while self._mark(";"):
            pass
        return self._next.kind != "end"

    def statement(self) -> Statement:
        """The next one, up to its semicolon."""
        start = self._next
        place = self._place(start)
        if start.is_word("SELECT", "WITH") or start.is_mark("("):
            read: Statement = Select(place, self._query())
        elif self._word("CREATE"):
            read = self._create(place)
        elif self._word("EXPLAIN"):
            read = self._explain(place)
        elif self._word("KEEP"):
            read = self._keep(place)
        elif self._word("ATTACH"):
            name = self._name("the name of a window")
            self._one_of("PATH")
            read = Attach(place, name, self._string("the path in which it is kept"))
        elif self._word("SNAPSHOT"):
            read = Snapshot(place, self._query())
        elif self._word("SHOW"):
            read = Show(place, _PLURALS[self._one_of(*_PLURALS)])
        elif self._word("DESCRIBE", "DESC"):
            self._word(*_MADE)
            read = Describe(place, self._name("the name of a stream, relation or query"))
        elif self._word("DROP"):
            kind = cast("Kind", self._one_of(*_KINDS))
            if_exists = bool(self._word("IF") and self._one_of("EXISTS"))
            read = Drop(place, kind, self._name(f"the name of a {kind.lower()}"), if_exists)
        elif self._word("SET"):
            read = SetOption(place, *self._assignment())
        else:
            raise self._expected(f"a statement ({', '.join(STARTS)})", STARTS)
        if self._next.kind != "end" and not self._mark(";"):
            raise self._expected("; at the end of the statement")
        return read

    def _create(self, place: Place) -> Statement:
        match self._one_of(*_MADE):
            case "STREAM":
                return self._stream(place)
            case "RELATION":
                return self._relation(place)
            case _:
                return self._standing_query(place)

    def _stream(self, place: Place) -> CreateStream:
        given = self._input("stream")
        said = self._clauses("TIME", "SLACK", "HEARTBEAT", "BAD", "RATE", "DISTINCT")
        return CreateStream(
            place,
            given,
            said.get("TIME"),
            said.get("SLACK", "0 seconds"),
            said.get("HEARTBEAT"),
            said.get("BAD", "fail"),
            said.get("RATE"),
            said.get("DISTINCT", {}),
        )

    def _relation(self, place: Place) -> CreateRelation:
        given = self._input("relation")
        said = self._clauses("KEY", "NON", "CHANGES", "REFRESH", "TIME", "HEARTBEAT", "BAD", "ROWS", "DISTINCT")
        return CreateRelation(
            place,
            given,
            said.get("KEY"),
            "NON" not in said,
            "CHANGES" in said,
            said.get("TIME"),
            said.get("HEARTBEAT"),
            said.get("REFRESH"),
            said.get("BAD", "fail"),
            said.get("ROWS"),
            said.get("DISTINCT", {}),
        )

    def _clauses(self, *words: str) -> dict[str, Any]:
        """What is said after a declaration, each word at most once, in any order."""
        said: dict[str, Any] = {}
        while clause := self._clause(said, *words):
            match clause:
                case "TIME":
                    said[clause] = self._name("the name of the time column")
                case "KEY":
                    said[clause] = self._columns()
                case "BAD":
                    self._one_of("ROWS")
                    said[clause] = self._one_of("FAIL", "DROP").lower()
                case "NON":
                    said[clause] = self._one_of("RETROACTIVE")
                case "CHANGES":
                    said[clause] = True
                case "RATE" | "ROWS":
                    said[clause] = self._number()
                case "DISTINCT":
                    said[clause] = self._numbers()
                case _:
                    said[clause] = self._string("a time such as '5 seconds'")
        return said

    def _explain(self, place: Place) -> Statement:
        form = self._word("ALL", "ANALYZE", "SNAPSHOT")
        if form == "ANALYZE" and self._next.kind in ("word", "name") and not self._next.is_word(*_QUERIES):
            return Analyze(place, self._name("the name of a query"))
        return Explain(place, self._query(), cast("Any", form.lower() if form else "plan"))

    def _standing_query(self, place: Place) -> CreateQuery:
        name = self._name("a name for the query")
        self._one_of("AS")
        query = self._query(ends=("INTO",))
        if not self._word("INTO"):
            raise self._expected("INTO and a sink, such as INTO console")
        sink = self._source_name("a sink, such as console or postgres")
        self._word("OPTIONS")
        options = self._options() if self._next.is_mark("(") else {}
        clauses: dict[str, Any] = {}
        while clause := self._clause(clauses, "MODE", "KEY", "TRIGGER", "STRATEGY", "JOIN", "TAU"):
            if clause == "MODE":
                clauses[clause] = self._one_of(*(mode.upper() for mode in _MODES)).lower()
            elif clause == "KEY":
                clauses[clause] = self._columns()
            elif clause == "TRIGGER":
                clauses[clause] = self._string("'available_now', 'once' or a time such as '1 second'")
            elif clause == "TAU":
                clauses[clause] = self._string("a time such as '5 seconds'")
            else:
                clauses[clause] = str(self._value())
        return CreateQuery(
            place,
            name,
            query,
            sink,
            options,
            clauses.get("MODE"),
            clauses.get("KEY"),
            clauses.get("TRIGGER"),
            clauses.get("STRATEGY"),
            clauses.get("JOIN"),
            clauses.get("TAU"),
        )

    def _keep(self, place: Place) -> Keep:
        name = self._name("the name of a stream")
        lengths = []
        for word in ("WINDOW", "EVERY"):
            self._one_of(word)
            token = self._next
            lengths.append(self._value())
            if isinstance(lengths[-1], bool | float):
                message = f"{word} takes a time such as '60 seconds', or a number of rows"
                raise self._source.error(SqlSyntaxError, message, token.start)
        clauses: dict[str, Any] = {}
        while clause := self._clause(clauses, "PATH", "RETAIN"):
            clauses[clause] = self._string("a path") if clause == "PATH" else self._count()
        return Keep(place, name, lengths[0], lengths[1], clauses.get("PATH"), clauses.get("RETAIN", 0))

    def _count(self) -> int:
        token = self._next
        value = self._value()
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._source.error(SqlSyntaxError, "expected a number of sub-windows", token.start)
        return value

    def _input(self, what: str) -> Input:
        """name [(columns)] USING source [OPTIONS (...)]."""
        name = self._name(f"a name for the {what}")
        columns = self._declared() if self._next.is_mark("(") else None
        self._one_of("USING")
        source = self._source_name("a source, such as csv or rate")
        options = self._options() if self._word("OPTIONS") else {}
        return Input(name, columns, source, options)

    def _declared(self) -> Schema:
        """(name type, ...): the columns as they are declared."""
        self._need("(")
        fields: list[Field] = []
        while True:
            token = self._next
            name = self._name("the name of a column")
            if name.lower() in {field.name.lower() for field in fields}:
                raise self._source.error(SqlSyntaxError, f"two columns are called {name}", token.start)
            fields.append(Field(name, self._type()))
            if not self._mark(","):
                break
        self._need(")")
        return tuple(fields)

    def _type(self) -> Any:
        start = self._next
        if start.kind != "word":
            raise self._expected("the type of the column")
        end = self._skip((",", ")"))
        text = self._source.text[start.start : end]
        try:
            node = exp.DataType.build(text, dialect="spark")
            node.meta["start"] = start.start
            return type_of(self._source, node)
        except ParseError:
            raise self._source.error(UnsupportedSqlError, f"Sash has no type {text}", start.start) from None

    def _query(self, ends: tuple[str, ...] = ()) -> QueryText:
        """The text from here to the semicolon, or to one of the words."""
        start = self._next
        if not (start.is_word(*_QUERIES) or start.is_mark("(")):
            raise self._expected("a query (SELECT ...)", ("SELECT", "WITH"))
        end = self._skip((";",), ends)
        return QueryText(self._source.text[start.start : end], self._place(start))
