"""Calendar or negative tuples above a negation: each of the two fixed, and the adaptive choice (paper 5, 5.3.2).

The queries join above an anti join or an EXCEPT ALL; the optimizer may not pull the negation up. The more rows the right
side of the negation matches, the more rows expire prematurely.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa

from sash.physical.nodes import ExceptAll, Operation, Physical, PhysicalPlan, SemiJoin
from sash.physical.passes.base import rebuild
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch
from sash.time import FOREVER

NEGATIONS = {
    "anti join": (
        "SELECT t.src, t.dst, c.dst AS other FROM (SELECT a.src, a.dst FROM link1 [RANGE {w} MILLISECONDS] AS a "
        "LEFT ANTI JOIN link2 [RANGE {m} MILLISECONDS] AS b ON a.src = b.src) AS t "
        "JOIN link3 [RANGE {w} MILLISECONDS] AS c ON t.src = c.src"
    ),
    "EXCEPT ALL": (
        "SELECT t.src, c.dst AS other FROM (SELECT src FROM link1 [RANGE {w} MILLISECONDS] "
        "EXCEPT ALL SELECT src FROM link2 [RANGE {m} MILLISECONDS]) AS t "
        "JOIN link3 [RANGE {w} MILLISECONDS] AS c ON t.src = c.src"
    ),
}
MATCHES = {"anti join": (0.0, 0.02, 0.1, 0.5), "EXCEPT ALL": (0.0, 0.1, 0.5, 2.0)}
"""Rows of the right side per row of the left. In an anti join one removes all rows of its source, in EXCEPT ALL one."""

PARTITIONS = 1024
LINK_SCHEMA = parse_schema("ts BIGINT, src BIGINT, dst BIGINT")
_ROWS_PER_SOURCE = 5
_BATCH = 5_000

Rows = dict[str, ChangeBatch]


def measure_ends(
    window: int, rows: int, matches: Mapping[str, Sequence[float]] = MATCHES, seeds: int = 1
) -> list[dict[str, Any]]:
    """Fill windows of `window` rows, then measure `rows` more: milliseconds per 1,000 rows of each variant and seed."""
    catalog = Catalog({name: StreamEntry(name, LINK_SCHEMA, "ts") for name in ("link1", "link2", "link3")})
    measured = []
    for name, shares in matches.items():
        text = NEGATIONS[name].format(w=window, m=max(1, window // 200))
        options = Options(partitions=PARTITIONS)
        plan = plan_query(text, catalog, {"pull_up_negation"}, shards=1, options=options).physical
        for share in shares:
            runs = [_measure(plan, window, rows, share, seed) for seed in range(seeds)]
            measured.append({"negation": name, **together(runs)})
    return measured


def together(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first run, with the times of all."""
    times = {way: [round(run["ms_per_1000"][way], 4) for run in runs] for way in runs[0]["ms_per_1000"]}
    return {**runs[0], "ms_per_1000": times}


def _measure(plan: PhysicalPlan, window: int, rows: int, matches: float, seed: int) -> dict[str, Any]:
    runs = {
        "calendar": LocalRun(keep_method(plan, 0.0), {}),
        "negative tuples": LocalRun(keep_method(plan, float(FOREVER)), {}),
        "chosen": LocalRun(plan, {}),
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    changes = dict.fromkeys(runs, 0)
    for turn, (given, clock) in enumerate(batches_of_links(window, rows, matches, seed)):
        clocks = dict.fromkeys(given, clock)
        names = list(runs)
        for name in names[turn % 3 :] + names[: turn % 3]:
            before = time.process_time()
            changes[name] += len(runs[name].advance(given, clocks))
            if clock > 1_000 * window:
                times[name].append(time.process_time() - before)
    (negation,) = [seen for name, seen in runs["chosen"].counts.items() if name.endswith(("SemiJoin", "ExceptAll"))]
    handed = {
        name: next(seen.taken for operator, seen in run.counts.items() if operator.endswith(".Join"))
        for name, run in runs.items()
    }
    return {
        "matches": matches,
        "premature": round(negation.premature / max(1, negation.given - negation.given_negative), 4),
        "ms_per_1000": {name: round(1e6 * median(taken) / _BATCH, 4) for name, taken in times.items()},
        "handed_over": handed,
        "changes": changes,
        "state_bytes": {name: sum(run.stage_bytes.values()) for name, run in runs.items()},
        "current_choices": ", ".join(negation.current_choice[0]),
    }


def keep_method(plan: PhysicalPlan, share: float) -> PhysicalPlan:
    """The plan with the choice of every negation fixed to that for this share of premature expirations."""

    def fix(_old: Operation, node: Operation) -> Physical:
        match node:
            case SemiJoin() | ExceptAll() if node.ends is not None:
                return replace(node, ends=replace(node.ends, share=share, fixed=True, sent=False))
            case _:
                return node

    return replace(plan, stages=tuple(replace(stage, root=rebuild(stage.root, fix)) for stage in plan.stages))


def batches_of_links(window: int, rows: int, matches: float, seed: int) -> Iterator[tuple[Rows, int]]:
    """Generate batches and their clocks: a row of link1 per millisecond, and rows of the other links."""
    random = np.random.default_rng([5, seed])
    sources = max(1, window // _ROWS_PER_SOURCE)
    for start in range(0, window + rows, _BATCH):
        given = {}
        for name, count in (("link1", _BATCH), ("link2", int(_BATCH * matches)), ("link3", _BATCH // 20)):
            ts = np.sort(random.integers(1_000 * start, 1_000 * (start + _BATCH), count))
            columns = (pa.array(ts), *(pa.array(random.integers(0, most, count)) for most in (sources, 1_000)))
            given[name] = ChangeBatch.stamped(ts, np.full(count, FOREVER), columns)
        yield given, 1_000 * (start + _BATCH)
