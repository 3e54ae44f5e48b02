"""JSON as Spark reads it: the first value of a text, by the rules of the library that Spark uses (Jackson).

Strings may be in single quotes. What follows the first value is ignored, unless it is glued to it. A number keeps its text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MOST_DEEP = 1000
"""The deepest nesting, and the longest number in digits, that Spark reads."""
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_TYPED = re.compile(r"@([a-z])([0-9A-Za-z+/=.-]*)")
_WORDS = {"true": True, "false": False, "null": None}
_NOT_NUMBERS = {
    "NaN": "nan", "INF": "inf", "Infinity": "inf", "-INF": "-inf", "-Infinity": "-inf", "+INF": "inf", "+Infinity": "inf",
}  # fmt: skip
_NAME_PART = re.compile(r"[\w$]")
_PLAIN = {'"': re.compile(r'[^"\\]*'), "'": re.compile(r"[^'\\]*")}
_ESCAPES = {'"': '"', "'": "'", "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_CONTROL = re.compile(r"[\x00-\x1f]")
_SPECIAL = re.compile(r'["\\\x00-\x1f]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class JsonError(ValueError):
    """The text is no JSON."""


@dataclass(frozen=True)
class JsonNumber:
    """A number by its text; `whole` if it has neither a point nor an exponent."""

    text: str
    whole: bool


@dataclass(frozen=True)
class TypedScalar:
    """A value of a type that JSON lacks, in the stored form of variants: `kind` names the type, `text` is the value."""

    kind: str
    text: str


@dataclass(frozen=True)
class JsonObject:
    """The names and values of an object, in their order, with duplicates."""

    pairs: list[tuple[str, Any]]


def read_json(text: str, *, strict: bool = False, plain: bool = False, typed: bool = False) -> Any:
    """The first value: an object, a list, a string, a number, true, false or None; JsonError if there is none.

    With `strict` strings have no control characters, and there are numbers such as NaN; with `plain` strings have neither
    control characters nor single quotes. With `typed` there are values of types that JSON lacks.

    >>> read_json("{'a': [1.50, true]} x").pairs
    [('a', [JsonNumber(text='1.50', whole=False), True])]
    """
    return _Reader(text, strict, plain, typed).value()


class _Reader:
    def __init__(self, text: str, strict: bool, plain: bool, typed: bool) -> None:
        self._text = text
        self._controls = not (strict or plain)
        self._not_numbers = strict
        self._typed = typed
        self._quotes = '"' if plain else "\"'"
        self._at = 0

    def value(self) -> Any:
        """The value, without recursion: `around` are the containers that it is in, with the names of their next values."""
        around: list[tuple[JsonObject | list[Any], str | None]] = []
        while True:
            found = self._start(root=not around)
            if isinstance(found, JsonObject | list):
                if len(around) >= MOST_DEEP:
                    raise JsonError
                closing = "}" if isinstance(found, JsonObject) else "]"
                if self._next() != closing:
                    around.append((found, self._name() if isinstance(found, JsonObject) else None))
                    continue
                self._at += 1
            while around:
                container, name = around.pop()
                if isinstance(container, JsonObject):
                    container.pairs.append((name or "", found))
                else:
                    container.append(found)
                mark = self._next()
                self._at += 1
                if mark == ",":
                    around.append((container, self._name() if isinstance(container, JsonObject) else None))
                    break
                if mark != ("}" if isinstance(container, JsonObject) else "]"):
                    raise JsonError
                found = container
            else:
                return found

    def _next(self) -> str:
        """The next character that is no space."""
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        self._at = space.end()
        if self._at >= len(self._text):
            raise JsonError
        return self._text[self._at]

    def _name(self) -> str:
        if self._next() not in self._quotes:
            raise JsonError
        name = self._string()
        if self._next() != ":":
            raise JsonError
        self._at += 1
        return name

    def _start(self, root: bool) -> Any:
        """A plain value, or an empty container whose contents follow."""
        first = self._next()
        if first in "{[":
            self._at += 1
            return JsonObject([]) if first == "{" else []
        if first in self._quotes:
            return self._string()
        for word, value in _WORDS.items():
            if self._text.startswith(word, self._at):
                return self._word(word, value)
        if self._not_numbers:
            for word, number in sorted(_NOT_NUMBERS.items(), key=lambda pair: -len(pair[0])):
                if self._text.startswith(word, self._at):
                    return self._word(word, JsonNumber(number, whole=False))
        if self._typed and first == "@":
            special = _TYPED.match(self._text, self._at)
            assert special is not None
            self._at = special.end()
            return TypedScalar(special[1], special[2])
        found = _NUMBER.match(self._text, self._at)
        if found is None or len(found[0]) > MOST_DEEP:
            raise JsonError
        self._at = found.end()
        following = self._text[self._at : self._at + 1]
        if following and (following not in " \t\n\r" if root else following not in " \t\n\r,]}"):
            raise JsonError
        return JsonNumber(found[0], found[1] is None and found[2] is None)

    def _word(self, word: str, value: Any) -> Any:
        self._at += len(word)
        if _NAME_PART.match(self._text, self._at):
            raise JsonError
        return value

    def _string(self) -> str:
        quote = self._text[self._at]
        self._at += 1
        parts: list[str] = []
        while True:
            plain = _PLAIN[quote].match(self._text, self._at)
            assert plain is not None
            if not self._controls and _CONTROL.search(plain[0]):
                raise JsonError
            parts.append(plain[0])
            self._at = plain.end()
            mark = self._text[self._at : self._at + 1]
            if mark == quote:
                self._at += 1
                return _joined(parts)
            if mark != "\\":
                raise JsonError
            parts.append(self._escaped())

    def _escaped(self) -> str:
        letter = self._text[self._at + 1 : self._at + 2]
        if letter == "u":
            digits = _HEX.match(self._text, self._at + 2)
            if digits is None:
                raise JsonError
            self._at += 6
            return chr(int(digits[0], 16))
        if letter not in _ESCAPES:
            raise JsonError
        self._at += 2
        return _ESCAPES[letter]


def _joined(parts: list[str]) -> str:
    """The text of the parts; halves of characters that are written as two become one, and others a question mark."""
    text = "".join(parts)
    if text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join("?" if "\ud800" <= character <= "\udfff" else character for character in whole)


def quoted_json(text: str) -> str:
    """A text as a string of JSON."""
    return '"' + _SPECIAL.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'


def stored_scalar(value: TypedScalar) -> str:
    """A value of a type that JSON lacks, as `read_json` reads it with `typed`."""
    return f"@{value.kind}{value.text}"


def write_json(
    value: Any,
    number: Callable[[str], str],
    most_digits: int | None = None,
    typed: Callable[[TypedScalar], str] = stored_scalar,
) -> str:
    """A value as JSON without spaces; `number` writes numbers with a point or an exponent, or more than so many digits."""
    out: list[str] = []
    pending: list[Any] = [value]
    while pending:
        part = pending.pop()
        match part:
            case _Text():
                out.append(part.text)
            case None:
                out.append("null")
            case bool():
                out.append("true" if part else "false")
            case str():
                out.append(quoted_json(part))
            case JsonNumber():
                short = most_digits is None or len(part.text.lstrip("-")) <= most_digits
                out.append(str(int(part.text)) if part.whole and short else number(part.text))
            case TypedScalar():
                out.append(typed(part))
            case JsonObject():
                inner: list[Any] = [_Text("{")]
                for place, (name, each) in enumerate(part.pairs):
                    inner += [_Text(f"{',' if place else ''}{quoted_json(name)}:"), each]
                pending.extend(reversed([*inner, _Text("}")]))
            case list():
                inner = [_Text("[")]
                for place, each in enumerate(part):
                    inner += [_Text(","), each] if place else [each]
                pending.extend(reversed([*inner, _Text("]")]))
            case _:
                raise TypeError(f"no JSON value: {part!r}")
    return "".join(out)


@dataclass(frozen=True)
class _Text:
    """JSON that is written already."""

    text: str
