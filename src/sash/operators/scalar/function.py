"""How a scalar function is implemented."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from sash.operators.scalar.arrays import Array, Datum, map_rows

MANY = 1 << 30
Run: TypeAlias = Callable[[Sequence[Datum], pa.DataType], Datum]


@dataclass(frozen=True)
class Function:
    """The implementation of a function.

    `run` gets at least one array among its arguments (constants stay Arrow scalars) and the type of its result. A
    strict function is NULL if an argument is, so it never sees an argument of type VOID or a NULL constant. One that
    fails may raise on a value, so it runs only on rows that need it.
    """

    run: Run
    least: int
    most: int
    strict: bool = True
    fails: bool = False


def one(run: Run, fails: bool = False) -> Function:
    """A function of one argument."""
    return Function(run, 1, 1, fails=fails)


def two(run: Run, fails: bool = False) -> Function:
    """A function of two arguments."""
    return Function(run, 2, 2, fails=fails)


def by_value(function: Callable[..., Any], least: int, most: int | None = None, *, fails: bool = False) -> Function:
    """A Python function of values that are not NULL, called once per distinct combination of arguments."""

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        return map_rows(function, arguments, dtype)

    return Function(run, least, least if most is None else most, fails=fails)


def by_value_or_null(
    function: Callable[..., Any], least: int, most: int | None = None, *, fails: bool = False
) -> Function:
    """As `by_value`, but the function takes None for NULL."""

    def run(arguments: Sequence[Datum], dtype: pa.DataType) -> Array:
        return map_rows(function, arguments, dtype, nulls=True)

    return Function(run, least, least if most is None else most, strict=False, fails=fails)
