"""The row on which an expression fails, found by halves after the failure and added to the error as a note."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from sash.errors import excerpt
from sash.operators.scalar.arrays import Array, Numbers
from sash.plan.compound import walk
from sash.plan.expressions import Column, Expression

_MOST_COLUMNS = 12
_LONGEST_VALUE = 60
_NOTE = "in the row "
_NAMED = re.compile(rf"[;\s]*\b{_NOTE}(\(.*?\))(?=$| \(its outbox)")

Evaluate = Callable[[Numbers], object]
"""Evaluates expressions on the rows at some positions."""


def name_row(
    problem: Exception, expressions: Sequence[Expression], columns: Sequence[Array], places: Numbers, evaluate: Evaluate
) -> None:
    """Add to an error the values, in the row that causes it, of the columns that the expressions read."""
    found = _failing(places, evaluate)
    read = {node.index: node.name for one in expressions for node in walk(one) if isinstance(node, Column)}
    if found is None or not read:
        return
    shown = [f"{name or f'column {index}'} {_value(columns[index], found)}" for index, name in sorted(read.items())]
    problem.add_note(f"{_NOTE}({', '.join(shown[:_MOST_COLUMNS])}{', ...' if len(shown) > _MOST_COLUMNS else ''})")


def split_row(text: str) -> tuple[str, str | None]:
    """The text of an error without the row that it names, and the row.

    >>> split_row("queries q failed: ArrowInvalid: divide by zero; in the row (price 3, n 0)")
    ('queries q failed: ArrowInvalid: divide by zero', '(price 3, n 0)')
    """
    found = _NAMED.search(text)
    return (text, None) if found is None else (text[: found.start()] + text[found.end() :], found[1])


def _failing(places: Numbers, evaluate: Evaluate) -> int | None:
    """The first of the positions at which the evaluation fails; None if it fails on none of them alone."""
    while len(places) > 1:
        first = places[: len(places) // 2]
        places = first if _fails(first, evaluate) else places[len(first) :]
    return int(places[0]) if len(places) and _fails(places, evaluate) else None


def _fails(places: Numbers, evaluate: Evaluate) -> bool:
    try:
        evaluate(places)
    except Exception:  # noqa: BLE001  (whatever it is, it has been raised already)
        return True
    return False


def _value(column: Array, row: int) -> str:
    value = column[row]
    if isinstance(value, pa.Scalar):
        value = value.as_py()
    return "NULL" if value is None else excerpt(str(value), most=_LONGEST_VALUE)


def every(rows: int) -> Numbers:
    """The positions of so many rows."""
    return np.arange(rows)
