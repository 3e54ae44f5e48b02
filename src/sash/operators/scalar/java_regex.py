r"""Java's regular expressions as Python's: what means the same is kept or rewritten, and anything else is refused.

Java's `.`, `$` and `\Z` know more ends of lines, its classes such as `\w` are ASCII, and it has syntax of its own.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import lru_cache

from sash.errors import EvaluationError, excerpt

_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_BEFORE_END = rf"(?=(?:\r\n|(?!(?<=\r)\n)[{_ENDS}])?\Z)"
_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9", "XDigit": "0-9a-fA-F",
    "Punct": r"!-/:-@\[-`{-~", "Space": r" \t\n\x0b\f\r", "Blank": r" \t", "Cntrl": r"\x00-\x1f\x7f", "ASCII": r"\x00-\x7f",
}  # fmt: skip
_SAME_OUTSIDE = frozenset("dDwWsS")
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_GROUPS = ("?:", "?=", "?!", "?<=", "?<!", "?>")
_REPEAT = re.compile(r"\{\d+(?:,\d*)?\}")
_NAMED = re.compile(r"\?<([A-Za-z][A-Za-z0-9]*)>")
_PLAIN = re.compile(
    r"\^?(?:[A-Za-z0-9 _\-/,:;@%&=~\"'<>!#]|\\[.\-+*?()\[\]{}|/dw]|\[\^?[A-Za-z0-9 _.,:;@%=/]+(?:[a-z]-[a-z]|0-9)*\]|[+*?|]|\((?:\?:)?|\))*"
)


@dataclass(frozen=True)
class JavaRegex:
    r"""A compiled expression; `boundaries` if it has \b, which Java's versions define differently beyond ASCII."""

    compiled: re.Pattern[str]
    boundaries: bool

    def check(self, text: str) -> str:
        """The text; EvaluationError if the expression does not mean the same for it in every version of Java."""
        if self.boundaries and not text.isascii() and any(ord(each) > 127 and each.isalnum() for each in text):
            raise EvaluationError(
                r"\b and \B mean different things beside letters that are not ASCII in versions of Java; "
                "write the characters that may follow"
            )
        return text


def is_plain(pattern: str) -> bool:
    """Whether every library of regular expressions reads the pattern alike."""
    return _PLAIN.fullmatch(pattern) is not None


@lru_cache(maxsize=512)
def java_regex(pattern: str) -> JavaRegex:
    """The expression that matches what Java's matches; EvaluationError if there is none."""
    translation = _Translation(pattern)
    text = translation.run()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            compiled = re.compile(text, re.ASCII | (re.IGNORECASE if translation.ignore_case else re.NOFLAG))
    except (re.error, RecursionError, OverflowError, Warning) as error:
        raise refused(pattern, f"({error})") from None
    return JavaRegex(compiled, translation.boundaries)


def refused(pattern: str, what: str) -> EvaluationError:
    """The error for an expression that Sash does not evaluate."""
    return EvaluationError(f"Sash does not evaluate the regular expression '{excerpt(pattern)}': {what}")


class _Translation:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._dot_all = False
        self.ignore_case = False
        self.boundaries = False

    def run(self) -> str:
        self._flags()
        pieces = []
        while self._at < len(self._pattern):
            pieces.append(self._piece())
        return "".join(pieces)

    def _refused(self, what: str) -> EvaluationError:
        return refused(self._pattern, what)

    def _flags(self) -> None:
        """(?i) and (?s) at the start."""
        while found := re.match(r"\(\?([a-zA-Z-]+)\)", self._pattern[self._at :]):
            if set(found[1]) - set("is"):
                raise self._refused(f"the flags {found[0]}")
            self.ignore_case |= "i" in found[1]
            self._dot_all |= "s" in found[1]
            self._at += len(found[0])

    def _piece(self) -> str:
        character = self._pattern[self._at]
        if character == "\\":
            return self._escape(in_class=False)
        if character == "[":
            return self._class()
        if character == "(":
            return self._group()
        if character == "{":
            found = _REPEAT.match(self._pattern, self._at)
            if found is None:
                raise self._refused("{ without a number of repetitions; escape it")
            self._at = found.end()
            return found[0]
        self._at += 1
        if character == ".":
            return r"[\s\S]" if self._dot_all else f"[^{_ENDS}]"
        if character == "$":
            return _BEFORE_END
        if character in "^|)*+?":
            return character
        return re.escape(character)

    def _group(self) -> str:
        rest = self._pattern[self._at + 1 : self._at + 80]
        if not rest.startswith("?"):
            self._at += 1
            return "("
        if named := _NAMED.match(rest):
            self._at += 1 + named.end()
            return f"(?P<{named[1]}>"
        for opening in _GROUPS:
            if rest.startswith(opening):
                self._at += 1 + len(opening)
                return f"({opening}"
        raise self._refused(f"the group ({rest[:4]}")

    def _class(self) -> str:
        self._at += 1
        text = "["
        if self._pattern.startswith("^", self._at):
            text += "^"
            self._at += 1
        if self._pattern[self._at : self._at + 1] in ("]", ""):
            raise self._refused("an empty class, or one that begins with ]")
        while True:
            character = self._pattern[self._at : self._at + 1]
            if not character:
                raise self._refused("a class that is not closed")
            if character == "]":
                self._at += 1
                return text + "]"
            if character == "[" or self._pattern.startswith("&&", self._at):
                raise self._refused("classes in classes")
            if character == "\\":
                text += self._escape(in_class=True)
                continue
            self._at += 1
            text += character if character == "-" else re.escape(character)

    def _escape(self, in_class: bool) -> str:
        following = self._pattern[self._at + 1 : self._at + 2]
        self._at += 2
        if not following:
            raise self._refused("a backslash at the end")
        if not (following.isascii() and following.isalnum()):
            return re.escape(following)
        if following in _SAME_OUTSIDE:
            return f"\\{following}"
        if following in _CONTROL:
            return re.escape(_CONTROL[following])
        if following in "xu":
            return self._code(following)
        if following in "pP":
            return self._posix(following == "P", in_class)
        if in_class:
            raise self._refused(f"\\{following} in a class")
        return self._outside(following)

    def _outside(self, following: str) -> str:
        match following:
            case "b" | "B":
                self.boundaries = True
                return f"\\{following}"
            case "A":
                return r"\A"
            case "z":
                return r"\Z"
            case "Z":
                return _BEFORE_END
            case "Q":
                end = self._pattern.find("\\E", self._at)
                quoted = self._pattern[self._at : end] if end >= 0 else self._pattern[self._at :]
                self._at = end + 2 if end >= 0 else len(self._pattern)
                return re.escape(quoted)
            case "k":
                found = re.match(r"<([A-Za-z][A-Za-z0-9]*)>", self._pattern[self._at :])
                if found is None:
                    raise self._refused("\\k without a name")
                self._at += found.end()
                return f"(?P={found[1]})"
        if following in "123456789" and not self._pattern[self._at : self._at + 1].isdigit():
            return f"(?:\\{following})"
        raise self._refused(f"\\{following}")

    def _code(self, kind: str) -> str:
        found = re.match(r"\{([0-9A-Fa-f]{1,6})\}" if kind == "x" else r"(?!)", self._pattern[self._at :])
        found = found or re.match(
            r"([0-9A-Fa-f]{2})" if kind == "x" else r"([0-9A-Fa-f]{4})", self._pattern[self._at :]
        )
        if found is None or int(found[1], 16) > 0x10FFFF:
            raise self._refused(f"\\{kind} without a code")
        self._at += found.end()
        return re.escape(chr(int(found[1], 16)))

    def _posix(self, negated: bool, in_class: bool) -> str:
        found = re.match(r"\{(\w+)\}", self._pattern[self._at :])
        if found is None or found[1] not in _POSIX or (negated and in_class):
            raise self._refused(f"\\{'P' if negated else 'p'}{found[0] if found else ''}")
        self._at += found.end()
        members = _POSIX[found[1]]
        return members if in_class else f"[{'^' if negated else ''}{members}]"
