"""The claims for negative tuples, time messages and piggybacking, each judged by every rate and every run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bench.claim import Claim
from bench.doubled_rows import doubled_rows
from bench.spread import by_run, falls, fewer, figure, middle, of, rises, shown, steps_up

QUERIES = ("q2", "q3")
LATE, NEGATIVE, MESSAGE, CARRIED = "input-triggered", "negative-tuple", "time-message", "piggyback"
FULL = "re-evaluation"


def claims(found: dict[str, Any]) -> list[Claim]:
    """The claims of the experiments that were run."""
    made: list[Claim] = []
    if "q2" in found:
        made += _simulated({query: found[query] for query in QUERIES}, found["settings"]["patience_ms"])
    if "baseline" in found:
        made += [claim for query, by in found["baseline"].items() for claim in _baseline(query, by)]
    return made


def excess(at: dict[str, Any], name: str) -> list[float]:
    """Rows and messages as a multiple of input-triggered's, by run."""
    return [one / two for one, two in zip(at[name]["rows"], at[LATE]["rows"], strict=True)]


def _points(by_query: dict[str, Any]) -> list[dict[str, Any]]:
    return [at for by in by_query.values() for at in by.values()]


def _simulated(by_query: dict[str, Any], patience_ms: float) -> Iterator[Claim]:
    points = _points(by_query)
    yield from doubled_rows(points, "over all rates and runs")
    top = {query: excess(by[list(by)[-1]], CARRIED) for query, by in by_query.items()}
    yield Claim(
        "Piggybacking brings the excess of rows and messages within 10 % of input-triggered at high rates",
        "; ".join(
            f"{query} at {list(by_query[query])[-1]} tuples/s: {shown([100 * (x - 1) for x in runs])} %"
            for query, runs in top.items()
        )
        + ".",
        all(value <= 1.1 for runs in top.values() for value in runs),
    )
    for query, by in by_query.items():
        curve = [excess(at, CARRIED) for at in by.values()]
        medians = [middle(runs) for runs in curve]
        peak = medians.index(max(medians))
        yield Claim(
            f"{query.upper()}: piggybacking's excess falls as the rate grows",
            f"{', '.join(f'{value:.2f}' for value in medians)} times at {', '.join(by)} tuples/s.",
            falls(medians),
            ""
            if falls(medians)
            else "At low rates no row comes in time to carry an expiration, and every time is a message, as under time messages; "
            f"the excess falls from {list(by)[peak]} tuples/s on."
            if falls(medians[peak:])
            else "The number of messages depends on how expirations and arrivals alternate.",
        )
    counts = fewer(*([at[name]["rows"] for at in points] for name in (CARRIED, MESSAGE)))
    never_more = all(
        mine <= other for at in points for mine, other in zip(at[CARRIED]["rows"], at[MESSAGE]["rows"], strict=True)
    )
    yield Claim(
        "Piggybacking never sends more than time messages do",
        f"Less in {of(counts)} runs, and never more." if never_more else f"Less in {of(counts)} runs.",
        never_more,
    )
    low = [by[next(iter(by))] for by in by_query.values()]
    longest = max(value for at in low for name in (NEGATIVE, CARRIED) for value in at[name]["longest_ms"])
    yield Claim(
        "At low rates piggybacking has the delay of negative tuples",
        f"At {', '.join(dict.fromkeys(next(iter(by)) for by in by_query.values()))} tuples/s the longest delay of both is "
        f"{figure(longest)} ms; operators take no time here.",
        all(at[CARRIED]["longest_ms"] == at[NEGATIVE]["longest_ms"] for at in low),
    )
    longest = max(value for at in points for value in at[CARRIED]["longest_ms"])
    yield Claim(
        f"Piggybacking is late by at most its patience of {patience_ms:g} ms per level",
        f"{figure(longest)} ms at most, over all rates and runs; the check allows two levels.",
        longest <= 2 * patience_ms,
    )
    first = sum(value for at in points for value in at[MESSAGE]["negatives_below_second_kind"])
    yield Claim(
        "Time messages bring the negatives processed by selections, projections and joins to zero",
        f"{first} below the first operator that needs them, over all rates and runs.",
        first == 0,
    )


def _baseline(query: str, by: dict[str, Any]) -> Iterator[Claim]:
    for other in (NEGATIVE, LATE):
        gaps = [[one / two for one, two in zip(at[FULL]["rows"], at[other]["rows"], strict=True)] for at in by.values()]
        yield Claim(
            f"{query.upper()}: what {other} saves over re-evaluation grows with the window",
            f"Re-evaluation takes {', '.join(figure(middle(gap)) for gap in gaps)} times the rows at {', '.join(by)} rows per "
            f"window; {of(steps_up(by_run(gaps)))} steps of the runs go up.",
            rises([middle(gap) for gap in gaps]),
        )
    counts = fewer(*([at[name]["ms"] for at in by.values()] for name in (NEGATIVE, FULL)))
    yield Claim(
        f"{query.upper()}: incremental evaluation is faster than re-evaluation",
        f"Negative tuples take less time in {of(counts)} runs.",
        counts[0] == counts[1],
    )
