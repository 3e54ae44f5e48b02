"""Random jobs without Spark: queries that are planned together, and alike queries that run as one and come and go."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hypothesis import strategies as st

from campaign.plans import case_from, is_refusal, words_of
from campaign.subject import Outcome, Subject
from sash.errors import StrategyError, UnsupportedSqlError
from tests.alike.runs import answers_alone, run_alike
from tests.alike.test_oracle_alike import SHAPES, UNTIL, random_queries, random_rows
from tests.test_oracle_jobs import Job, assert_job, jobs

_BATCHES: tuple[int | tuple[int, ...] | None, ...] = (None, 1, 2, 3, 5, (4, 0, 1, 7))


@dataclass(frozen=True, eq=False)
class Planned:
    """Queries that are planned together."""

    job: Job
    shards: int
    batch: int | Sequence[int] | None


@dataclass(frozen=True)
class Alike:
    """Queries that differ in constants, which run as one. Rows, constants, and what comes and goes follow from the seed."""

    shape: str
    seed: int
    shards: int
    batch: int
    net: bool


_planned = st.builds(Planned, jobs(), st.sampled_from((1, 2, 3)), st.sampled_from(_BATCHES))
_alike = st.builds(
    Alike,
    st.sampled_from(sorted(SHAPES)),
    st.integers(0, 2**31),
    st.sampled_from((1, 2, 3)),
    st.sampled_from((5, 10, 25)),
    st.booleans(),
)


def _check(case: Planned | Alike) -> Outcome:
    return _check_alike(case) if isinstance(case, Alike) else _check_planned(case)


def _check_planned(case: Planned) -> Outcome:
    size = len(case.job.cases)
    try:
        results = assert_job(case.job, shards=case.shards, batch=case.batch)
    except (UnsupportedSqlError, StrategyError) as problem:
        if not is_refusal(problem):
            raise
        return Outcome(Counter(), size, size)
    words = Counter({"job planned together": 1})
    for number, (one, options) in enumerate(zip(case.job.cases, case.job.options, strict=True)):
        words.update(words_of(one, {**options, "shards": case.shards}, results[f"q{number}"]))
    return Outcome(words, 0, size)


def _check_alike(case: Alike) -> Outcome:
    chance = random.Random(case.seed)
    given, queries = random_rows(chance), random_queries(SHAPES[case.shape], chance)
    numbers = range(len(queries))
    start = {number: chance.choice((0, 0, 1, 2, 3)) for number in numbers}
    stop = {number: start[number] + chance.choice((1, 2, 99)) for number in numbers}
    added = {batch: [number for number in numbers if start[number] == batch] for batch in range(4)}
    removed = {batch: [number for number in numbers if stop[number] == batch] for batch in range(1, 6)}
    run = run_alike(
        queries, given, UNTIL, batch=case.batch, added=added, removed=removed, net=case.net, shards=case.shards
    )
    clocks = [0, *run.clocks]
    for number, sql in enumerate(queries):
        if start[number] >= len(clocks) - 1:
            continue
        alone = answers_alone(sql, given, UNTIL)
        first = clocks[start[number]]
        last = clocks[stop[number]] if stop[number] < len(clocks) - 1 else UNTIL + 1
        every = {first - 1, first, last - 1, min(last, UNTIL)} | run.instants(number) | alone.instants(0)
        for ts in sorted({clock - 1 for clock in clocks} if case.net else every):
            own = alone.at(0, ts) if first <= ts < last else {}
            assert run.at(number, ts) == own, f"{sql} at {ts}: there from {first} to {last}"
    operators = {f"operator {name.rpartition('.')[2]}": len(queries) for name in run.operators}
    return Outcome(Counter({"job of alike queries": 1, **operators}), 0, len(queries))


def _encode(case: Planned | Alike) -> dict[str, Any]:
    if isinstance(case, Alike):
        return {"alike": asdict(case)}
    cases = [asdict(one) for one in case.job.cases]
    return {"cases": cases, "options": case.job.options, "shards": case.shards, "batch": case.batch}


def _decode(stored: dict[str, Any]) -> Planned | Alike:
    if "alike" in stored:
        return Alike(**stored["alike"])
    job = Job([case_from(one) for one in stored["cases"]], stored["options"])
    return Planned(job, stored["shards"], stored["batch"])


SUBJECT = Subject(
    "jobs",
    "random jobs without Spark, each of whose queries is a case: up to six that are planned together and share what they can, "
    "compared with DuckDB at every instant, or alike queries that run as one and come and go, compared with each of them alone",
    st.one_of(_planned, _planned, _planned, _alike),
    _check,
    _encode,
    _decode,
    6,
)
