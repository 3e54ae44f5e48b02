"""The claims of paper 2's experiments, each judged by every point and every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.claim import Claim
from bench.spread import by_run, fewer, figure, middle, of, rises, shown, steps_up

Points = list[list[Any]]
"""Points of a line: n, and the measure of every run."""

TTU, LWS = "ttu", "latest-window-serializable"
STEADY = ("serial", "window-serializable")
"""The levels without restarts, whose answers reflect the window at their start."""


def claims(results: dict[str, Any]) -> list[Claim]:
    """The claims, and whether they hold in these results."""
    made: list[Claim] = []
    if "figures" in results:
        made += _simulated({one["name"]: one["runs"] for one in results["figures"]})
    for run in results.get("real time", ()):
        made += _measured(run)
    for run in results.get("real time with snapshot queries", ()):
        made += _mixed(f"In real time, n = {run['n']}", run["levels"])
    for run in results.get("on Spark", ()):
        made += _on_spark(run)
    return made


def _runs(points: Points) -> list[list[float]]:
    return [runs for _, runs in points]


def _all(points: Points) -> list[float]:
    return [value for runs in _runs(points) for value in runs]


def _simulated(figures: dict[str, dict[str, Points]]) -> Iterator[Claim]:
    yield from _aborts(figures["paper2-fig8"])
    yield from _freshness(figures)
    between, throughput = figures["paper2-fig10"], figures["paper2-fig11"]
    settings = [name.removeprefix("serial") for name in between if name.startswith("serial")]
    bad = [
        f"n = {n:g}{setting}"
        for setting in settings
        for at, (n, runs) in enumerate(between[LWS + setting])
        if middle(runs) < max(middle(_runs(between[level + setting])[at]) for level in (*STEADY, TTU))
    ]
    yield Claim(
        "Simulated: without the read order, the time between executions is the longest, everywhere",
        f"Not at {', '.join(bad)}." if bad else "At every n and t, by the medians of the runs.",
        not bad,
        "Only queries that are answered twice have such a time, and of those that are aborted again and again few are."
        if bad
        else "",
    )
    ratios = [
        ttu / serial
        for setting in settings
        for ttu, serial in zip(_all(throughput[TTU + setting]), _all(throughput["serial" + setting]), strict=True)
    ]
    yield Claim(
        "Simulated: ttu's throughput is within 4 % of serial's",
        f"{min(ratios):.1%} to {max(ratios):.1%} of it in {len(ratios)} runs. Scheduling is free in simulation.",
        min(ratios) >= 0.96,
    )
    response = figures["paper2-fig12"]
    ratios = [ttu / serial for ttu, serial in zip(_all(response[TTU]), _all(response["serial"]), strict=True)]
    yield Claim(
        "Simulated: suspension answers snapshot queries in less than a third of serial's time",
        f"In {min(ratios):.2%} to {max(ratios):.2%} of it, over {len(ratios)} runs.",
        max(ratios) < 1 / 3,
    )
    longer = fewer(_runs(response[TTU]), _runs(response[LWS]))
    yield Claim(
        "Simulated: snapshot queries take longer where some are aborted (latest-window-serializable) than under ttu",
        f"In {of(longer)} runs.",
        all(middle(ttu) < middle(lws) for ttu, lws in zip(_runs(response[TTU]), _runs(response[LWS]), strict=True)),
        "At small n a snapshot query rarely meets an update, and the two do the same." if longer[0] < longer[1] else "",
    )


def _aborts(aborted: dict[str, Points]) -> Iterator[Claim]:
    most = max(share for name, points in aborted.items() if name.startswith(TTU) for share in _all(points))
    yield Claim("Simulated: ttu aborts no query", f"{figure(most)} % in the worst of all runs.", most == 0)
    fast, slow = aborted[f"{LWS}, t = 1 s"], aborted[f"{LWS}, t = 5 s"]
    n, shares = fast[-1]
    yield Claim(
        "Simulated: without the order, more than half of the queries are aborted at t = 1 s and the largest n",
        f"{shown(shares)} % at n = {n:g}; more than half in {of((sum(share > 50 for share in shares), len(shares)))} runs.",
        middle(shares) > 50,
    )
    for name, points in (("t = 1 s", fast), ("t = 5 s", slow)):
        medians = [middle(runs) for runs in _runs(points)]
        yield Claim(
            f"Simulated: without the order, aborts become more frequent with n ({name})",
            f"{', '.join(figure(share) for share in medians)} %; {of(steps_up(by_run(_runs(points))))} steps of the runs go up.",
            rises(medians),
            ""
            if rises(medians)
            else "Where a scan takes about as long as t, a query that restarts right after an update commits before the "
            "next one or not, by little: see the aborts by the time of a scan.",
        )
    counts = fewer(_runs(slow), _runs(fast))
    yield Claim(
        "Simulated: without the order, aborts are more frequent at t = 1 s than at t = 5 s",
        f"In {of(counts)} runs.",
        all(middle(one) < middle(two) for one, two in zip(_runs(slow), _runs(fast), strict=True)),
    )


def _freshness(figures: dict[str, dict[str, Points]]) -> Iterator[Claim]:
    for number, what in ((9, "periodic queries"), (13, "snapshot queries"), (14, "periodic queries beside snapshots")):
        series = figures[f"paper2-fig{number}"]
        settings = [name.removeprefix(TTU) for name in series if name.startswith(TTU)]
        for level in (*STEADY, LWS):
            ours, others = (
                [runs for setting in settings for runs in _runs(series[name + setting])] for name in (TTU, level)
            )
            bad = sum(middle(one) >= middle(two) for one, two in zip(ours, others, strict=True))
            yield Claim(
                f"Simulated: ttu's answers to {what} are fresher than those of {level}, everywhere",
                f"In {of(fewer(ours, others))} runs, and by the medians at {of((len(ours) - bad, len(ours)))} points.",
                bad == 0,
                "Where queries are short, few meet an update, and the levels differ by chance only." if bad else "",
            )


def _measured(run: dict[str, Any]) -> Iterator[Claim]:
    where, levels = f"In real time, n = {run['n']}", run["levels"]
    most = max(levels[TTU]["aborted"])
    yield Claim(f"{where}: ttu aborts no query", f"{most:.2%} in the worst run.", most == 0)
    shares = levels[TTU]["throughput of serial"]
    yield Claim(
        f"{where}: ttu's throughput is within 4 % of serial's",
        f"{shown(shares)} of serial's in the same turn.",
        middle(shares) >= 0.96,
    )
    for key, what in (("freshness", "answers"), ("freshness across an update", "answers that an update came between")):
        for other in STEADY:
            yield _fresher(f"{where}: ttu's {what} are fresher than those of {other}", levels, other, key)
    if run["n"] == 100:
        aborted = levels[LWS]["aborted"]
        yield Claim(
            f"{where}: without the order, more than half are aborted",
            f"{shown([100 * share for share in aborted])} %.",
            middle(aborted) > 0.5,
        )


def _fresher(text: str, levels: dict[str, Any], other: str, key: str, why: str = "") -> Claim:
    ours, others = levels[TTU][key], levels[other][key]
    counts = fewer([ours], [others])
    held = counts[0] == counts[1]
    return Claim(
        text,
        f"{shown(ours)} s against {shown(others)} s; less in {of(counts)} turns.",
        held,
        "" if held else why,
    )


def _mixed(where: str, levels: dict[str, Any]) -> Iterator[Claim]:
    ratios = _ratios(levels[TTU]["response"], levels["serial"]["response"])
    yield Claim(
        f"{where}: suspension answers snapshot queries in less than a third of serial's time",
        f"In {shown([100 * ratio for ratio in ratios])} % of it.",
        max(ratios) < 1 / 3,
    )


def _ratios(ours: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / two for one, two in zip(ours, others, strict=True)]


def _on_spark(run: dict[str, Any]) -> Iterator[Claim]:
    levels = run["levels"]
    yield from _mixed("On Spark", levels)
    takes = middle(levels[TTU]["response"])
    why = (
        f"A snapshot takes {figure(takes)} s and updates are {run['every'] / 1000:g} s apart, so few snapshots meet an update "
        "and could reflect it; the rest is the moment at which each was asked for. These are the figures of the column age of "
        "snapshots: freshness counts from the moment at which an update is applied, which serial delays."
    )
    for other in (*STEADY, LWS):
        yield _fresher(
            f"On Spark: ttu's snapshots are younger than those of {other}", levels, other, "age of snapshots", why
        )
    for other in (*STEADY, LWS):
        yield _fresher(
            f"On Spark: ttu's answers to periodic queries are fresher than those of {other}",
            levels,
            other,
            "freshness",
            "This freshness counts from the moment at which an update was applied, which serial delays; and a scan on Spark takes "
            "less than the time between two updates, so that many answers meet none.",
        )
    shares = _ratios(levels[TTU]["throughput"], levels["serial"]["throughput"])
    yield Claim(
        "On Spark: ttu's throughput is within 4 % of serial's",
        f"{shown(shares)} of serial's in the same turn.",
        min(shares) >= 0.96,
        "" if min(shares) >= 0.96 else "A turn has some twenty answers, so turns vary by more than that.",
    )
    most, others = max(levels[TTU]["aborted"]), max(levels[LWS]["aborted"])
    yield Claim(
        "On Spark: ttu aborts no query, where some are aborted without the order",
        f"{most:.2%} in the worst turn, against {others:.2%} under {LWS}.",
        most == 0 < others,
        "" if others else "This run does not tell the two apart: no periodic query was aborted under either.",
    )
