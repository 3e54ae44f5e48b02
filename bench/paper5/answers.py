"""The answer of a negation: its ends as negative tuples, or by calendar (paper 5, 5.3.2, for final results).

Milliseconds per 1,000 rows and bytes of state of both ways, by the share of rows that end prematurely. The changes of an answer have a `-` for every end. As negative tuples, the negation makes it: it keeps its
left rows until they expire in any case. By calendar, its rows carry their expiration times, and an Expire operator above
it, which stores them once more, makes the `-` of those that end in time.
"""

from __future__ import annotations

import time
from typing import Any

from bench.paper5.ends import LINK_SCHEMA, batches_of_links, together
from sash.plan.catalog import Catalog, StreamEntry
from sash.planning import plan_query
from sash.runtime.local import LocalRun

ANSWERS = {
    "anti join": (
        "SELECT a.src, a.dst FROM link1 [RANGE {w} MILLISECONDS] AS a "
        "LEFT ANTI JOIN link2 [RANGE {m} MILLISECONDS] AS b ON a.src = b.src"
    ),
    "EXCEPT ALL": (
        "SELECT src FROM link1 [RANGE {w} MILLISECONDS] EXCEPT ALL SELECT src FROM link2 [RANGE {m} MILLISECONDS]"
    ),
}
MATCHES = (0.0, 0.02, 0.1, 0.5)


def measure_answers(negation: str, window: int, rows: int, matches: float, seed: int = 0) -> dict[str, Any]:
    """Fill a window of `window` rows, then measure `rows` more, both ways by turns."""
    catalog = Catalog({name: StreamEntry(name, LINK_SCHEMA, "ts") for name in ("link1", "link2")})
    plain = plan_query(ANSWERS[negation].format(w=window, m=max(1, window // 200)), catalog, shards=1)
    plans = {"negative tuples": plain, "calendar": plain.with_expiration(1, premature=True)}
    runs = {name: LocalRun(planned.physical, {}) for name, planned in plans.items()}
    seconds = dict.fromkeys(runs, 0.0)
    taken = 0
    for turn, (made, clock) in enumerate(batches_of_links(window, rows, matches, seed)):
        given = {name: batch for name, batch in made.items() if name != "link3"}
        full = clock > 1_000 * window
        for name in sorted(runs, reverse=bool(turn % 2)):
            begun = time.process_time()
            runs[name].advance(given, dict.fromkeys(given, clock))
            seconds[name] += (time.process_time() - begun) * full
        taken += full * sum(map(len, given.values()))
    (seen,) = [
        counts
        for name, counts in runs["calendar"].counts.items()
        if name.endswith(("SemiJoin", "SetOperation", "ExceptAll"))
    ]
    return {
        "premature": seen.premature / max(1, seen.given - seen.given_negative),
        "ms_per_1000": {name: 1e6 * spent / taken for name, spent in seconds.items()},
        "state_bytes": {name: sum(run.stage_bytes.values()) for name, run in runs.items()},
    }


def measure_all_answers(window: int, rows: int, seeds: int) -> list[dict[str, Any]]:
    """The times of every run, and the state of the first, by negation and share of matches."""
    points = [(negation, matches) for negation in ANSWERS for matches in MATCHES]
    return [
        {
            "negation": negation,
            **together([measure_answers(negation, window, rows, matches, seed) for seed in range(seeds)]),
        }
        for negation, matches in points
    ]
