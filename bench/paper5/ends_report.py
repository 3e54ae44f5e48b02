"""How rows of a negation end: the sections of the page and the claims, for joins above it, the answer itself, and other stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.claim import Claim
from bench.paper5.answers import ANSWERS
from bench.paper5.ends import NEGATIONS, PARTITIONS
from bench.paper5.sent import SENT
from bench.spread import fewer, figure, middle, of, ratios, shown

NEAR = 1.1
"""A choice is good if it takes at most this many times the time of the better way."""
WAYS = ("calendar", "negative tuples", "chosen")


def ends_section(results: Sequence[dict[str, Any]]) -> str:
    """The ends of rows that a join above a negation keeps, and the rows that it takes in."""
    text = (
        "The join expires the negation's rows by calendar, by negative tuples, or by the way that is chosen at run time "
        f"from the share of premature expirations. Calendars have {PARTITIONS:,} partitions here. Times are per 1,000 rows "
        "of link1; rows are those that the join takes in.\n"
    )
    times, rows = ([f"{way}, {unit}" for way in WAYS] for unit in ("ms", "rows"))
    made = [
        "## Above a negation: calendar or negative tuples\n",
        *(f"- {name}: `{sql.format(w='w', m='m')}`" for name, sql in NEGATIONS.items()),
        "",
        text,
        f"| {' | '.join(('negation', 'premature', *times, *rows, 'final choice'))} |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        cells = [shown(result["ms_per_1000"][way]) for way in WAYS]
        cells += [f"{result['handed_over'][way]:,}" for way in WAYS]
        made.append(
            f"| {result['negation']} | {result['premature']:.0%} | {' | '.join(cells)} | {result['current_choices']} |"
        )
    return "\n".join(made) + "\n"


def answers_section(results: Sequence[dict[str, Any]]) -> str:
    """The answer itself: both ways, side by side."""
    ways = ("negative tuples", "calendar")
    made = [
        "## The answer of a negation: calendar or negative tuples\n",
        *(f"- {name}: `{sql.format(w='w', m='m')}`" for name, sql in ANSWERS.items()),
        "",
        (
            "The changes of an answer have a `-` for every end. As negative tuples, the negation makes them: it keeps its left rows "
            "until they expire in any case. By calendar, an Expire operator above it stores the answer once more and makes the `-` "
            "of the rows that end in time. Times are per 1,000 rows of both links; bytes are those of all arrays.\n"
        ),
        f"| negation | premature | {' | '.join(f'{way}, ms' for way in ways)} | {' | '.join(f'{way}, bytes' for way in ways)} |",
        "|---|---|---|---|---|---|",
    ]
    for result in results:
        cells = [shown(result["ms_per_1000"][way]) for way in ways]
        cells += [f"{result['state_bytes'][way]:,}" for way in ways]
        made.append(f"| {result['negation']} | {result['premature']:.0%} | {' | '.join(cells)} |")
    return "\n".join(made) + "\n"


def sent_section(results: Sequence[dict[str, Any]]) -> str:
    """An edge between two stages: the times of all ways, and what is sent."""
    times = [f"{way}, ms" for way in WAYS]
    sizes = [f"{way}, bytes sent" for way in WAYS]
    made = [
        "## Between stages: calendar or negative tuples\n",
        f"- anti join, whose rows another stage joins: `{SENT.format(w='w', m='m', j='j')}`",
        "",
        (
            "The rows of the negation go from one stage to another, and into its log, with their expiration times or without. "
            "Times are processor time of both stages, the messages and the log, per 1,000 rows of all links; the number of "
            "partitions is that of the calendar in the stage above.\n"
        ),
        f"| premature | partitions | {' | '.join((*times, *sizes))} | final choice |",
        "|---" * 9 + "|",
    ]
    for result in results:
        cells = [shown(result["ms_per_1000"][way]) for way in WAYS]
        cells += [f"{result['sent_bytes'][way]:,}" for way in WAYS]
        last = ", ".join(result["current_choice"])
        made.append(f"| {result['premature']:.0%} | {result['partitions']:,} | {' | '.join(cells)} | {last} |")
    return "\n".join(made) + "\n"


def ends_claims(figures: dict[str, Any]) -> Iterator[Claim]:
    """The claims about the ends of a negation's rows."""
    if ends := figures.get("ends"):
        yield _choice("Above a negation", {_setting(one): one for one in ends})
    if sent := figures.get("sent"):
        yield _choice("Between stages", {f"{one['partitions']} partitions, {_setting(one)}": one for one in sent})
    if answers := figures.get("answers"):
        times = [one["ms_per_1000"] for one in answers]
        counts = fewer(*([one[way] for one in times] for way in ("negative tuples", "calendar")))
        slower = [middle(ratios(one["calendar"], one["negative tuples"])) for one in times]
        yield Claim(
            "The answer of a negation itself ends faster by negative tuples, whatever the share of premature ends",
            f"In {of(counts)} runs; by calendar it takes {figure(min(slower))} to {figure(max(slower))} times as long, by the medians "
            f"of {len(times)} settings. So there is no choice at run time: the answer ends by negative tuples.",
            counts[0] == counts[1],
        )


def _setting(result: dict[str, Any]) -> str:
    return f"{result.get('negation', 'anti join')}, {result['premature']:.0%} premature"


def _choice(where: str, results: dict[str, dict[str, Any]]) -> Claim:
    losses = {}
    for name, result in results.items():
        times = result["ms_per_1000"]
        better = [min(pair) for pair in zip(times["calendar"], times["negative tuples"], strict=True)]
        losses[name] = ratios(times["chosen"], better)
    bad = {name: runs for name, runs in losses.items() if middle(runs) > NEAR}
    return Claim(
        f"{where}, the adaptive choice takes at most a tenth longer than the better of calendar and negative tuples",
        f"Within a tenth of it, by the median of the runs, in {of((len(losses) - len(bad), len(losses)))} settings"
        + (
            "; not at " + ", ".join(f"{name}: {shown(runs)} times its time" for name, runs in bad.items())
            if bad
            else ""
        )
        + ".",
        not bad,
        "The choice is made while the window fills, from the share seen by then, and moves over only when it pays for rows "
        "to come."
        if bad
        else "",
    )
