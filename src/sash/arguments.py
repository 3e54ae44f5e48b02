"""Checks of the arguments of public calls: one function per kind of value, whose error says what to pass instead."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar

from sash.errors import CatalogError, OptionError, SashError

Word = TypeVar("Word", bound=str)

_LONGEST = 60
"""The number of characters of a value that a message repeats."""
_LONGEST_NAME = 200
"""The number of bytes of the name of a query; file systems allow 255 for the name of a folder."""


def shown(value: object) -> str:
    """A value as a message repeats it: its repr, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # an int of more than 4,300 digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def check_text(what: str, value: object, error: type[SashError] = OptionError) -> str:
    """Return the value if it is a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise error(f"{what} must be a text, not {shown(value)}")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise error(f"{what} has characters that cannot be written: {shown(value)}")
    return value


def check_path(what: str, value: object) -> str:
    """Return a path, given as text or as an object such as `pathlib.Path`, as text."""
    return check_text(what, os.fspath(value) if isinstance(value, os.PathLike) else value)


def check_query_name(value: object) -> str:
    """Return the name of a query, which is also the name of a folder in the checkpoint, if it is one that stays there."""
    name = check_text("the name of a query", value)
    if "/" in name or "\\" in name or name.startswith(".") or not name.isprintable():
        raise OptionError(
            f"the name of a query is also that of a folder: it must not contain / or \\ nor begin with a dot, as {shown(name)} does"
        )
    if len(name.encode()) > _LONGEST_NAME:
        raise OptionError(f"the name of a query must have at most {_LONGEST_NAME} bytes, not {shown(name)}")
    return name


def check_word(what: str, value: object, words: Sequence[Word], error: type[OptionError] = OptionError) -> Word:
    """Return the one of the words that the value is; raise an error that lists them if it is none."""
    for word in words:
        if isinstance(value, str) and value == word:
            return word
    raise error(f"there is no {what} {shown(value)}; use one of {', '.join(words)}")


def check_flag(what: str, value: object) -> bool:
    """Return the value if it is True or False."""
    if not isinstance(value, bool):
        raise OptionError(f"{what} must be True or False, not {shown(value)}")
    return value


def check_count(
    what: str, value: object, least: int = 1, most: int = 2**31 - 1, error: type[SashError] = OptionError
) -> int:
    """Return the value if it is a whole number between the limits."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise error(f"{what} must be a whole number of at least {least}, not {shown(value)}")
    number = int(value)
    if number < least:
        raise error(f"{what} must be at least {least}, not {shown(number)}")
    if number > most:
        raise error(f"{what} must be at most {most:,}, not {shown(number)}")
    return number


def whole_number(text: str, most: int = 2**63 - 1) -> int | None:
    """The number that the digits denote; None if these are not digits, or if the number is larger than `most`.

    >>> whole_number("07"), whole_number("9" * 5_000), whole_number("²")
    (7, None, None)
    """
    if not (text.isascii() and text.isdigit()) or len(text.lstrip("0")) > len(str(most)):
        return None
    number = int(text.lstrip("0") or "0")
    return number if number <= most else None


def check_number(what: str, value: object, least: float = 0, error: type[SashError] = OptionError) -> float:
    """Return the value if it is a finite number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise error(f"{what} must be a number of at least {least}, not {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < least:
        raise error(f"{what} must be a number of at least {least}, not {shown(value)}")
    return number


def check_mapping(what: str, value: object, error: type[SashError] = OptionError) -> Mapping[str, Any]:
    """Return the value if it is a dict whose keys are texts; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise error(f"{what} must be a dict whose keys are names, not {shown(value)}")
    return value


def check_named(what: str, value: object, known: Collection[str], of: str) -> Mapping[str, Any]:
    """Return the value if it is a dict whose keys are all among the names of `of`."""
    given = check_mapping(what, value)
    for name in given:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = (
                f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}" if known else "there are none"
            )
            raise CatalogError(f"{what} names {shown(name)}, which is not one of the {of}; {hint}")
    return given


def check_function(what: str, value: object) -> Callable[..., Any]:
    """Return the value if it can be called."""
    if not callable(value):
        raise OptionError(f"{what} must be a function, not {shown(value)}")
    return value


def check_columns(what: str, value: object, error: type[SashError] = CatalogError) -> Sequence[str]:
    """Return names of columns, given as one name or several, as a list."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise error(f"{what} must be the name of a column, or a list of names, not {shown(value)}")
    return list(names)
