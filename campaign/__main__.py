"""`python -m campaign SUBJECT --seconds N --seed S`: try random cases, and keep those that fail as files."""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from campaign.mutation import copied_tree, read_mutants, save_trial, try_mutant
from campaign.page import write_page
from campaign.record import read_failure, save_failure, save_run
from campaign.search import Tally, search
from campaign.subject import Subject
from campaign.subjects import SUBJECTS

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Random cases against oracles, with failures kept.",
)


def _command(subject: Subject[Any]) -> None:
    def run(
        seconds: Annotated[float | None, typer.Option(help="stop after so many seconds")] = None,
        cases: Annotated[int | None, typer.Option(help="stop after so many cases")] = None,
        failures: Annotated[int | None, typer.Option(help="stop after so many failures")] = None,
        seed: Annotated[int, typer.Option(help="the same seed gives the same cases")] = 0,
        reduce: Annotated[bool, typer.Option(help="reduce cases that fail")] = True,
        as_json: Annotated[bool, typer.Option("--json", help="print the tally as JSON")] = False,
        save: Annotated[bool, typer.Option(help="keep the tally for the page")] = False,
    ) -> None:
        if seconds is None and cases is None and failures is None:
            seconds = 60.0
        tally = search(
            subject, seed, cases=cases, seconds=seconds, failures=failures, reduce=reduce, report=_Report(subject)
        )
        print(file=sys.stderr)
        if save:
            print(f"saved: {save_run(tally)}", file=sys.stderr)
        if as_json:
            told = {"subject": tally.subject, "seed": seed, "cases": tally.cases, "refused": tally.refused}
            errors = [failure.error for failure in tally.failures]
            print(json.dumps({**told, "seconds": tally.seconds, "words": tally.words, "failures": errors}))
        else:
            print(
                f"{tally.subject}: {tally.cases:,} cases in {tally.seconds:,.0f} s with seed {seed}, "
                f"{tally.refused:,} refused, {len(tally.failures)} failed"
            )
        if tally.failures:
            raise typer.Exit(1)

    app.command(subject.name, help=subject.about)(run)


class _Report:
    """Shows how far a campaign is, and keeps its failures as soon as they are found."""

    def __init__(self, subject: Subject[Any]) -> None:
        self._subject = subject
        self._kept = self._rounds = 0

    def __call__(self, tally: Tally) -> None:
        if not self._rounds:
            _collect_seldom()
        self._rounds += 1
        failed = f", {len(tally.failures)} failed" if tally.failures else ""
        print(
            f"\r{tally.subject}: {tally.cases:,} cases, {tally.seconds:,.0f} s{failed} ",
            end="",
            file=sys.stderr,
            flush=True,
        )
        for failure in tally.failures[self._kept :]:
            path = save_failure(self._subject, failure)
            print(f"\n{failure.error}\n  again: python -m campaign replay {path}", file=sys.stderr)
        self._kept = len(tally.failures)


def _collect_seldom() -> None:
    """Leave what is loaded by now out of garbage collections: going through it took a third of a campaign's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@app.command()
def replay(path: Annotated[Path, typer.Argument(help="a failing case that a campaign has kept")]) -> None:
    """Run a failing case again; its error, if it still fails, is raised as it is."""
    name, stored = read_failure(path)
    subject = SUBJECTS[name]
    subject.check(subject.decode(stored))
    print(f"{path}: passes")


@app.command()
def mutants(
    names: Annotated[list[str] | None, typer.Argument(help="mutants; without names, all")] = None,
    save: Annotated[bool, typer.Option(help="keep what was found for the page")] = False,
) -> None:
    """Break a copy of this tree in known ways, one after the other, and see whether campaigns find it."""
    missed = []
    with copied_tree() as tree:
        for mutant in read_mutants(names):
            trial = try_mutant(mutant, tree)
            print(f"{mutant.name}: {trial}", flush=True)
            if save:
                save_trial(trial)
            if not trial.found:
                missed.append(mutant.name)
    if missed:
        print(f"not found: {', '.join(missed)}")
        raise typer.Exit(1)


@app.command()
def page() -> None:
    """Write docs/experiments/campaigns.md from the saved runs."""
    print(write_page())


for one in SUBJECTS.values():
    _command(one)

if __name__ == "__main__":
    app()
