"""Scripts: several statements in one text, read into what `statements.py` names, with the place of every mistake."""

from __future__ import annotations

from typing import Any, cast

from sqlglot import exp
from sqlglot.errors import ParseError

from sash.errors import SqlSyntaxError, UnsupportedSqlError
from sash.plan.types import Field, Schema
from sash.sql.lexer import Token, tokens_of
from sash.sql.source import Source, did_you_mean
from sash.sql.statements import (
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
    Value,
)
from sash.sql.type_names import type_of

STARTS = ("CREATE", "SELECT", "WITH", "EXPLAIN", "SHOW", "DESCRIBE", "DROP", "KEEP", "SNAPSHOT", "SET")
"""What a statement can start with."""

_MADE: tuple[Kind, ...] = ("STREAM", "RELATION", "QUERY")
_KINDS: tuple[Kind, ...] = (*_MADE, "WINDOW")
_PLURALS: dict[str, Kind] = {"STREAMS": "STREAM", "RELATIONS": "RELATION", "QUERIES": "QUERY", "WINDOWS": "WINDOW"}
_MODES = ("changes", "net", "upsert")


def read_script(text: str) -> list[Statement]:
    """The statements of a text, which semicolons part.

    >>> [type(statement).__name__ for statement in read_script("SHOW STREAMS; DESCRIBE sales")]
    ['Show', 'Describe']
    """
    reader = _Reader(Source(text))
    statements = []
    while reader.more():
        statements.append(reader.statement())
    return statements


class _Reader:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._tokens = tokens_of(source)
        self._at = 0

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

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
            form = self._word("ALL", "ANALYZE")
            read = Explain(place, self._query(), cast("Any", form.lower() if form else "plan"))
        elif self._word("KEEP"):
            read = self._keep(place)
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
        clauses: dict[str, Any] = {}
        while clause := self._clause(clauses, "TIME", "SLACK", "HEARTBEAT", "BAD"):
            if clause == "TIME":
                clauses["TIME"] = self._name("the name of the time column")
            elif clause == "BAD":
                self._one_of("ROWS")
                clauses["BAD"] = self._one_of("FAIL", "DROP").lower()
            else:
                clauses[clause] = self._string("a time such as '5 seconds'")
        return CreateStream(
            place,
            given,
            clauses.get("TIME"),
            clauses.get("SLACK", "0 seconds"),
            clauses.get("HEARTBEAT"),
            clauses.get("BAD", "fail"),
        )

    def _relation(self, place: Place) -> CreateRelation:
        given = self._input("relation")
        clauses: dict[str, Any] = {}
        while clause := self._clause(clauses, "KEY", "NON", "CHANGES"):
            if clause == "NON":
                self._one_of("RETROACTIVE")
            clauses[clause] = self._columns() if clause == "KEY" else True
        return CreateRelation(place, given, clauses.get("KEY"), "NON" not in clauses, "CHANGES" in clauses)

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
        while clause := self._clause(clauses, "MODE", "KEY", "TRIGGER", "STRATEGY"):
            if clause == "MODE":
                clauses[clause] = self._one_of(*(mode.upper() for mode in _MODES)).lower()
            elif clause == "KEY":
                clauses[clause] = self._columns()
            elif clause == "TRIGGER":
                clauses[clause] = self._string("'available_now', 'once' or a time such as '1 second'")
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
        if not (start.is_word("SELECT", "WITH", "FROM") or start.is_mark("(")):
            raise self._expected("a query (SELECT ...)", ("SELECT", "WITH"))
        end = self._skip((";",), ends)
        return QueryText(self._source.text[start.start : end], self._place(start))

    def _skip(self, marks: tuple[str, ...], words: tuple[str, ...] = ()) -> int:
        """Go to the next such mark or word that is not in parentheses; the offset at which what is before it ends."""
        depth, end = 0, self._next.start
        while self._next.kind != "end":
            token = self._next
            if depth == 0 and ((token.kind == "mark" and token.text in marks) or token.is_word(*words)):
                break
            depth += (token.text in "([") - (token.text in ")]") if token.kind == "mark" else 0
            end = token.end
            self._at += 1
        return end

    def _options(self) -> dict[str, Value]:
        """(name value, name = value, ...): the options by name."""
        self._need("(")
        found: dict[str, Value] = {}
        while not self._next.is_mark(")"):
            token = self._next
            name = self._dotted("the name of an option")
            if name.lower() in {known.lower() for known in found}:
                raise self._source.error(SqlSyntaxError, f"option {name} is given twice", token.start)
            self._mark("=")
            found[name] = self._value()
            if not self._mark(","):
                break
        self._need(")")
        return found

    def _assignment(self) -> tuple[str, Value]:
        name = self._dotted("the name of a setting")
        self._need("=")
        return name, self._value()

    def _dotted(self, what: str) -> str:
        """A name of words with dots, or a quoted one."""
        if self._next.kind == "string":
            return self._string(what)
        name = self._name(what)
        while self._mark("."):
            name += f".{self._name(what)}"
        return name

    def _value(self) -> Value:
        sign = "-" if self._mark("-") else ""
        token = self._next
        if token.kind == "number":
            self._at += 1
            return float(sign + token.text) if "." in token.text else int(sign + token.text)
        if sign or token.kind not in ("string", "word", "name"):
            raise self._expected("a value: a 'string', a number, TRUE or FALSE")
        self._at += 1
        if token.is_word("TRUE", "FALSE"):
            return token.is_word("TRUE")
        text = token.text
        while token.kind == "word" and self._mark("-"):  # names of strategies: negative-tuple
            text += f"-{self._name('the rest of the name')}"
        return text

    def _columns(self) -> tuple[str, ...]:
        """(column, ...), perhaps none: the key of an answer of one row."""
        self._need("(")
        names: list[str] = []
        while not self._next.is_mark(")"):
            names.append(self._name("the name of a column"))
            if not self._mark(","):
                break
        self._need(")")
        return tuple(names)

    def _clause(self, seen: dict[str, Any], *words: str) -> str:
        token = self._next
        word = self._word(*words)
        if word and word in seen:
            raise self._source.error(SqlSyntaxError, f"{word} is given twice", token.start)
        if not word and self._next.kind == "word":
            raise self._expected(f"{', '.join(word for word in words if word not in seen)} or ;", words)
        return word

    def _source_name(self, what: str) -> str:
        token = self._next
        return self._string(what) if token.kind == "string" else self._dotted(what).lower()

    def _name(self, what: str) -> str:
        if self._next.kind not in ("word", "name"):
            raise self._expected(what)
        self._at += 1
        return self._tokens[self._at - 1].text

    def _string(self, what: str) -> str:
        if self._next.kind != "string":
            raise self._expected(what)
        self._at += 1
        return self._tokens[self._at - 1].text

    def _word(self, *words: str) -> str:
        """The keyword, if the next token is one of them; else nothing."""
        if not self._next.is_word(*words):
            return ""
        self._at += 1
        return self._tokens[self._at - 1].text.upper()

    def _one_of(self, *words: str) -> str:
        word = self._word(*words)
        if not word:
            raise self._expected(" or ".join(words), words)
        return word

    def _mark(self, mark: str) -> bool:
        if not self._next.is_mark(mark):
            return False
        self._at += 1
        return True

    def _need(self, mark: str) -> None:
        if not self._mark(mark):
            raise self._expected(mark)

    def _place(self, token: Token) -> Place:
        line, column = self._source.position(token.start)
        assert line is not None
        assert column is not None
        return Place(line, column)

    def _expected(self, what: str, words: tuple[str, ...] = ()) -> SqlSyntaxError:
        token = self._next
        found = "the text ends" if token.kind == "end" else f"found {self._source.text[token.start : token.end]}"
        hint = did_you_mean(token.text, words) if token.kind == "word" else ""
        return self._source.error(SqlSyntaxError, f"expected {what}; {found}{hint}", token.start)
