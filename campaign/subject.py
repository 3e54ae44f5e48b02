"""What a campaign tries: random cases of one kind, and a check that fails if Sash does something wrong with one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


@dataclass(frozen=True)
class Outcome:
    """The result of an example that passed: how many cases it was, what is counted of them, and how many Sash refused."""

    words: Counter[str] = field(default_factory=Counter)
    refused: int = 0
    cases: int = 1


@dataclass(frozen=True)
class Subject(Generic[T]):
    """Random cases, their check, and their form as JSON.

    `check` raises an error of any kind if Sash is wrong. Refusals are part of the outcome, since a campaign whose cases are
    all refused shows nothing. Where a case takes too long for failing ones to be reduced, `cases` is a function that makes
    one from random numbers. An example may be several cases, up to `size`.
    """

    name: str
    about: str
    cases: SearchStrategy[T] | Callable[[random.Random], T]
    check: Callable[[T], Outcome]
    encode: Callable[[T], Any]
    decode: Callable[[Any], T]
    size: int = 1
