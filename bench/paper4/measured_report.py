"""How often to remove expired rows, and where a stream that fluctuates goes: the sections of the page, and the claims."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.claim import Claim
from bench.paper4.fluctuation import PLACES
from bench.spread import figure, middle, of, ratios, shown

NEAR = 1.05
"""The rows of an order are the fewest if they are at most this many times the fewest."""

Results = Sequence[dict[str, Any]]


def measured_sections(found: dict[str, Any]) -> Iterator[str]:
    """The sections of what was measured."""
    if results := found.get("purging"):
        yield _purging(results)
    if results := found.get("fluctuation"):
        yield _fluctuation(results)


def measured_claims(found: dict[str, Any]) -> Iterator[Claim]:
    """The claims of sections 4.1, 5.4 and 6.4."""
    if results := found.get("purging"):
        yield _interval_claim(results)
    if results := found.get("fluctuation"):
        yield from _fluctuation_claims(results)


def _purging(results: Results) -> str:
    intervals = list(dict.fromkeys(one["windows"] for one in results))
    heads = [
        f"after {interval:g} windows" if interval > 1 else "after a window" if interval else "at once"
        for interval in intervals
    ]
    made = [
        "## The interval of lazy expiration, by hash size (4.1, 6.4)\n",
        "Rows per second of an eager join of four streams, windows of 400 rows together, batches of a window:\n",
        f"| buckets | {' | '.join(heads)} |",
        "|---|" + "---:|" * len(heads),
    ]
    for buckets, at in _by_buckets(results).items():
        cells = " | ".join(shown(one["per_s"]) for one in at)
        made.append(f"| {buckets or 'a list per key'} | {cells} |")
    return "\n".join(made) + "\n"


def _by_buckets(results: Results) -> dict[int | None, list[dict[str, Any]]]:
    return {
        key: [one for one in results if one["buckets"] == key] for key in dict.fromkeys(r["buckets"] for r in results)
    }


def _interval_claim(results: Results) -> Claim:
    gains = {}
    for buckets, (at_once, *lazy) in _by_buckets(results).items():
        best = max(lazy, key=lambda one: middle(one["per_s"]))
        gains[buckets] = ratios(best["per_s"], at_once["per_s"])
    held = all(middle(runs) > 1 for runs in gains.values())
    return Claim(
        "6.4: removing expired rows at an interval is faster than at once, at the best interval for the hash size",
        "; ".join(
            f"{f'{key} buckets' if key else 'a list per key'}: {shown(runs)} times" for key, runs in gains.items()
        )
        + ".",
        held,
        ""
        if held
        else "In the paper a removal visits every bucket. Here it visits expired rows only, so that there is nothing to save, "
        "and later removals only lengthen the lists that new rows are joined with.",
    )


def _fluctuation(results: Results) -> str:
    pairs = ("first", "last")
    heads = [
        "keys",
        "peak",
        "burst, windows",
        *(f"rows looked at, {place}" for place in PLACES),
        *(f"in pairs, rows, {place}" for place in pairs),
        *(f"in pairs, state, {place}" for place in pairs),
    ]
    made = [
        "## A stream that fluctuates (5.4)\n",
        (
            "Three streams of one average rate; the first is silent between bursts at 10 or 30 times that rate. Rows that a nested "
            "loop join in one operator looks at with the fluctuating stream first, second or last in a fixed order; then, for joins "
            "of two streams at a time, the rows that they take in and output, and the most rows that they keep. All relative to the "
            "fewest, by run. *keys* are the numbers of keys of the streams.\n"
        ),
        f"| {' | '.join(heads)} |",
        "|---|" + "---:|" * (len(heads) - 1),
    ]
    for one in results:
        cells = [", ".join(map(str, one["keys"])), f"{one['peak']:g}", f"{one['windows']:g}"]
        for measure in ("looked_at", "pair_rows", "pair_state"):
            cells += [shown(runs) for runs in _relative(one[measure]).values()]
        made.append(f"| {' | '.join(cells)} |")
    return "\n".join(made) + "\n"


def _relative(by_place: dict[str, list[float]]) -> dict[str, list[float]]:
    """Every run as a multiple of the fewest of the same seed."""
    fewest = [min(runs) for runs in zip(*by_place.values(), strict=True)]
    return {place: ratios(runs, fewest) for place, runs in by_place.items()}


def _fluctuation_claims(results: Results) -> Iterator[Claim]:
    first = [middle(_relative(one["looked_at"])["first"]) for one in results]
    last = [middle(_relative(one["looked_at"])["last"]) for one in results]
    good = sum(share <= NEAR for share in first)
    yield Claim(
        "5.4: near the top of a fixed order, a stream that fluctuates costs least (the fewest rows looked at, or up to 5 % more)",
        f"Joined first in {of((good, len(first)))} settings, with at most {figure(max(first))} times the fewest rows; joined last it "
        f"looks at up to {figure(max(last))} times.",
        good == len(first),
    )
    rows = [_relative(one["pair_rows"]) for one in results]
    better = sum(middle(one["first"]) <= NEAR for one in rows)
    yield Claim(
        "5.4, for joins of two at a time: a stream that fluctuates costs least in the first join (the fewest rows, or up to 5 % more)",
        f"In {of((better, len(rows)))} settings; at most {figure(max(middle(one['first']) for one in rows))} times the fewest rows in "
        f"the first join, and {figure(max(middle(one['last']) for one in rows))} times in the last.",
        better == len(rows),
        ""
        if better == len(rows)
        else "Intermediate results are kept, so bursts that enter early make them large: the state is smaller with the stream "
        f"in the last join in {sum(middle(_relative(one['pair_state'])['last']) == 1 for one in results)} settings.",
    )
