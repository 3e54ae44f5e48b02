"""Tables of changes and the micro-batches that release them: Table 1's queries under each strategy, all in one job.

`python -m tests.strategy_tables` writes the golden files anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sash.testing import Result, replay, replay_job
from tests.oracle.check import assert_answers
from tests.table1 import FAST, QUERIES, RELATIONS, SLOW, sales, table1_case

GOLDEN = Path(__file__).parent / "runtime" / "golden"

TWO_STAGES = (
    "SELECT DISTINCT B.StoreID, A.Price FROM SalesStream_A A, SalesStream_B B WHERE A.ItemID = B.ItemID AND A.Price > 2 "
    "Window 1 minute;"
)
"""Rows of a join that another stage reads end silently, so times have to pass between the stages."""

TEXTS = {**QUERIES, "two stages": TWO_STAGES}

STRATEGIES: dict[str, dict[str, Any]] = {
    "auto": {},
    "direct": {},
    "re-evaluation": {},
    "negative-tuple": {},
    "time-message": {},
    "time-probing": {},
    "time-probing every 20 s": {"strategy": "time-probing", "probe": 20_000},
    "hybrid every 20 s": {"strategy": "hybrid", "probe": 20_000},
    "piggyback for 20 s": {"strategy": "piggyback", "patience": 20_000},
    "input-triggered": {},
}
"""The columns of a table, with their options."""

INPUTS: dict[str, tuple[int, dict[str, int]]] = {
    "slow": (SLOW, {}),
    "fast": (FAST, {}),
    "one_ahead": (SLOW, {"SalesStream_B": 45_000}),
}
"""The gap between sales, and streams whose clocks are behind, so that others are ahead."""

STREAMS = ("SalesStream", "SalesStream_A", "SalesStream_B")

Changes = list[tuple[Any, ...]]


def options_of(strategy: str) -> dict[str, Any]:
    """The options of a column."""
    return {"strategy": strategy, **STRATEGIES[strategy]}


def replay_all(inputs: str, runtime: str = "local", texts: Mapping[str, str] = TEXTS) -> dict[tuple[str, str], Result]:
    """Replay all queries under all strategies as one job, in some fifteen micro-batches; by query and strategy."""
    gap, behind = INPUTS[inputs]
    pairs = [(query, strategy) for query in texts for strategy in STRATEGIES]
    found = replay_job(
        [(f"{query} {strategy}", TEXTS[query], options_of(strategy)) for query, strategy in pairs],
        *_rows(gap, STREAMS),
        runtime=runtime,
        batch=6 if gap == SLOW else 18,
        slack={name: behind.get(name, 0) for name in STREAMS},
        shards=2,
        until=_until(gap),
    )
    return {(query, strategy): found[f"{query} {strategy}"] for query, strategy in pairs}


def replay_one(query: str, inputs: str, strategy: str, runtime: str = "local", **options: Any) -> Result:
    """Replay one query alone."""
    gap, behind = INPUTS[inputs]
    names = [name for name in STREAMS[1:] if name in TEXTS[query]] or STREAMS[:1]
    given = {"batch": 3 if gap == SLOW else 9, "shards": 2, **options_of(strategy), **options}
    slack = {name: behind.get(name, 0) for name in names}
    rows = _rows(gap, names)
    return replay(TEXTS[query], *rows, runtime=runtime, slack=slack, until=_until(gap), **given)


def _rows(gap: int, names: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    return {name: sales(STREAMS.index(name), gap) for name in names}, dict(RELATIONS)


def _until(gap: int) -> int:
    return max(int(sales(seed, gap)[-1]["ts"]) for seed in range(len(STREAMS))) + 60_003


def released(result: Result) -> Changes:
    """Every change with the micro-batch that released it, in an order that does not depend on the runtime."""
    changes = [(change.ts, change.op, *change.row.values(), change.batch) for change in result.changes]
    return sorted(changes, key=lambda one: (one[0], one[1], repr(one[2:])))


def table(results: dict[tuple[str, str], Result], query: str) -> str:
    """One line per change of a query: its time, sign and row, and by strategy the micro-batch that releases it.

    A change that a strategy never releases has no batch; such changes are known of the local runtime alone.
    """
    changes = released(results[query, "auto"])
    lines = [f"{query + ': ' + TEXTS[query]}\n{'':24}" + "".join(f"{name:>25}" for name in STRATEGIES)]
    columns = []
    for strategy in STRATEGIES:
        left = {one[:-1]: one[-1] for one in released(results[query, strategy])}
        assert strategy == "input-triggered" or left.keys() == {one[:-1] for one in changes}
        columns.append(left)
    for change in changes:
        text = " ".join(map(str, change[:-1]))
        lines.append(f"{text:24}" + "".join(f"{left.get(change[:-1])!s:>25}" for left in columns))
    return "\n".join(lines) + "\n"


def tables(results: dict[tuple[str, str], Result]) -> str:
    """The tables of all queries."""
    return "\n".join(table(results, query) for query in dict.fromkeys(query for query, _ in results))


def assert_answers_of_all(inputs: str, results: dict[tuple[str, str], Result]) -> None:
    """Compare the answers of a strategy with the oracle's at every instant; all strategies have the same changes.

    But input-triggered does not release the last ends.
    """
    gap, _ = INPUTS[inputs]
    for query in QUERIES:
        case = table1_case(query, gap)
        streams = {name: sales(STREAMS.index(name), gap) for name in case.streams}
        right = results[query, "time-message"]
        assert_answers(replace(case, streams=streams), right, _until(gap), {})
        changes = Counter(one[:-1] for one in released(right))
        for strategy in STRATEGIES:
            found = Counter(one[:-1] for one in released(results[query, strategy]) if one[-1] is not None)
            assert found <= changes if strategy == "input-triggered" else found == changes, (query, strategy)


def golden(inputs: str) -> Path:
    """The file with the tables for an input."""
    return GOLDEN / f"strategies_{inputs}.txt"


if __name__ == "__main__":
    for inputs in INPUTS:
        golden(inputs).write_text(tables(replay_all(inputs)))
