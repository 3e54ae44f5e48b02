"""The page "What has been tried": all saved runs of campaigns, and how often each part of Sash was in a case."""

from __future__ import annotations

from collections import Counter
from itertools import groupby
from pathlib import Path

from campaign.faults.kinds import KINDS, MOMENTS
from campaign.mutation import Trial, read_trials
from campaign.plans import EVERY
from campaign.record import Run, read_runs
from campaign.snapshots import LEVELS
from campaign.subjects import SUBJECTS

LEAST = 500
"""In so many cases every operator, aggregate, strategy and kind of window should be."""
_PLANS = ("plans", "jobs", "spark")
PAGE = Path(__file__).parents[1] / "docs" / "experiments" / "campaigns.md"

_HEAD = """# What has been tried

Campaigns run random cases against an oracle. Repeat one with `python -m campaign SUBJECT --seconds 600 --seed 1 --save`; the \
same seed and number of cases give the same cases. A case that fails is reduced and kept as a file, which \
`python -m campaign replay FILE` runs again. `python -m campaign page` writes this page from the saved runs.

A *refused* case is one that Sash does not run for a reason that it documents. It counts as a case, and in no line of a \
distribution.
"""


def write_page(path: Path = PAGE) -> Path:
    """Write the page from the saved runs, and return its path."""
    path.write_text(page(read_runs(), read_trials()))
    return path


def page(runs: list[Run], trials: list[Trial]) -> str:
    """The text of the page."""
    lines = [_HEAD, "## In all", "", *_totals(runs), "", *_reach(runs), "", *_rare(runs)]
    if trials:
        lines += ["", *_mutants(trials)]
    for name, group in groupby(runs, key=lambda run: run.subject):
        lines += ["", *_subject(name, list(group))]
    return "\n".join(lines) + "\n"


def _totals(runs: list[Run]) -> list[str]:
    lines = ["| subject | runs | cases | refused | seconds | failures |", "|---|---:|---:|---:|---:|---:|"]
    for name, group in groupby(runs, key=lambda run: run.subject):
        of = list(group)
        lines.append(
            f"| {name} | {len(of)} | {sum(run.cases for run in of):,} | {sum(run.refused for run in of):,} "
            f"| {sum(run.seconds for run in of):,.0f} | {sum(len(run.failures) for run in of)} |"
        )
    return lines


def _mutants(trials: list[Trial]) -> list[str]:
    found = sum(trial.found for trial in trials)
    lines = [
        "## What campaigns find",
        "",
        f"Mutants are known ways to break Sash, kept as patches: {found} of {len(trials)} were found.",
        "`python -m campaign mutants` breaks a copy of the tree in each of these ways, and runs the subject until a case fails.",
        "",
        "| what is broken | found by | after cases | seconds | commit |",
        "|---|---|---:|---:|---|",
    ]
    for trial in trials:
        finder = "faults, a story of its own" if trial.finder.startswith("replay") else trial.finder.split()[0]
        after = f"{trial.cases:,}" if trial.found else "not found"
        lines.append(f"| {trial.breaks} | {finder} | {after} | {trial.seconds:,.0f} | {trial.commit} |")
    return lines


def _reach(runs: list[Run]) -> list[str]:
    """What was asked of campaigns, and how far the saved runs have come."""
    of: dict[str, Counter[str]] = {}
    cases = Counter[str]()
    for run in runs:
        of.setdefault(run.subject, Counter()).update(run.words)
        cases[run.subject] += run.cases - run.refused
    faults, snapshots = of.get("faults", Counter()), of.get("snapshots", Counter())
    on_spark = of.get("spark", Counter())["queries compared"]
    told = {
        "plans, in jobs and on Spark too": (100_000, cases["plans"] + cases["jobs"] + on_spark),
        "plans on Spark": (2_000, on_spark),
        "faults that struck": (1_000, faults["struck in all"]),
        **{
            f"faults {MOMENTS[moment]}": (50, faults[f"struck {MOMENTS[moment]}"])
            for moment in ("stage", "state", "sink")
        },
        "drivers killed": (300, sum(faults[f"fault {one.name}"] for one in KINDS if one.ends)),
        "texts": (100_000, cases["texts"]),
        "snapshots under kills": (10_000, sum(snapshots[f"snapshots {level}"] for level in LEVELS)),
    }
    lines = ["| what was asked for | | so far |", "|---|---:|---:|"]
    return lines + [f"| {name} | {asked:,} | {found:,} |" for name, (asked, found) in told.items()]


def _rare(runs: list[Run]) -> list[str]:
    """Which operators, aggregates, strategies and windows have been in too few cases of plans."""
    words = sum((run.words for run in runs if run.subject in _PLANS), Counter[str]())
    lines = [f"In fewer than {LEAST} cases of {', '.join(_PLANS)} together:", ""]
    for kind, names in EVERY.items():
        few = [f"{name} {words[f'{kind} {name}']:,}" for name in names if words[f"{kind} {name}"] < LEAST]
        lines.append(f"- *{kind}*, {len(few)} of {len(names)}: {', '.join(few) or 'none'}")
    return lines


def _subject(name: str, runs: list[Run]) -> list[str]:
    about = SUBJECTS[name].about
    lines = [f"## {name.capitalize()}", "", f"{about[0].upper()}{about[1:]}.", ""]
    lines += ["| seed | cases | refused | seconds | commit | day | failures |", "|---:|---:|---:|---:|---|---|---:|"]
    lines += [
        f"| {run.seed} | {run.cases:,} | {run.refused:,} | {run.seconds:,.0f} | {run.commit} | {run.measured[:10]} "
        f"| {len(run.failures)} |"
        for run in runs
    ]
    words = sum((run.words for run in runs), Counter[str]())
    lines += ["", "What the cases had, all runs together:", ""]
    for kind, group in groupby(sorted(words), key=lambda word: word.partition(" ")[0]):
        listed = ", ".join(f"{word.partition(' ')[2] or word} {words[word]:,}" for word in group)
        lines.append(f"- *{kind}*: {listed}")
    failed = Counter((run.commit, error, run.mended) for run in runs for error in run.failures)
    if failed:
        lines += ["", "Failures found:", ""]
        lines += [
            f"- {commit}, {count:,} times: `{error}`{f', mended: `{test}`' if test else ''}"
            for (commit, error, test), count in failed.items()
        ]
    return lines
