"""The claims of paper 1's experiments, each judged by all points of its curve and by all runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from bench.claim import Claim
from bench.doubled_rows import doubled_rows
from bench.spread import by_run, falls, fewer, middle, of, rises, steps_down, steps_up

LATE = "input-triggered"
CORRECT = ("time-probing", "hybrid", "negative-tuple")
"""From the fastest to the slowest, as the paper has them."""


def claims(found: dict[str, Any]) -> list[Claim]:
    """The claims about delays and throughput."""
    made: list[Claim] = []
    if "fig8" in found:
        made += [*_by_query(found["fig8"]), *_by_rate(found["fig9"])]
        made += [*_by_depth(found["fig10"]), *_by_selectivity(found["fig11"])]
    if "rows" in found:
        made += doubled_rows(list(found["rows"].values()), "over all queries and runs")
    if "fig12" in found:
        made += _throughput(found["fig12"])
    return made


def _by_query(by_query: dict[str, Any]) -> Iterator[Claim]:
    ratios = [
        late / other
        for by in by_query.values()
        for name in CORRECT
        if name in by
        for late, other in zip(by[LATE]["average_ms"], by[name]["average_ms"], strict=True)
    ]
    yield Claim(
        "The three correct strategies cut the average delay of input-triggered by more than ten times",
        f"In {of((sum(ratio > 10 for ratio in ratios), len(ratios)))} runs, by {min(ratios):,.0f} to {max(ratios):,.0f} times.",
        min(ratios) > 10,
    )
    for ahead, behind in combinations(CORRECT, 2):
        both = {query: by for query, by in by_query.items() if ahead in by and behind in by}
        fast, slow = ([by[name]["average_ms"] for by in both.values()] for name in (ahead, behind))
        counts = {query: fewer([one], [two]) for query, one, two in zip(both, fast, slow, strict=True)}
        first = [query for query in both if counts[query][0] == counts[query][1]]
        found = f"{ahead} has the smaller average in {of(fewer(fast, slow))} runs: " + ", ".join(
            f"{query} {of(count)}" for query, count in counts.items()
        )
        others = [query for query in both if query not in first]
        why = (
            "What an expiration passes on its way differs: an operator that finds expired rows in its own buffer may take longer "
            "for one of them than Expire and the operator's negative form do (see the service times)."
            if others
            else ""
        )
        yield Claim(f"{ahead} is faster than {behind} for every query", f"{found}.", not others, why)


def _curve(points: dict[str, Any], name: str, measure: str = "average_ms") -> list[list[float]]:
    return [at[name][measure] for at in points.values()]


def _gaps(points: dict[str, Any], name: str) -> list[list[float]]:
    """How many times later input-triggered is than another strategy, by point and run."""
    return [
        [late / other for late, other in zip(at[LATE]["average_ms"], at[name]["average_ms"], strict=True)]
        for at in points.values()
    ]


def _by_rate(by_query: dict[str, Any]) -> Iterator[Claim]:
    for query, points in by_query.items():
        gaps = _gaps(points, "time-probing")
        medians = [middle(gap) for gap in gaps]
        yield Claim(
            f"{query.upper()}: the gap between input-triggered and the others closes as the rate grows",
            f"Input-triggered is {', '.join(f'{gap:,.0f}' for gap in medians)} times as late as time probing at "
            f"{', '.join(points)} tuples/s; {of(steps_down(by_run(gaps)))} steps of the runs go down.",
            falls(medians),
        )
        curves = _curve(points, LATE)
        yield Claim(
            f"{query.upper()}: input-triggered is later than the others at every rate",
            f"In {of(fewer(_curve(points, 'time-probing'), curves))} runs it is later than time probing.",
            all(gap > 1 for at in gaps for gap in at),
        )
    if {"q3", "q4"} <= set(by_query):
        falling = {query: _falls_to(by_query[query]) for query in ("q3", "q4")}
        yield Claim(
            "Higher rates help input-triggered less for Q3, whose DISTINCT limits the rows that reach the count, than for Q4",
            "Its delay relative to that at the lowest rate is, at the higher ones, "
            + " and ".join(
                f"{', '.join(f'{part:.2f}' for part in parts)} for {q.upper()}" for q, parts in falling.items()
            )
            + ".",
            all(one > two for one, two in zip(falling["q3"], falling["q4"], strict=True)),
        )


def _falls_to(points: dict[str, Any]) -> list[float]:
    """Input-triggered's delay at each higher rate, relative to that at the lowest: medians of the runs."""
    first, *others = _curve(points, LATE)
    return [middle([there / here for here, there in zip(first, other, strict=True)]) for other in others]


def _by_depth(points: dict[str, Any]) -> Iterator[Claim]:
    for measure, word in (("average_ms", "average"), ("longest_ms", "maximum")):
        curve = _curve(points, LATE, measure)
        medians = [middle(runs) for runs in curve]
        yield Claim(
            f"Deeper pipelines make input-triggered later ({word} delay)",
            f"{', '.join(f'{ms:,.0f}' for ms in medians)} ms with {', '.join(points)} streams; "
            f"{of(steps_up(by_run(curve)))} steps of the runs go up.",
            rises(medians),
            ""
            if rises(medians)
            else "A further stream makes a match rarer for each row, but brings rows that may complete a match, and any of them "
            "lets DISTINCT learn the time; for few streams the two nearly balance.",
        )
    hybrid, negative = (_curve(points, name) for name in ("hybrid", "negative-tuple"))
    counts = fewer(hybrid, negative)
    yield Claim(
        "Hybrid is faster than negative tuples at every depth", f"In {of(counts)} runs.", counts[0] == counts[1]
    )
    growth = {name: [middle(runs) for runs in _curve(points, name)] for name in CORRECT}
    yield Claim(
        "Negative tuples lose most by depth, because joins process every row twice",
        "; ".join(f"{name} {', '.join(f'{ms:.2f}' for ms in curve)} ms" for name, curve in growth.items()) + ".",
        all(
            growth["negative-tuple"][-1] - growth["negative-tuple"][0] > growth[name][-1] - growth[name][0]
            for name in ("time-probing", "hybrid")
        ),
    )


def _by_selectivity(points: dict[str, Any]) -> Iterator[Claim]:
    for measure, word in (("average_ms", "average"), ("longest_ms", "maximum")):
        curve = _curve(points, LATE, measure)
        medians = [middle(runs) for runs in curve]
        yield Claim(
            f"Input-triggered's {word} delay falls as more rows pass the filter",
            f"{', '.join(f'{ms:,.1f}' for ms in medians)} ms at {', '.join(points)}; {of(steps_down(by_run(curve)))} steps of "
            "the runs go down.",
            falls(medians),
        )
    last = points[list(points)[-1]]
    averages = {name: middle(at["average_ms"]) for name, at in last.items()}
    ratio = averages[LATE] / max(ms for name, ms in averages.items() if name != LATE)
    yield Claim(
        "Without a filter all strategies have the same delay",
        f"Input-triggered has {averages[LATE]:.1f} ms, {ratio:,.0f} times the slowest other.",
        ratio <= 1.1,
        "An expiration waits for the next arrival, a tenth of a second away at this rate, and the service times here are "
        "below a millisecond; only where queues or scheduling took as long would the strategies be equal.",
    )


def _throughput(by_query: dict[str, Any]) -> Iterator[Claim]:
    for query, by in by_query.items():
        slowest = {name: fewer([by["negative-tuple"]], [runs]) for name, runs in by.items() if name != "negative-tuple"}
        ratio = middle([late / ours for late, ours in zip(by[LATE], by["negative-tuple"], strict=True)])
        yield Claim(
            f"{query.upper()}: negative tuples have the lowest throughput",
            "Lower than "
            + ", ".join(f"{name} in {of(count)} runs" for name, count in slowest.items())
            + f"; input-triggered has {ratio:.2f} times theirs.",
            all(count[0] == count[1] for count in slowest.values()),
        )
    counts = fewer([by_query["q1"]["time-probing"]], [by_query["q1"][LATE]])
    yield Claim(
        "Q1: input-triggered has the highest throughput, because it does not probe",
        f"It is ahead of time probing in {of(counts)} runs.",
        counts[0] == counts[1],
        "" if counts[0] == counts[1] else "On this runtime a probe is one comparison per operator and batch.",
    )
