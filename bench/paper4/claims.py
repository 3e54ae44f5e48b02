"""The claims of paper 4's experiments, each judged by every point and every run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from bench.claim import Claim
from bench.paper4.measured_report import measured_claims
from bench.spread import by_run, falls, fewer, middle, of, ratios, rises, shown, steps_down, steps_up

Points = list[list[Any]]


def claims(found: dict[str, Any]) -> list[Claim]:
    """The claims of the experiments that were run."""
    figures = {one["name"].removeprefix("paper4-"): one["runs"] for one in found.get("figures", ())}
    made: list[Claim] = []
    for key, judge in (
        ("fig2", _figure_2),
        ("fig3a", _figure_3a),
        ("fig3b", _figure_3b),
        ("fig4a", _figure_4a),
        ("fig4b", _figure_4b),
    ):
        if key in figures:
            made += judge(figures[key])
    engine = [
        claim
        for key, where in (("local", "in one process"), ("spark", "on Spark"))
        if key in found
        for claim in _engine(found[key], where)
    ]
    made += measured_claims(found)
    return [*(_table_8(found["table8"]) if "table8" in found else ()), *engine, *made]


def _table_8(rows: Sequence[dict[str, Any]]) -> Iterator[Claim]:
    forms = {row["form"]: row for row in rows if "worst_per_s" in row}
    looked = [value for row in forms.values() for value in ratios(row["worst_probes"], row["best_probes"])]
    yield Claim(
        "Table 8: the worst plan looks at about five times as many rows as the best, as the cost model predicts (5.4)",
        f"{min(looked):.1f} to {max(looked):.1f} times, over all forms and runs.",
        4.5 <= min(looked) <= max(looked) <= 6.5,
    )
    slower = {name: ratios(row["best_per_s"], row["worst_per_s"]) for name, row in forms.items()}
    yield Claim(
        "Table 8: the best plan has the higher rate in every form",
        f"In {of(fewer(*([row[key] for row in forms.values()] for key in ('worst_per_s', 'best_per_s'))))} runs.",
        all(min(runs) > 1 for runs in slower.values()),
    )
    times = [middle(runs) for runs in slower.values()]
    yield Claim(
        "Table 8: in time the best plan is four to five times as fast",
        "; ".join(f"{name} {shown(runs)}" for name, runs in slower.items()) + ".",
        min(times) >= 4,
        "A row of a packed bucket is passed over in about a nanosecond, so the work that both plans share (insertion, "
        "expiration, the results) has a larger share here than in linked lists of objects.",
    )
    pairs = [(f"eager-{kind}", f"lazy-{kind} 5", f"lazy-{kind} 10") for kind in ("nlj", "hash")]
    hashed, scanned = ([forms[name]["best_per_s"] for name in names] for names in reversed(pairs))
    yield Claim(
        "Table 8: hash joins have higher rates than nested loops",
        f"In {of(fewer(scanned, hashed))} runs of the best plans.",
        all(middle(one) < middle(two) for one, two in zip(scanned, hashed, strict=True)),
    )
    for kind, names in zip(("nested loops", "hash tables"), pairs, strict=True):
        curve = [forms[name]["best_per_s"] for name in names]
        medians = [middle(runs) for runs in curve]
        yield Claim(
            f"Table 8: a longer interval lowers the rate (eager, tau 5, tau 10; {kind}, best plan)",
            f"{', '.join(shown(runs) for runs in curve)} rows/s; {of(steps_down(by_run(curve)))} steps of the runs go down.",
            falls(medians),
            ""
            if falls(medians)
            else "Both lazy forms are below the eager one; between them, fewer re-executions make up for the longer windows."
            if max(medians[1:]) < medians[0]
            else "",
        )


def _engine(rows: Sequence[dict[str, Any]], where: str) -> Iterator[Claim]:
    faster = [row["form"] for row in rows if middle(row["best_per_s"]) > middle(row["worst_per_s"])]
    counts = fewer(*([row[key] for row in rows] for key in ("worst_per_s", "best_per_s")))
    yield Claim(
        f"The whole engine {where}: the best plan has the higher rate in every form",
        f"By the medians in {of((len(faster), len(rows)))} forms, and in {of(counts)} pairs of measurements.",
        len(faster) == len(rows),
        ""
        if len(faster) == len(rows)
        else "The many changes for every input row, and a batch's own time, hide the difference between the plans.",
    )


def _runs(points: Points) -> list[list[float]]:
    return [runs for _, runs in points]


def _figure_2(lines: dict[str, Points]) -> Iterator[Claim]:
    naive, multi = _runs(lines["naive"]), _runs(lines["multi-way"])
    more = [[one - two for one, two in zip(*pair, strict=True)] for pair in zip(naive, multi, strict=True)]
    yield Claim(
        "Fig 2: the multi-way join scales better: what it saves over the naive join grows with every further window",
        f"The naive join looks at {', '.join(f'{middle(ratios(*pair)):.1f}' for pair in zip(naive, multi, strict=True))} times "
        f"as many rows with {', '.join(f'{count:g}' for count, _ in lines['naive'])} windows; "
        f"{of(steps_up(by_run(more)))} steps of the difference go up.",
        rises([middle(runs) for runs in more]),
    )
    off = [
        abs(run / model[0] - 1)
        for name in ("naive", "multi-way")
        for runs, model in zip(_runs(lines[name]), _runs(lines[f"{name}, model"]), strict=True)
        for run in runs
    ]
    yield Claim(
        "Fig 2: rows counted and rows modelled are the same",
        f"They differ by at most {max(off):.1%}, over all points and runs.",
        max(off) <= 0.1,
        ""
        if max(off) <= 0.1
        else "With several windows few rows reach the innermost loop, and their number varies by chance.",
    )


def _figure_3a(lines: dict[str, Points]) -> Iterator[Claim]:
    others = [
        max(pair) for pair in zip(*(map(middle, _runs(lines[name])) for name in ("lazy", "general")), strict=True)
    ]
    naive = [middle(runs) for runs in _runs(lines["naive"])]
    taus = [tau for tau, _ in lines["naive"]]
    worse = [tau for tau, mine, other in zip(taus, naive, others, strict=True) if mine > other]
    yield Claim(
        "Fig 3(a): the naive join costs the most at every tau",
        f"At {of((len(worse), len(taus)))} values of tau; {naive[0] / others[0]:.1f} times as much at tau {taus[0]:g}, "
        f"{naive[-1] / others[-1]:.2f} at tau {taus[-1]:g}.",
        len(worse) == len(taus),
        "" if len(worse) == len(taus) else f"Up to tau {max(worse):g} only." if worse else "",
    )
    off = [middle(ratios(two, one)) for one, two in zip(_runs(lines["lazy"]), _runs(lines["general"]), strict=True)]
    yield Claim(
        "Fig 3(a): lazy and general joins cost the same",
        f"General counts {min(off):.2f} to {max(off):.2f} times the rows of lazy, by tau.",
        max(abs(one - 1) for one in off) <= 0.02,
        "By the model general may start with another window than the new rows; only the time of the new row tells which rows "
        "of the others are valid, so loops above it pass on some that are not.",
    )


def _figure_3b(lines: dict[str, Points]) -> Iterator[Claim]:
    for kind, suffix in (("by the model", ", model"), ("counted", "")):
        lazy, general, naive = (
            [middle(runs) for runs in _runs(lines[name + suffix])] for name in ("lazy", "general", "naive")
        )
        taus = [tau for tau, _ in lines["lazy"]]
        behind = [tau for tau, mine, other in zip(taus, lazy, general, strict=True) if mine > 1.02 * other]
        last = lazy[-1] > naive[-1]
        yield Claim(
            f"Fig 3(b), {kind}: with one fast stream lazy falls behind general, and then behind naive, as tau grows",
            f"It is behind general at tau {', '.join(f'{tau:g}' for tau in behind) or '(none)'}, and {'' if last else 'not '}"
            f"behind naive at tau {taus[-1]:g}.",
            bool(behind) and last and behind == taus[-len(behind) :],
            "The model gives every window T + tau rows, also to rows that match; the operator checks the time of every row, so "
            "that expired ones are looked at and go no further."
            if not suffix
            else "",
        )


def _figure_4a(lines: dict[str, Points]) -> Iterator[Claim]:
    names = list(lines)
    for fewer_buckets, more in pairwise(names):
        low, high = _runs(lines[fewer_buckets]), _runs(lines[more])
        held = all(middle(one) < middle(two) for one, two in zip(low, high, strict=True))
        yield Claim(
            f"Fig 4(a): {more} has a higher rate than {fewer_buckets} at every tau",
            f"In {of(fewer(low, high))} runs; {middle(ratios(high[0], low[0])):.2f} times at the smallest tau, "
            f"{middle(ratios(high[-1], low[-1])):.2f} at the largest.",
            held,
            "" if held else "The work besides the probes (insertion, expiration, results) is then nearly all of it.",
        )
    curve = _runs(lines["NLJ"])
    yield Claim(
        "Fig 4(a): the rate of nested loops falls as tau grows",
        f"{of(steps_down(by_run(curve)))} steps of the runs go down.",
        falls([middle(runs) for runs in curve]),
        "" if falls([middle(runs) for runs in curve]) else "At small tau steps are smaller than the range of the runs.",
    )
    best = {name: max(points, key=lambda point: middle(point[1]))[0] for name, points in lines.items()}
    hashed = [best[name] for name in names[1:]]
    yield Claim(
        "Fig 4(a): the best tau is longer for larger hash tables",
        ", ".join(f"{name} {tau:g}" for name, tau in best.items()) + ".",
        rises(hashed),
        "In the paper every bucket is visited to find expired rows; here an expired row is found directly, so a small tau is "
        "not expensive."
        if not rises(hashed)
        else "",
    )


def _overlap(by: dict[str, dict[float, list[float]]], means: Sequence[float]) -> str:
    """Whether the ranges of the runs overlap at these numbers of buckets."""
    apart = [mean for mean in means if min(by["1 to slow"][mean]) > max(by["equal"][mean])]
    return "The cause was not examined." if apart else "There the ranges of the runs overlap."


def _figure_4b(lines: dict[str, Points]) -> Iterator[Claim]:
    by = {name: dict(map(tuple, points)) for name, points in lines.items()}
    worst = {
        mean: all(
            middle(by["1 to slow"][mean]) < middle(runs[mean])
            for name, runs in by.items()
            if name != "1 to slow" and mean in runs
        )
        for mean in by["1 to slow"]
    }
    yield Claim(
        "Fig 4(b): slow streams without a hash table are the worst",
        f"At {of((sum(worst.values()), len(worst)))} numbers of buckets, by the medians"
        + "".join(f"; not at {mean:g}" for mean, held in worst.items() if not held)
        + ".",
        all(worst.values()),
        "" if all(worst.values()) else _overlap(by, [mean for mean, held in worst.items() if not held]),
    )
    gains = {mean: ratios(runs, by["equal"][mean]) for mean, runs in by["5 to slow"].items()}
    held = all(middle(runs) > 1 for runs in gains.values())
    yield Claim(
        "Fig 4(b): five buckets for each slow stream and the rest for the fast one are better than equal shares",
        "; ".join(f"{mean:g} buckets: {shown(runs)} times" for mean, runs in gains.items()) + ".",
        held,
        ""
        if held
        else "With about ten buckets per window the probes no longer dominate, and how they are shared matters little.",
    )
