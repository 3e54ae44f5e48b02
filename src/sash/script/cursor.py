"""The tokens of a script, and a cursor over them. `sash.sql` parses the queries.

Strings are in '...' or "..." (a doubled quote or a backslash escapes), names may be in `...`, comments are -- and /* */.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from sash.arguments import whole_number
from sash.errors import SqlSyntaxError
from sash.script.statements import Position, Value
from sash.sql.source import SqlText, did_you_mean

TokenKind = Literal["word", "name", "string", "number", "mark", "end"]

_PATTERN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)+`)
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<open>['"`]|/\*)
    |(?P<mark>.)""",
    re.VERBOSE | re.DOTALL,
)
_OPEN = {"'": "this string", '"': "this string", "`": "this name", "/*": "this comment"}
_MOST = 2**63 - 1
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0"}


@dataclass(frozen=True)
class Token:
    """A word, `name`, 'string', number or punctuation mark; `text` is unquoted, `start` and `end` are offsets."""

    kind: TokenKind
    text: str
    start: int
    end: int

    def is_word(self, *words: str) -> bool:
        """Whether the token is one of these keywords, in any case."""
        return self.kind == "word" and self.text.upper() in words

    def is_mark(self, mark: str) -> bool:
        """Whether the token is this punctuation mark."""
        return self.kind == "mark" and self.text == mark


def tokenize(source: SqlText) -> list[Token]:
    """The tokens of a text; the last one is of kind `end`."""
    found: list[Token] = []
    for match in _PATTERN.finditer(source.text):
        kind, text = match.lastgroup, match.group()
        if kind == "open":
            raise source.error(SqlSyntaxError, f"{_OPEN[text]} is not closed", match.start())
        if kind == "string":
            found.append(Token("string", _unquoted(text), match.start(), match.end()))
        elif kind == "name":
            found.append(Token("name", text[1:-1].replace("``", "`"), match.start(), match.end()))
        elif kind in ("number", "word", "mark"):
            found.append(Token(kind, text, match.start(), match.end()))  # type: ignore[arg-type]
    return [*found, Token("end", "", len(source.text), len(source.text))]


def _unquoted(text: str) -> str:
    """The string without its quotes and escapes.

    >>> _unquoted("'it''s'")
    "it's"
    """
    inner = text[1:-1].replace(text[0] * 2, text[0])
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), inner, flags=re.DOTALL)


def is_complete(text: str) -> bool:
    """Whether the text ends with a semicolon that ends a statement, outside strings and comments.

    >>> is_complete("SELECT ';"), is_complete("SHOW STREAMS; -- all")
    (False, True)
    """
    try:
        tokens = tokenize(SqlText(text))
    except SqlSyntaxError:
        return False
    return len(tokens) > 1 and tokens[-2].is_mark(";")


class Cursor:
    """Reads a script from left to right; its errors give the position of the first unexpected token."""

    def __init__(self, source: SqlText) -> None:
        self._source = source
        self._tokens = tokenize(source)
        self._at = 0
        self._places: dict[str, Position] = {}

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _skip(
        self, marks: tuple[str, ...], words: tuple[str, ...] = (), brackets: tuple[str, str] = ("([", ")]")
    ) -> int:
        """Advance to the next such mark or word outside brackets; return the offset at which the token before it ends."""
        depth, end = 0, self._next.start
        while self._next.kind != "end":
            token = self._next
            if depth == 0 and ((token.kind == "mark" and token.text in marks) or token.is_word(*words)):
                break
            if token.kind == "mark":
                depth += sum((sign in brackets[0]) - (sign in brackets[1]) for sign in token.text)
            end = token.end
            self._at += 1
        return end

    def _options(self) -> dict[str, Value]:
        """(name value, name = value, ...)."""
        self._need("(")
        found: dict[str, Value] = {}
        while not self._next.is_mark(")"):
            token = self._next
            name = self._dotted("the name of an option")
            if name.lower() in {known.lower() for known in found}:
                raise self._source.error(SqlSyntaxError, f"option {name} is given twice", token.start)
            self._places[f"option {name.lower()}"] = self._position(token)
            self._mark("=")
            found[name] = self._value()
            if not self._mark(","):
                break
        self._need(")")
        return found

    def _assignment(self) -> tuple[str, Value]:
        name = self._dotted("the name of a setting")
        self._need("=")
        self._note("value")
        return name, self._value()

    def _dotted(self, what: str) -> str:
        """A name of words joined by dots, or a quoted string."""
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
            return self._signed(sign)
        if sign or token.kind not in ("string", "word", "name"):
            raise self._expected("a value: a 'string', a number, TRUE or FALSE")
        self._at += 1
        if token.is_word("TRUE", "FALSE"):
            return token.is_word("TRUE")
        text = token.text
        while token.kind == "word" and self._mark("-"):  # names of strategies: negative-tuple
            text += f"-{self._name('the rest of the name')}"
        return text

    def _signed(self, sign: str) -> int | float:
        """The number that is next, after its sign."""
        token = self._next
        whole, _, fraction = token.text.partition(".")
        number = whole_number(whole, _MOST)
        if number is None or not token.text.isascii():
            raise self._source.error(SqlSyntaxError, f"expected a number of at most {_MOST:,}", token.start)
        self._at += 1
        return float(sign + token.text) if fraction else int(f"{sign}{number}")

    def _number(self) -> float:
        token = self._next
        value = self._value()
        if isinstance(value, bool | str):
            raise self._source.error(SqlSyntaxError, "expected a number", token.start)
        return value

    def _numbers(self) -> dict[str, float]:
        """(column number, ...)."""
        at = self._next
        given = self._options()
        found = {name: value for name, value in given.items() if not isinstance(value, bool | str)}
        if not given or len(found) < len(given):
            raise self._source.error(SqlSyntaxError, "expected columns with a number each, as in (item 50)", at.start)
        return found

    def _columns(self) -> tuple[str, ...]:
        """(column, ...); it may be empty, as the key of an answer of one row is."""
        self._need("(")
        names: list[str] = []
        while not self._next.is_mark(")"):
            names.append(self._name("the name of a column"))
            if not self._mark(","):
                break
        self._need(")")
        return tuple(names)

    def _clause(self, seen: Collection[str], *words: str) -> str:
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
        """The keyword in capitals if the next token is one of them, else an empty string."""
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

    def _note(self, part: str) -> None:
        """Note that this clause of the statement starts at the next token."""
        self._places[part] = self._position(self._next)

    def _position(self, token: Token) -> Position:
        line, column = self._source.position(token.start)
        assert line is not None
        assert column is not None
        return Position(line, column)

    def _expected(self, what: str, words: tuple[str, ...] = ()) -> SqlSyntaxError:
        token = self._next
        found = "the text ends" if token.kind == "end" else f"found {self._source.text[token.start : token.end]}"
        hint = did_you_mean(token.text, words) if token.kind == "word" else ""
        return self._source.error(SqlSyntaxError, f"expected {what}; {found}{hint}", token.start)
