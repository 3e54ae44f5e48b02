"""Random sets of queries planned and run together: the answers of each are those of its own oracle at every instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from sash.errors import StrategyError, UnsupportedSqlError
from sash.optimizer.widen_joins import WideJoin
from sash.plan.options import STRATEGIES
from sash.testing import Result, replay_job
from tests.oracle.case import SCHEMA, STREAMS, Case, case
from tests.oracle.cases import CASES
from tests.oracle.check import assert_oracle, until_of
from tests.oracle.duck import Rows, View
from tests.oracle.random_cases import nonretroactive_queries
from tests.oracle.strategies import (
    OPERATORS,
    Query,
    aggregated,
    combined,
    filtered,
    joined,
    made_distinct,
    names_of,
    projected,
    queries,
    sources,
    streams,
    topped,
    updates,
)

quick = settings(max_examples=150, phases=(Phase.explicit, Phase.generate))

RIGHT = tuple(name for name in STRATEGIES if name != "clock-triggered")
RELATION = "k BIGINT, g STRING, v BIGINT, x DOUBLE"


@dataclass(frozen=True, eq=False)
class Job:
    """Cases over the same rows, with the options of each."""

    cases: Sequence[Case]
    options: Sequence[Mapping[str, Any]]

    def replay(self, **given: Any) -> dict[str, Result]:
        """All cases in one job."""
        first = self.cases[0]
        listed = [
            (f"q{number}", one.sql, options)
            for number, (one, options) in enumerate(zip(self.cases, self.options, strict=True))
        ]
        inputs = {"relations": first.relations, "nrrs": first.nrrs, "schemas": first.schemas, "keys": first.keys}
        named = {name: dict(rows) for name, rows in inputs.items() if rows}
        until = max(map(until_of, self.cases))
        return replay_job(listed, dict(first.streams), unit=first.unit, until=until, **named, **given)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Two to six queries: some random, the others over one of these, or one of them again under other names."""
    kind = draw(st.sampled_from(("streams", "streams", "relations", "nrrs")))
    made: list[Query] = []
    for _ in range(draw(st.integers(2, 6))):
        if made and draw(st.integers(0, 3)):
            made.append(_over(draw, draw(st.sampled_from(made))))
        elif kind == "nrrs":
            made.append(draw(nonretroactive_queries()))
        else:
            operators = (*OPERATORS, "relation") if kind == "relations" else OPERATORS
            made.append(draw(queries(2, operators)))
    names = sorted({view.stream for query in made for _, view in query.views} | {"s"})
    rows: dict[str, Rows] = {name: draw(streams()) for name in names}
    schemas = dict.fromkeys(names, SCHEMA)
    tables: dict[str, Any] = {}
    if kind != "streams":
        schemas["t"] = RELATION
        tables = {kind: {"t": draw(updates())}}
        tables["keys"] = draw(st.sampled_from(({}, {"t": ["k"]}, {"t": ["g", "v"]})))
    cases = [
        Case("job", query.sash, query.duck, rows, dict(query.views), schemas=schemas, empties=query.empties, **tables)
        for query in (_renamed(query) if draw(st.integers(0, 3)) == 3 else query for query in made)
    ]
    same = draw(_options()) if draw(st.booleans()) else None
    return Job(cases, [draw(_options()) if same is None else same for _ in cases])


def _renamed(query: Query) -> Query:
    """The query with other names of its columns."""
    columns = ", ".join(f"{name} AS other_{name}" for name in names_of(query))
    return query.over(f"SELECT {columns} FROM ({{a}}) AS renamed", query.types)


def _over(draw: st.DrawFn, query: Query) -> Query:
    """The query, or one that has it below its own operator."""
    kinds = ("same", "filter", "project", "distinct", "aggregate", "aggregate", "top", "join", "set")
    match draw(st.sampled_from(kinds)):
        case "filter":
            return filtered(draw, query)
        case "project":
            return projected(draw, query)
        case "distinct":
            return made_distinct(query)
        case "aggregate":
            return aggregated(draw, query)
        case "top":
            return topped(draw, query)
        case "join":
            kind = draw(st.sampled_from(("join", "outer", "semi")))
            return joined(draw, kind, query, draw(queries(1)))
        case "set":
            return combined(draw, query, draw(queries(1)))
        case _:
            return query


@st.composite
def _options(draw: st.DrawFn) -> Mapping[str, Any]:
    """Options of a query: few different ones, so that some queries of a job have the same."""
    chosen: dict[str, Any] = {"strategy": draw(st.sampled_from(("auto", "auto", "direct", *RIGHT)))}
    if draw(st.integers(0, 3)) == 3:
        chosen["tau"] = draw(st.sampled_from((2, 3)))
    elif draw(st.integers(0, 4)) == 4:
        chosen["join"] = draw(st.sampled_from(("binary", "eager-hash")))
    return chosen


def assert_job(job: Job, **given: Any) -> dict[str, Result]:
    """Run the job, and compare every query with its oracle."""
    results = job.replay(**given)
    last = max(map(until_of, job.cases))
    for number, (one, options) in enumerate(zip(job.cases, job.options, strict=True)):
        result = results[f"q{number}"]
        assert_oracle(replace(one, until=last), lambda *_, found=result, **__: found, **given, **options)
    return results


@quick
@given(job=jobs(), shards=st.sampled_from((1, 2, 3)), batch=st.sampled_from((None, 1, 2, 3, 5, (4, 0, 1, 7))))
def test_random_job(job: Job, shards: int, batch: int | Sequence[int] | None) -> None:
    try:
        assert_job(job, shards=shards, batch=batch)
    except UnsupportedSqlError as refused:
        assume("cannot be joined with rows that may be retracted" not in str(refused))
        assume("can only be joined with a stream" not in str(refused))
        raise
    except StrategyError as refused:
        assume("cannot be simulated" not in str(refused))
        raise


@st.composite
def joined_jobs(draw: st.DrawFn) -> Job:
    """Two to four queries over one join of two or three inputs, of which they read different columns."""
    base = draw(queries(1, ("filter", "distinct", "set", "join")))
    for _ in range(draw(st.sampled_from((1, 1, 2)))):
        base = joined(draw, "join", base, draw(sources()))
    made = [_over(draw, projected(draw, base)) for _ in range(draw(st.integers(2, 4)))]
    names = sorted({view.stream for query in made for _, view in query.views} | {"s"})
    rows: dict[str, Rows] = {name: draw(streams()) for name in names}
    cases = [
        Case(
            "job",
            query.sash,
            query.duck,
            rows,
            dict(query.views),
            schemas=dict.fromkeys(names, SCHEMA),
            empties=query.empties,
        )
        for query in made
    ]
    options = {"strategy": draw(st.sampled_from(("auto", "auto", *RIGHT)))}
    return Job(cases, [options] * len(cases))


@settings(quick, max_examples=40)
@given(job=joined_jobs(), batch=st.sampled_from((None, 1, 3, (4, 0, 1, 7))))
def test_random_job_whose_joins_are_shared(job: Job, batch: int | Sequence[int] | None) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(WideJoin, "pays", True)
        assert_job(job, shards=2, batch=batch)


FIXED = [one for one in CASES if one.unit == "s" and not (one.relations or one.nrrs or one.schemas)]
STANDARD = [one for one in FIXED if all(rows is STREAMS.get(name) for name, rows in one.streams.items())]
SIZE = 8


@pytest.mark.parametrize("strategy", ["auto", "mixed"])
@pytest.mark.parametrize("first", range(0, len(STANDARD), SIZE))
def test_fixed_cases_as_one_job(first: int, strategy: str) -> None:
    """Neighbours in the list of cases, half of them twice: they are often about the same operator."""
    chosen = [replace(one, streams=STREAMS) for one in STANDARD[first : first + SIZE]]
    chosen += chosen[::2]
    names = [strategy if strategy == "auto" else RIGHT[(first + n) % len(RIGHT)] for n in range(len(chosen))]
    shards, batch = ((1, 3), (2, None), (3, 2), (5, 1))[first // SIZE % 4]
    pairs = zip(chosen, names, strict=True)
    options = [{"strategy": "auto" if name == "re-evaluation" and one.endless else name} for one, name in pairs]
    assert_job(Job(chosen, options), shards=shards, batch=batch)


PAIRS = "SELECT DISTINCT k, g FROM {s}"
JOINED = "SELECT a.k AS k, a.v AS v FROM {s} AS a JOIN {r} AS b ON a.k = b.k"
TOTAL = "SELECT COUNT(*) AS n, MAX(v) AS m FROM {s}"
MINUS = "SELECT k, g FROM {s} EXCEPT SELECT k, g FROM {r}"
PINNED = {
    "distinct by two keys": (
        PAIRS,
        f"SELECT k, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY k",
        f"SELECT g, COUNT(*) AS n FROM ({PAIRS}) AS p GROUP BY g",
        f"SELECT COUNT(*) AS n FROM ({PAIRS}) AS p",
        f"SELECT p.k AS k, b.v AS v FROM ({PAIRS}) AS p JOIN {{r}} AS b ON p.k = b.k",
    ),
    "join": (
        JOINED,
        f"SELECT k, COUNT(v) AS t FROM ({JOINED}) AS q GROUP BY k",
        f"SELECT k, MAX(v) AS t FROM ({JOINED}) AS q GROUP BY k",
        f"SELECT DISTINCT k, v FROM ({JOINED}) AS q",
        f"SELECT k, v FROM ({JOINED}) AS q EXCEPT ALL SELECT k, v FROM {{r}}",
    ),
    "join whose times are needed": (
        JOINED,
        f"SELECT q.k AS k, COUNT(*) AS n FROM ({JOINED}) AS q JOIN {{q}} AS c ON q.v = c.v GROUP BY q.k",
    ),
    "joins that differ in columns": (
        f"SELECT k, COUNT(*) AS n FROM ({JOINED}) AS q GROUP BY k",
        f"SELECT v, COUNT(*) AS n FROM ({JOINED}) AS q GROUP BY v",
        "SELECT DISTINCT b.v AS v, a.g AS g FROM {s} AS a JOIN {r} AS b ON b.k = a.k",
        "SELECT a.k AS k, c.v AS v FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN {q} AS c ON b.k = c.k",
        "SELECT a.v AS v, MAX(b.v) AS m FROM {s} AS a JOIN {r} AS b ON a.k = b.k JOIN {q} AS c ON b.k = c.k GROUP BY a.v",
    ),
    "one shard": (
        TOTAL,
        f"SELECT n FROM ({TOTAL}) AS q WHERE n > 2",
        f"SELECT a.n AS x, b.n AS y FROM ({TOTAL}) AS a CROSS JOIN (SELECT COUNT(*) AS n FROM {{r}}) AS b",
        "SELECT COUNT(*) AS n FROM {r}",
    ),
    "negation": (
        MINUS,
        f"SELECT g, COUNT(*) AS n FROM ({MINUS}) AS q GROUP BY g",
        f"SELECT q.k AS k, b.v AS v FROM ({MINUS}) AS q JOIN {{q}} AS b ON q.k = b.k",
    ),
}
WINDOWS = {"s": View("s", 5), "r": View("r", 4), "q": View("q", 9)}
SLIDING = {"s": View("s", 5, slide=2), "r": View("r", rows=3, partition=("k",)), "q": View("q", 9)}


@pytest.mark.parametrize("views", [WINDOWS, SLIDING], ids=["plain", "sliding"])
@pytest.mark.parametrize(("number", "strategy"), list(enumerate(RIGHT)))
@pytest.mark.parametrize("name", PINNED)
def test_pinned_job(
    name: str, number: int, strategy: str, views: Mapping[str, View], monkeypatch: pytest.MonkeyPatch
) -> None:
    empties = name != "one shard"
    cases = [replace(case(name, text, views, empties=empties), streams=STREAMS) for text in PINNED[name]]
    shards, batch = ((3, 2), (1, None), (2, 1))[number % 3]
    if name == "joins that differ in columns":
        monkeypatch.setattr(WideJoin, "pays", True)
    assert_job(Job(cases, [{"strategy": strategy}] * len(cases)), shards=shards, batch=batch)
