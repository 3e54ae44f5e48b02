"""Random queries over random streams, in any strategy, split and sharding, against DuckDB at every instant."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, get_args
from unittest.mock import patch

from hypothesis import strategies as st

from campaign.subject import Outcome, Subject
from sash import planning
from sash.errors import StrategyError, UnsupportedSqlError
from sash.optimizer.optimizer import optimize
from sash.physical.nodes import Operation
from sash.plan.catalog import Catalog
from sash.plan.nodes import Node
from sash.plan.options import JOINS, STRATEGIES
from sash.sql.aggregates import AGGREGATES
from sash.sql.binder import parse_query
from tests.oracle.case import SCHEMA, STREAMS, Case
from tests.oracle.cases import CASES
from tests.oracle.check import Result, assert_oracle
from tests.oracle.duck import View
from tests.oracle.random_aggregates import aggregate_cases
from tests.oracle.random_cases import (
    cases,
    changing_cases,
    construct_cases,
    negated_cases,
    nested_cases,
    nonretroactive_cases,
)
from tests.oracle.random_time_windows import time_window_cases
from tests.oracle.strategies import streams

RIGHT = tuple(name for name in STRATEGIES if name != "clock-triggered")
"""The strategies whose answers are right: `clock-triggered` is there to show wrong ones."""

VARIANTS = 8
"""How many runs one query over the same rows has: what comes before the options, from drawing the query and DuckDB's answers to
the optimized plan, is made once, and would be most of a case's time."""

_REFUSALS = (
    "cannot be joined with rows that may be retracted",
    "can only be joined with a stream",
    "cannot be simulated",
    "would have to keep",
)
"""The reasons for which Sash may refuse a random query; any other error is a failure."""
_FUNCTION = re.compile(r"\b([A-Za-z_0-9]{2,})\((DISTINCT\b)?")
_CONSTRUCTS = (
    "ROLLUP", "CUBE", "GROUPING SETS", "QUALIFY", "PIVOT", "UNPIVOT", "explode", "SESSION", "session_window", "TUMBLE", "HOP",
    "CUMULATE", "EMIT", "NOW()", "WITHIN GROUP", "RANGE BETWEEN", "ROWS BETWEEN", "PARTITION BY", "WITH ", "VALUES", "CASE",
    "UNION ALL", "UNION", "EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT", "LEFT JOIN", "FULL JOIN", "SEMI JOIN",
    "ANTI JOIN", "JOIN", "LATERAL", "EXISTS", "NOT IN", "IN (SELECT", "ANY (", "ALL (SELECT", "OVER (", "LIMIT", "HAVING",
    "DISTINCT", "GROUP BY", "FILTER (",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlanCase:
    """A query and its input, and the options of `replay` with which they run: each of these runs is a case."""

    case: Case
    variants: tuple[dict[str, Any], ...]


_RANDOM = {
    "constructs": construct_cases,
    "nested": nested_cases,
    "negated": negated_cases,
    "relations": changing_cases,
    "nrrs": nonretroactive_cases,
    "aggregates": aggregate_cases,
    "time windows": time_window_cases,
}
_KINDS = ("streams", "streams", "alone", "written", "written", "written", "aggregates", *_RANDOM)


@st.composite
def _written_cases(draw: st.DrawFn) -> Case:
    """A query of the tests, which have one for every construct, over random streams where it reads those of most tests.

    Any word that some of them have is as likely as any other: so what few of them have is not rare.
    """
    found = _written_by_word()
    case = draw(st.sampled_from(found[draw(st.sampled_from(tuple(found)))]))
    edges = any(view.edges for view in case.views.values())
    if edges or case.unit != "s" or any(rows is not STREAMS.get(name) for name, rows in case.streams.items()):
        return case
    # The end of some cases is chosen for their rows.
    return replace(
        case,
        streams={name: draw(streams(10)) for name in case.streams},
        schemas={**case.schemas, **dict.fromkeys(case.streams, SCHEMA)},
        until=None,
    )


@functools.cache
def _written_by_word() -> dict[str, list[Case]]:
    """The queries of the tests by the words of their texts and windows."""
    found: dict[str, list[Case]] = {}
    for case in CASES:
        for word in sorted(_words_of_text(case)):
            found.setdefault(word, []).append(case)
    return found


@st.composite
def _plan_cases(draw: st.DrawFn) -> PlanCase:
    kind = draw(st.sampled_from(_KINDS))
    if kind == "streams":
        case = draw(cases(depth=3, max_rows=10))
    elif kind == "alone":
        case = draw(cases(depth=1, max_rows=14))
    elif kind == "written":
        case = draw(_written_cases())
    else:
        case = draw(_RANDOM[kind]())
    count = draw(st.sampled_from((1, *[VARIANTS] * 9)))
    return PlanCase(case, tuple(_options(draw, case) for _ in range(count)))


def _options(draw: st.DrawFn, case: Case) -> dict[str, Any]:
    batch = draw(
        st.one_of(
            st.sampled_from((None, 1, 2, 3, 5)),
            st.lists(st.integers(0, 4), min_size=1, max_size=5).filter(any),
        )
    )
    options: dict[str, Any] = {
        "strategy": draw(st.sampled_from(("auto", "auto", *RIGHT))),
        "shards": draw(st.sampled_from((1, 2, 3, 5))),
        "batch": batch,
    }
    match draw(st.integers(0, 11)):
        case 0:
            options["tau"] = draw(st.sampled_from((1, 2, 3, 7)))
        case 1:
            options["join"] = draw(st.sampled_from([name for name in JOINS if "lazy" not in name]))
        case 2:
            options["join"] = draw(st.sampled_from([name for name in JOINS if "lazy" in name]))
            options["tau"] = draw(st.sampled_from((1, 2, 3, 7)))
        case 3:
            options["purge"] = draw(st.sampled_from((1, 3, 9)))
        case 4:
            options["buckets"] = draw(st.sampled_from((9, 64)))
    if options["strategy"] == "re-evaluation" and (
        case.endless or "lazy" in options.get("join", "") or "tau" in options
    ):
        options["strategy"] = "auto"
    if options["strategy"] == "time-probing":
        options["probe"] = draw(st.sampled_from((None, 1, 3)))
    if options["strategy"] == "piggyback":
        options["patience"] = draw(st.sampled_from((None, 1, 4)))
    return options


def _check(trial: PlanCase) -> Outcome:
    words = Counter(["query drawn"])
    refused = 0
    with _optimized_once():
        for options in trial.variants:
            try:
                result = assert_oracle(trial.case, **options)
            except (UnsupportedSqlError, StrategyError) as problem:
                if not is_refusal(problem):
                    raise
                refused += 1
            else:
                words.update(words_of(trial.case, options, result))
    return Outcome(words, refused, len(trial.variants))


@contextmanager
def _optimized_once() -> Iterator[None]:
    """Parse and optimize a query for its first run only: both are given its text and its tables, and know no options."""
    parsed: dict[str, Any] = {}
    optimized: dict[Any, Any] = {}

    def parse_once(sql: str, catalog: Catalog) -> Any:
        if sql not in parsed:
            parsed[sql] = parse_query(sql, catalog)
        return parsed[sql]

    def optimize_once(plan: Node, **given: Any) -> Any:
        if plan not in optimized:
            optimized[plan] = optimize(plan, **given)
        return optimized[plan]

    with patch.object(planning, "parse_query", parse_once), patch.object(planning, "optimize", optimize_once):
        yield


def is_refusal(problem: Exception) -> bool:
    """Whether an error is one of those by which Sash refuses queries."""
    return any(reason in str(problem) for reason in _REFUSALS)


def words_of(case: Case, options: Mapping[str, Any], result: Result) -> set[str]:
    """The operators that ran, and the aggregates, functions, constructs, windows and options of the case."""
    words = {f"operator {name.rpartition('.')[2]}" for name in result.counts}  # type: ignore[attr-defined]
    words |= _words_of_text(case)
    words |= {f"{name} {value}" for name, value in options.items() if name in ("strategy", "join", "shards")}
    words |= {f"option {name}" for name in ("tau", "purge", "probe", "patience", "buckets") if options.get(name)}
    return words


@functools.lru_cache(maxsize=256)
def _words_of_text(case: Case) -> frozenset[str]:
    called = _FUNCTION.findall(case.sql)
    return frozenset(
        {f"aggregate {AGGREGATES[name.lower()]}" for name, _ in called if name.lower() in AGGREGATES}
        | {f"function {name.upper()}{' DISTINCT' if one else ''}" for name, one in called}
        | {f"construct {name.rstrip('(')}" for name in _CONSTRUCTS if name in case.sql}
        | {f"window {_window(view, case.sql)}" for view in case.views.values()}
    )


def _window(view: View, sql: str) -> str:
    if view.rows is not None:
        return "PARTITION BY ... ROWS" if view.partition else "ROWS"
    if view.aligned is not None:
        return "aligned"
    if view.length is None:
        return "RANGE UNBOUNDED" if "UNBOUNDED]" in sql else "none"
    if view.length == 0:
        return "NOW"
    return "RANGE SLIDE" if view.slide is not None else "RANGE"


EVERY: Mapping[str, tuple[str, ...]] = {
    "operator": tuple(one.__name__ for one in get_args(Operation)),
    "aggregate": tuple(sorted(set(AGGREGATES.values()))),
    "strategy": RIGHT,
    "window": ("RANGE", "RANGE SLIDE", "ROWS", "PARTITION BY ... ROWS", "NOW", "RANGE UNBOUNDED", "aligned", "none"),
}
"""All there is of the kinds of words that each should be in many cases."""


def _encode(trial: PlanCase) -> dict[str, Any]:
    return {"case": asdict(trial.case), "variants": trial.variants}


def _decode(stored: dict[str, Any]) -> PlanCase:
    return PlanCase(case_from(stored["case"]), tuple(stored["variants"]))


def case_from(stored: Mapping[str, Any]) -> Case:
    """The case that a file has."""
    views = {name: View(**_tuples(view)) for name, view in stored["views"].items()}
    return Case(**{**stored, "views": views})


def _tuples(view: dict[str, Any]) -> dict[str, Any]:
    """The fields of a view, whose tuples a file has as lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in view.items()}


SUBJECT = Subject(
    "plans",
    "random queries over random streams and relations that change, in every strategy, split and number of shards, "
    f"compared with DuckDB at every instant; up to {VARIANTS} cases have the same query and rows, and differ in these options",
    _plan_cases(),
    _check,
    _encode,
    _decode,
    VARIANTS,
)
