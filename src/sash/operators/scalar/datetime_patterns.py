"""Spark's patterns of dates and times: letters of Java's DateTimeFormatter, text in quotes, optional sections."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from sash.errors import EvaluationError, excerpt

LONGEST = {
    **dict.fromkeys("dHhKkms", 2),
    "y": 6, "M": 4, "L": 4, "D": 3, "Q": 4, "q": 4, "E": 4, "a": 1, "S": 9, "F": 1, "G": 4,
    "V": 2, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5,
}  # fmt: skip
"""The letters of patterns, with the most that may follow each other."""
_PARSED = frozenset("yMLDdHhKkmsSaXxZV")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class Letters:
    """A field: a letter, and how many of it."""

    letter: str
    count: int


@dataclass(frozen=True)
class Optional:
    """A section that may be absent."""

    parts: tuple[Part, ...]


Part = str | Letters | Optional


@lru_cache(maxsize=256)
def read_pattern(pattern: str, parsing: bool) -> tuple[Part, ...]:
    """The parts of a pattern, for parsing or for formatting."""
    stack: list[list[Part]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "'":
            text, position = _quoted(pattern, position)
            stack[-1].append(text)
        elif character == "[":
            stack.append([])
            position += 1
        elif character == "]":
            if len(stack) == 1:
                raise _refused(pattern, "] without [")
            inner = tuple(stack.pop())
            stack[-1].append(Optional(inner))
            position += 1
        elif character.isascii() and character.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == character:
                end += 1
            stack[-1].append(_letters(pattern, character, end - position, parsing))
            position = end
        elif character in "{}#":
            raise _refused(pattern, f"{character} is reserved; write it in quotes")
        else:
            stack[-1].append(character)
            position += 1
    while len(stack) > 1:
        inner = tuple(stack.pop())
        stack[-1].append(Optional(inner))
    return tuple(stack[0])


def _quoted(pattern: str, start: int) -> tuple[str, int]:
    """The text in quotes that begins at `start`, and the position after it; two quotes are one."""
    if pattern.startswith("''", start):
        return "'", start + 2
    text, position = "", start + 1
    while True:
        end = pattern.find("'", position)
        if end < 0:
            raise _refused(pattern, "a quote is not closed")
        text += pattern[position:end]
        if not pattern.startswith("''", end):
            return text, end + 1
        text, position = text + "'", end + 2


def _letters(pattern: str, letter: str, count: int, parsing: bool) -> Letters:
    if letter not in LONGEST or count > LONGEST[letter] or (letter == "V" and count != 2):
        raise _refused(pattern, f"{letter * count} is not a field of Spark's patterns")
    if parsing and letter not in _PARSED:
        raise _refused(pattern, f"{letter * count} cannot be parsed")
    if letter == "y" and "G" in pattern:
        raise _refused(pattern, "Sash does not know years of eras (G)")
    return Letters(letter, count)


def _refused(pattern: str, problem: str) -> EvaluationError:
    return EvaluationError(f"the pattern '{excerpt(pattern)}': {problem}")
