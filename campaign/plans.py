"""Random queries over random streams, in any strategy, split and sharding, against DuckDB at every instant."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from hypothesis import strategies as st

from campaign.subject import Outcome, Subject
from sash.errors import StrategyError, UnsupportedSqlError
from sash.plan.options import JOINS, STRATEGIES
from tests.oracle.case import SCHEMA, STREAMS, Case
from tests.oracle.cases import CASES
from tests.oracle.check import Result, assert_oracle
from tests.oracle.duck import View
from tests.oracle.random_cases import (
    cases,
    changing_cases,
    construct_cases,
    negated_cases,
    nested_cases,
    nonretroactive_cases,
)
from tests.oracle.strategies import streams

RIGHT = tuple(name for name in STRATEGIES if name != "clock-triggered")
"""The strategies whose answers are right: `clock-triggered` is there to show wrong ones."""

_REFUSALS = (
    "cannot be joined with rows that may be retracted",
    "can only be joined with a stream",
    "cannot be simulated",
    "would have to keep",
)
"""The reasons for which Sash may refuse a random query; any other error is a failure."""
_FUNCTION = re.compile(r"\b([A-Z_]{2,})\((DISTINCT\b)?")
_CONSTRUCTS = (
    "ROLLUP", "CUBE", "GROUPING SETS", "QUALIFY", "PIVOT", "UNPIVOT", "explode", "SESSION", "session_window", "TUMBLE", "HOP",
    "CUMULATE", "EMIT", "NOW()", "WITHIN GROUP", "RANGE BETWEEN", "ROWS BETWEEN", "PARTITION BY", "WITH ", "VALUES", "CASE",
    "UNION ALL", "UNION", "EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT", "LEFT JOIN", "FULL JOIN", "SEMI JOIN",
    "ANTI JOIN", "JOIN", "LATERAL", "EXISTS", "NOT IN", "IN (SELECT", "ANY (", "ALL (SELECT", "OVER (", "LIMIT", "HAVING",
    "DISTINCT", "GROUP BY", "FILTER (",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class PlanCase:
    """A query, its input, and the options of `replay`."""

    case: Case
    options: dict[str, Any]


_RANDOM = {
    "constructs": construct_cases,
    "nested": nested_cases,
    "negated": negated_cases,
    "relations": changing_cases,
    "nrrs": nonretroactive_cases,
}
_KINDS = ("streams", "streams", "streams", "alone", "written", "written", *_RANDOM)


@st.composite
def _written_cases(draw: st.DrawFn) -> Case:
    """A query of the tests, which have one for every construct, over random streams where it reads those of most tests."""
    case = draw(st.sampled_from(CASES))
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
            options["buckets"] = draw(st.sampled_from((1, 7)))
    if options["strategy"] == "re-evaluation" and (
        case.endless or "lazy" in options.get("join", "") or "tau" in options
    ):
        options["strategy"] = "auto"
    if options["strategy"] == "time-probing":
        options["probe"] = draw(st.sampled_from((None, 1, 3)))
    if options["strategy"] == "piggyback":
        options["patience"] = draw(st.sampled_from((None, 1, 4)))
    return PlanCase(case, options)


def _check(trial: PlanCase) -> Outcome:
    try:
        result = assert_oracle(trial.case, **trial.options)
    except (UnsupportedSqlError, StrategyError) as refused:
        if is_refusal(refused):
            return Outcome(refused=True)
        raise
    return Outcome(Counter(words_of(trial, result)))


def is_refusal(problem: Exception) -> bool:
    """Whether an error is one of those by which Sash refuses queries."""
    return any(reason in str(problem) for reason in _REFUSALS)


def words_of(trial: PlanCase, result: Result) -> set[str]:
    """The operators that ran, and the functions, constructs, windows and options of the case."""
    words = {f"operator {name.rpartition('.')[2]}" for name in result.counts}  # type: ignore[attr-defined]
    words |= {f"function {name}{' DISTINCT' if one else ''}" for name, one in _FUNCTION.findall(trial.case.sql)}
    words |= {f"construct {name.rstrip('(')}" for name in _CONSTRUCTS if name in trial.case.sql}
    words |= {f"window {_window(view)}" for view in trial.case.views.values()}
    words |= {f"{name} {value}" for name, value in trial.options.items() if name in ("strategy", "join", "shards")}
    words |= {f"option {name}" for name in ("tau", "purge", "probe", "patience", "buckets") if trial.options.get(name)}
    return words


def _window(view: View) -> str:
    if view.rows is not None:
        return "PARTITION BY ... ROWS" if view.partition else "ROWS"
    if view.aligned is not None:
        return "aligned"
    if view.length is None:
        return "UNBOUNDED"
    if view.length == 0:
        return "NOW"
    return "RANGE SLIDE" if view.slide is not None else "RANGE"


def _encode(trial: PlanCase) -> dict[str, Any]:
    return {"case": asdict(trial.case), "options": trial.options}


def _decode(stored: dict[str, Any]) -> PlanCase:
    fields = dict(stored["case"])
    fields["views"] = {name: View(**_tuples(view)) for name, view in fields["views"].items()}
    return PlanCase(Case(**fields), stored["options"])


def _tuples(view: dict[str, Any]) -> dict[str, Any]:
    """The fields of a view, whose tuples a file has as lists."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in view.items()}


SUBJECT = Subject(
    "plans",
    "random queries over random streams and relations that change, in every strategy, split and number of shards, "
    "compared with DuckDB at every instant",
    _plan_cases(),
    _check,
    _encode,
    _decode,
)
