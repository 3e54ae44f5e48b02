"""How a scalar function is typed."""

from __future__ import annotations

from dataclasses import dataclass

from sash.errors import TypeMismatchError
from sash.sql.function_rules import Rule


class OnlySparkError(TypeMismatchError):
    """Sash has the function, but not for these types: directly above a source, Spark evaluates it."""


@dataclass(frozen=True)
class Signature:
    """How many arguments a function takes (`most` None: any number) and how it is typed."""

    least: int
    most: int | None
    rule: Rule
