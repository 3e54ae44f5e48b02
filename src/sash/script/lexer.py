"""The tokens of a script: enough to separate statements, names, values and queries. `sash.sql` parses the queries.

Strings are in '...' or "..." (a doubled quote or a backslash escapes), names may be in `...`, comments are -- and /* */.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from sash.errors import SqlSyntaxError
from sash.sql.source import SqlText

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
