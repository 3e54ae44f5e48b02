"""Random sets of queries planned and run together: the answers of each are those of its own oracle at every instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from sash.errors import StrategyError, UnsupportedSqlError
from sash.plan.options import STRATEGIES
from sash.testing import Result, replay_job
from tests.oracle.case import SCHEMA, Case
from tests.oracle.check import assert_oracle, until_of
from tests.oracle.duck import Rows
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
            (f"q{number}", case.sql, options)
            for number, (case, options) in enumerate(zip(self.cases, self.options, strict=True))
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
    for number, (case, options) in enumerate(zip(job.cases, job.options, strict=True)):
        result = results[f"q{number}"]
        assert_oracle(replace(case, until=last), lambda *_, found=result, **__: found, **given, **options)
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
