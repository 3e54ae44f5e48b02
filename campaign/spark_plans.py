"""Random queries on Spark, many in one job, over the same random streams: each is compared with DuckDB at every instant."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from campaign.plans import RIGHT, is_refusal, words_of
from campaign.subject import Outcome, Subject
from sash.errors import StrategyError, UnsupportedSqlError
from tests.oracle.case import SCHEMA, Case
from tests.oracle.duck import Rows
from tests.oracle.random_constructs import construct_queries
from tests.oracle.random_subqueries import nested
from tests.oracle.strategies import Query, queries, streams
from tests.test_oracle_jobs import Job, assert_job

QUERIES = 16
"""The queries of a job."""
_SMALL = 8
"""So many examples of a seed are small, and are left out."""
_STREAMS = ("q", "r", "s")
T = TypeVar("T")


@dataclass(frozen=True)
class SparkCase:
    """A job, determined by its seed."""

    seed: int
    queries: int
    shards: int
    batch: int | None


def _made(rnd: random.Random) -> SparkCase:
    return SparkCase(rnd.randrange(2**31), QUERIES, rnd.choice((1, 2, 3)), rnd.choice((None, 6, 12, 18)))


@st.composite
def _queries(draw: st.DrawFn) -> Query:
    match draw(st.integers(0, 3)):
        case 0:
            return draw(construct_queries())
        case 1:
            return nested(draw, draw(queries(1)), draw(queries(1)))
        case _:
            return draw(queries(3))


def drawn(strategy: st.SearchStrategy[T], seed: int, count: int) -> list[T]:
    """So many examples of a strategy, without the first, small ones."""
    found: list[T] = []

    @seeded(seed)
    @settings(
        max_examples=count + _SMALL,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def draw(example: T) -> None:
        found.append(example)

    draw()
    return found[_SMALL:]


def job_of(case: SparkCase) -> tuple[Job, int]:
    """The job, without the queries that Sash refuses, and how many these are."""
    rows: dict[str, Rows] = dict(zip(_STREAMS, drawn(streams(12), case.seed, len(_STREAMS)), strict=False))
    strategies = [name for name in RIGHT if name != "input-triggered"]  # its last changes are not released on Spark
    rnd = random.Random(case.seed)
    cases: list[Case] = []
    options: list[Mapping[str, Any]] = []
    refused = 0
    for query in drawn(_queries(), case.seed, case.queries):
        one = Case(
            "spark",
            query.sash,
            query.duck,
            {name: rows[name] for name in _STREAMS},
            dict(query.views),
            schemas=dict.fromkeys(_STREAMS, SCHEMA),
            empties=query.empties,
        )
        chosen = {"strategy": rnd.choice(("auto", "auto", *strategies))}
        try:
            assert_job(Job([one], [chosen]), shards=case.shards, batch=case.batch)
        except (UnsupportedSqlError, StrategyError) as problem:
            if not is_refusal(problem):
                raise
            refused += 1
        else:
            cases.append(one)
            options.append(chosen)
    return Job(cases, options), refused


def _check(case: SparkCase) -> Outcome:
    from sash.spark.session import embedded_session

    embedded_session(cores=2)
    job, refused = job_of(case)
    words = Counter({"queries refused": refused, "queries compared": len(job.cases)})
    if job.cases:
        results = assert_job(job, runtime="spark", shards=case.shards, batch=case.batch)
        for number, (one, options) in enumerate(zip(job.cases, job.options, strict=True)):
            words.update(words_of(one, options, results[f"q{number}"]))
    return Outcome(words)


SUBJECT = Subject(
    "spark",
    f"random queries on Spark, {QUERIES} in one job over the same random streams, first one by one without Spark, then as the "
    "job, each compared with DuckDB at every instant",
    _made,
    _check,
    asdict,
    lambda stored: SparkCase(**stored),
)
