"""Rows of an anti join that another stage reads: their ends by calendar, as negative tuples, and chosen (paper 5, 5.3.2).

By the share of rows that end prematurely and the number of partitions of the calendar: milliseconds per 1,000 rows, and the
bytes that one stage sends to the other and that this writes to its log. The time is that of both operators and of the messages
and the log between them, processor time of one process, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.paper5.ends import LINK_SCHEMA, batches_of_links, keep_method, together
from sash.physical.nodes import PhysicalPlan, Stage, StreamLeg
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.planning import plan_query
from sash.runtime.legs import LegRunner
from sash.runtime.shard import Arrival, Shard
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode, encode
from sash.state.memory import HeapMemory
from sash.time import FOREVER

SENT = (
    "SELECT t.src, t.dst, c.src AS other FROM (SELECT a.src, a.dst FROM link1 [RANGE {w} MILLISECONDS] AS a "
    "LEFT ANTI JOIN link2 [RANGE {m} MILLISECONDS] AS b ON a.src = b.src) AS t "
    "JOIN link3 [RANGE {j} MILLISECONDS] AS c ON t.dst = c.dst"
)
MATCHES = (0.0, 0.02, 0.1, 0.5)
PARTITIONS = (8192, 1024, 128)


@dataclass
class _Run:
    """The two stages of a plan in one process, with what lies between them on Spark: messages, and a log."""

    plan: PhysicalPlan
    given: int = 0
    sent_rows: int = 0
    sent_bytes: int = 0
    logged_bytes: int = 0

    def __post_init__(self) -> None:
        self._legs = [LegRunner(leg.node, {}) for leg in self.plan.legs]
        self._memories = [HeapMemory() for _ in self.plan.stages]
        pairs = zip(self.plan.stages, self._memories, strict=True)
        self.shards = [Shard(self.plan, stage, memory, {}) for stage, memory in pairs]

    def advance(self, given: Mapping[str, ChangeBatch], clock: int) -> None:
        below, above = self.plan.stages
        sent = self.shards[0].run(self._arrivals(below, given, clock, None)).changes
        message, log = encode(sent), encode(sent, "lz4")
        self.given += int((sent.sign > 0).sum())
        self.sent_rows += len(sent)
        self.sent_bytes += message.size
        self.logged_bytes += log.size
        self.shards[1].run(self._arrivals(above, given, clock, decode(message)))

    def _arrivals(
        self, stage: Stage, given: Mapping[str, ChangeBatch], clock: int, sent: ChangeBatch | None
    ) -> list[Arrival]:
        made = []
        for one in stage.inputs:
            if one.leaf.leg is None:
                assert sent is not None
                made.append(Arrival(sent, clock))
                continue
            leg = self.plan.legs[one.leaf.leg]
            assert isinstance(leg, StreamLeg)
            made.append(Arrival(self._legs[one.leaf.leg].run(given[leg.stream]), clock))
        return made

    @property
    def state_bytes(self) -> int:
        return sum(memory.nbytes for memory in self._memories)


def measure_sent(window: int, rows: int, matches: float, partitions: int, seed: int = 0) -> dict[str, Any]:
    """Fill a window of `window` rows, then measure `rows` more, each way by turns."""
    catalog = Catalog({name: StreamEntry(name, LINK_SCHEMA, "ts") for name in ("link1", "link2", "link3")})
    text = SENT.format(w=window, m=max(1, window // 200), j=max(1, window // 50))
    options = Options(partitions=partitions)
    plan = plan_query(text, catalog, {"pull_up_negation"}, shards=1, options=options).physical
    plans = {"negative tuples": keep_method(plan, float(FOREVER)), "calendar": keep_method(plan, 0.0), "chosen": plan}
    runs = {name: _Run(made) for name, made in plans.items()}
    seconds = dict.fromkeys(runs, 0.0)
    taken, begun = 0, dict.fromkeys(runs, (0, 0, 0))
    for turn, (made, clock) in enumerate(batches_of_links(window, rows, matches, seed)):
        full = clock > 1_000 * window
        names = list(runs)
        for name in names[turn % 3 :] + names[: turn % 3]:
            run = runs[name]
            if not full:
                begun[name] = run.sent_rows, run.sent_bytes, run.logged_bytes
            spent = -time.process_time()
            run.advance(made, clock)
            seconds[name] += (spent + time.process_time()) * full
        taken += full * sum(map(len, made.values()))
    sent = {
        name: [now - then for now, then in zip((run.sent_rows, run.sent_bytes, run.logged_bytes), begun[name], strict=True)]
        for name, run in runs.items()
    }  # fmt: skip
    (negation,) = [one for one in runs["chosen"].shards[0].operators if one.current_choice is not None]
    return {
        "premature": negation.premature / max(1, runs["chosen"].given),
        "ms_per_1000": {name: 1e6 * spent / taken for name, spent in seconds.items()},
        "sent_rows": {name: found[0] for name, found in sent.items()},
        "sent_bytes": {name: found[1] for name, found in sent.items()},
        "logged_bytes": {name: found[2] for name, found in sent.items()},
        "state_bytes": {name: run.state_bytes for name, run in runs.items()},
        "current_choice": negation.current_choice,
    }


def measure_all_sent(window: int, rows: int, seeds: int) -> list[dict[str, Any]]:
    """The times of every run, and what the first sent, by share of matches and number of partitions."""
    points = [(matches, partitions) for matches in MATCHES for partitions in PARTITIONS]
    return [
        {
            "partitions": partitions,
            **together([measure_sent(window, rows, matches, partitions, seed) for seed in range(seeds)]),
        }
        for matches, partitions in points
    ]
