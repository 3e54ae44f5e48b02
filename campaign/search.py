"""Runs random cases of a subject, round by round, and shrinks those that fail.

A round is one search of Hypothesis with a seed of its own, made from the campaign's seed and the number of the round: the
same seed gives the same cases. A round ends at its first failure, which Hypothesis reduces to a small case; the next round
goes on with other cases. Cases of a subject that makes them from random numbers are rounds of their own, and not reduced.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from campaign.subject import Outcome, Subject

ROUND = 100
"""The examples of a round."""
_ROUNDS_OF_A_SEED = 1_000_003
"""A prime: so far apart are the rounds of neighbouring seeds."""


@dataclass
class Failure:
    """A case that failed, reduced, and its error."""

    seed: int
    round: int
    case: Any
    error: str
    trace: str


@dataclass
class Tally:
    """What a campaign has tried so far."""

    subject: str
    seed: int
    cases: int = 0
    refused: int = 0
    seconds: float = 0.0
    words: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)


def search(
    subject: Subject[Any],
    seed: int,
    *,
    cases: int | None = None,
    seconds: float | None = None,
    failures: int | None = None,
    reduce: bool = True,
    report: Callable[[Tally], None] | None = None,
) -> Tally:
    """Run cases until there have been so many, or so many failures, or so many seconds have passed; return what was tried.

    `report` gets the tally after every round. A round under way is not cut short by the clock, so that what a seed and a
    number of cases give does not depend on the machine.
    """
    tally = Tally(subject.name, seed)
    started = time.monotonic()
    number = 0
    while (
        (cases is None or tally.cases < cases)
        and (seconds is None or tally.seconds < seconds)
        and (failures is None or len(tally.failures) < failures)
    ):
        left = ROUND if cases is None else min(ROUND, -((tally.cases - cases) // subject.size))
        if isinstance(subject.cases, SearchStrategy):
            _round(subject, subject.cases, tally, number, left, reduce=reduce)
        else:
            _single(subject, subject.cases(random.Random(tally.seed * _ROUNDS_OF_A_SEED + number)), tally, number)
        number += 1
        tally.seconds = time.monotonic() - started
        if report is not None:
            report(tally)
    return tally


def _single(subject: Subject[Any], case: Any, tally: Tally, number: int) -> None:
    try:
        outcome = subject.check(case)
    except Exception as problem:  # noqa: BLE001  (whatever a case raises is what the campaign looks for)
        _fail(tally, number, case, problem)
    else:
        _count(tally, outcome)


def _round(
    subject: Subject[Any], cases: SearchStrategy[Any], tally: Tally, number: int, examples: int, *, reduce: bool
) -> None:
    last: list[Any] = []
    shrinking = False

    def attempt(case: Any) -> None:
        nonlocal shrinking
        last[:] = [case]
        try:
            outcome = subject.check(case)
        except Exception:
            shrinking = True
            raise
        if not shrinking:
            _count(tally, outcome)

    chosen = settings(
        max_examples=examples,
        database=None,
        derandomize=False,
        deadline=None,
        phases=(Phase.generate, Phase.shrink) if reduce else (Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    try:
        chosen(seed(tally.seed * _ROUNDS_OF_A_SEED + number)(given(cases)(attempt)))()
    except Exception as problem:  # noqa: BLE001  (whatever a case raises is what the campaign looks for)
        _fail(tally, number, last[0], problem)


def _fail(tally: Tally, number: int, case: Any, problem: Exception) -> None:
    tally.cases += 1
    found = "".join(traceback.format_exception(problem))
    tally.failures.append(Failure(tally.seed, number, case, _line(problem), found))


def _count(tally: Tally, outcome: Outcome) -> None:
    tally.cases += outcome.cases
    tally.refused += outcome.refused
    tally.words.update(outcome.words)


def _line(problem: BaseException) -> str:
    """The error in a line; of a case that fails only at times, what was raised when it failed."""
    if isinstance(problem, BaseExceptionGroup):
        return f"at times: {_line(problem.exceptions[0])}"
    text = str(problem).strip().split("\n")[0]
    return f"{type(problem).__name__}: {text}"[:500]
