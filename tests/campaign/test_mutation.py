"""The mutants: all fit today's tree, say what they break, and are found by a campaign that stops at its first failure."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from campaign import mutation
from campaign.mutation import MUTANTS, ROOT, Mutant, Trial, apply, read_mutants, read_trials, save_trial, try_mutant
from campaign.subjects import SUBJECTS
from sash.errors import SashError

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git applies the patches")


@needs_git
@pytest.mark.parametrize("mutant", read_mutants(), ids=lambda mutant: mutant.name)
def test_every_mutant_fits_and_says_what_finds_it(mutant: Mutant) -> None:
    apply(mutant, ROOT, only_check=True)
    subject, *arguments = mutant.finder
    if mutant.has_case:
        stored = json.loads((MUTANTS / arguments[0]).read_text())
        SUBJECTS[stored["subject"]].decode(stored["case"])
    else:
        assert subject in SUBJECTS
        assert arguments[0] == "--cases"
        assert 0 < int(arguments[1]) <= 4_000
    assert mutant.breaks


def test_there_are_twenty_mutants() -> None:
    assert len(read_mutants()) >= 20


@needs_git
def test_a_patch_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "src/sash/operators").mkdir(parents=True)
    (tmp_path / "src/sash/operators/window.py").write_text("nothing\n")
    (mutant,) = read_mutants(["window-end"])
    with pytest.raises(SashError, match="window-end does not fit today's tree"):
        apply(mutant, tmp_path)


def test_an_unknown_mutant_is_an_error() -> None:
    with pytest.raises(SashError, match="there is no mutant nosuch: "):
        read_mutants(["nosuch"])


@needs_git
def test_a_mutant_is_found_and_the_tree_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    before = (ROOT / "src/sash/operators/window.py").read_text()
    # A copy of the tests and the campaign is all that a search of plans needs besides the sources.
    (mutant,) = read_mutants(["window-end"])
    trial = try_mutant(replace(mutant, finder=("plans", "--cases", "40")))
    assert trial.found
    assert "Q(" in trial.error
    assert trial.cases <= 40
    assert (ROOT / "src/sash/operators/window.py").read_text() == before
    monkeypatch.setattr(mutation, "apply", lambda *_: None)
    assert not try_mutant(replace(mutant, finder=("plans", "--cases", "5"))).found


def test_the_last_trial_of_a_mutant_is_kept(tmp_path: Path) -> None:
    made = [Trial("a", "x", "plans", "", 3, 1.0, "c"), Trial("b", "x", "plans", "e", 3, 1.0, "c")]
    for trial in (*made, replace(made[0], error="wrong")):
        save_trial(trial, tmp_path)
    assert [(one.name, one.found) for one in read_trials(tmp_path)] == [("a", True), ("b", True)]
