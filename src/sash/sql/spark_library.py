"""Spark's functions and data sources, from a list that `scripts/spark_library.py` makes when Sash is built.

With it, a text is checked without Spark. The list is that of Spark as it is installed: a session may have more functions
and data sources, from extensions and packages. So what is not in the list may still exist, and what is in the list is
refused only where Spark refuses it whatever its settings are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from sash.plan.sql_types import DAY_TO_SECOND, YEAR_TO_MONTH
from sash.plan.types import NAMES, NULL, STRING, array_of
from sash.sql.aggregates import AGGREGATES
from sash.sql.dialect import Sash
from sash.sql.functions import ALIASES, FUNCTIONS, OPERATORS
from sash.sql.source import did_you_mean

FILE = Path(__file__).with_name("spark_library.json")

Kind = Literal["scalar", "aggregate", "window", "generator", "varying"]
"""What a function is. A `generator` makes several rows of one; the result of a `varying` one depends on more than its
arguments, such as the time at which it is called."""

_TYPES = {name: dtype for dtype, name in NAMES.items()}
_INTERVALS = {dtype.name: dtype for dtype in (DAY_TO_SECOND, YEAR_TO_MONTH)}
_SIMILARITY = 0.7
_STRINGS = ("split", "regexp_extract_all")
"""Functions that return an array of strings whatever their arguments are."""
_TEXTS = "ARRAY<STRING>"
_BY_GRAMMAR = frozenset({"timestampadd", "timestampdiff", "timediff"})
"""Functions that Spark's parser knows, and its list does not."""


@dataclass(frozen=True)
class LibraryFunction:
    """A function of Spark's: `most` None is any number of arguments, `result` None a type that depends on them."""

    kind: Kind
    least: int
    most: int | None
    result: str | None

    def takes(self, count: int) -> bool:
        """Whether it can be called with that number of arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    @property
    def wanted(self) -> str:
        """The number of its arguments in words."""
        least, most = self.least, self.most
        several = (
            f"{least} or more" if most is None else f"{least} to {most}" if most > least + 1 else f"{least} or {most}"
        )
        number = str(least) if most == least else several
        return f"{number} argument{'' if number == '1' else 's'}"


@dataclass(frozen=True)
class Library:
    """The functions of a version of Spark, and its data sources: whether each can be read, and written, as a stream."""

    spark: str
    functions: dict[str, LibraryFunction]
    sources: dict[str, tuple[bool, bool]]

    def knows(self, name: str) -> bool:
        """Whether Spark has a function of that name."""
        return name.lower() in self.functions or name.lower() in _BY_GRAMMAR

    def kind(self, name: str) -> Kind | None:
        """What the function of that name is; None if there is none."""
        found = self.functions.get(name.lower())
        return None if found is None else found.kind


@cache
def library() -> Library:
    """The library of the Spark that Sash is built for.

    >>> library().functions["regexp_extract"].wanted
    '2 or 3 arguments'
    """
    read = json.loads(FILE.read_text(encoding="utf-8"))
    functions = {name: LibraryFunction(*entry) for name, entry in read["functions"].items()}
    sources = {name: (readable, writable) for name, (readable, writable) in read["sources"].items()}
    return Library(read["spark"], functions, sources)


def calls(node: exp.Expr) -> Iterator[exp.Anonymous]:
    """The calls of functions in a node, the outermost first."""
    return node.find_all(exp.Anonymous)


def similar_function(name: str) -> str:
    """'; did you mean x?' with a function that Sash or Spark has, or nothing.

    >>> similar_function("SUMM")
    '; did you mean sum?'
    """
    own = [*AGGREGATES, *(known for known in (*FUNCTIONS, *ALIASES) if known not in OPERATORS)]
    scalars = [known for known, function in library().functions.items() if function.kind == "scalar"]
    for candidates in (own, scalars):
        near = [known for known in candidates if SequenceMatcher(None, known, name.lower()).ratio() >= _SIMILARITY]
        if hint := did_you_mean(name, near):
            return hint
    return ""


class LibraryTyper:
    """Types expressions that only Spark evaluates by the list of its functions.

    Where the list does not give the type, it is NULL, which fits everywhere, and `unsure` is set: errors of types in the
    same query may then be wrong. With `extended`, functions that are not in the list are taken to exist.
    """

    def __init__(self, *, extended: bool = False) -> None:
        self.unsure = False
        self._extended = extended

    def __call__(self, source: str, sql: str) -> pa.DataType | str | None:
        """The type of an expression over the columns of a stream or relation; None if Spark would refuse it."""
        try:
            node = Sash().parse(sql)[0]
        except (ParseError, TokenError):
            node = None
        if node is None:
            self.unsure = True
            return NULL
        for call in calls(node):
            known = library().functions.get(call.name.lower())
            if known is None and not (self._extended or library().knows(call.name)):
                return None
            if known is not None and not known.takes(len(call.expressions)):
                return None
        found = _read_type(_result(node))
        self.unsure |= found == NULL
        return found


def _result(node: exp.Expr) -> str | None:
    """The name of the type of a call, or of an element of the array that a call returns."""
    if isinstance(node, exp.Anonymous):
        known = library().functions.get(node.name.lower())
        if node.name.lower() in _STRINGS:
            return _TEXTS
        return None if known is None or known.result == _TEXTS else known.result
    if isinstance(node, exp.Bracket) and isinstance(node.this, exp.Anonymous) and node.this.name.lower() in _STRINGS:
        return "STRING"
    return _result(node.this) if isinstance(node, exp.Paren) else None


def _read_type(name: str | None) -> pa.DataType | str:
    """The type of that name, or the name if no column can have the type; NULL if it is unknown."""
    if name is None:
        return NULL
    if decimal := re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", name):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if "<" in name:
        return array_of(STRING) if name == _TEXTS else NULL
    return _TYPES.get(name) or _INTERVALS.get(name, name)
