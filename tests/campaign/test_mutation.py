"""The mutants: all fit today's tree, say what they break, and are found by a campaign that stops at its first failure."""

from __future__ import annotations

import json
import shutil
import subprocess
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
        assert 0 < int(arguments[1]) <= 16_000
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
def test_a_mutant_is_found_in_a_copy_which_is_as_before_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without running a campaign: what it prints is given."""
    (mutant,) = read_mutants(["window-end"])
    (file,) = mutant.files
    seen = []

    def campaign(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
        seen.append(((tree / file).read_text() == (ROOT / file).read_text(), arguments[:3]))
        told = {"cases": 7, "failures": ["Q(3) is wrong"]}
        return subprocess.CompletedProcess([], 1, json.dumps(told), "")

    monkeypatch.setattr(mutation, "_campaign", campaign)
    shutil.copytree(ROOT / "src/sash/operators", tmp_path / "src/sash/operators")
    trial = try_mutant(mutant, tmp_path)
    assert seen == [(False, mutant.finder)], "it ran with the mutant"
    assert (trial.found, trial.cases, trial.error) == (True, 7, "Q(3) is wrong")
    assert (tmp_path / file).stat().st_mtime_ns == (ROOT / file).stat().st_mtime_ns
    assert (tmp_path / file).read_text() == (ROOT / file).read_text()


@needs_git
def test_a_case_that_fails_without_the_mutant_or_by_another_error_shows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mutant,) = read_mutants(["batch-twice"])
    (file,) = mutant.files
    (tmp_path / file).parent.mkdir(parents=True)
    shutil.copy2(ROOT / file, tmp_path / file)
    outcomes = ["AssertionError: wrong", "", "AssertionError: totals is wrong", "", "OSError: no Java"]

    def campaign(*_: object) -> subprocess.CompletedProcess[str]:
        error = outcomes.pop(0)
        return subprocess.CompletedProcess([], int(bool(error)), "", error)

    monkeypatch.setattr(mutation, "_campaign", campaign)
    with pytest.raises(SashError, match="fails without the mutant"):
        try_mutant(mutant, tmp_path)
    assert try_mutant(mutant, tmp_path).error == "AssertionError: totals is wrong"
    with pytest.raises(SashError, match="ended with another error"):
        try_mutant(mutant, tmp_path)


def test_the_last_trial_of_a_mutant_is_kept(tmp_path: Path) -> None:
    made = [Trial("a", "x", "plans", "", 3, 1.0, "c"), Trial("b", "x", "plans", "e", 3, 1.0, "c")]
    for trial in (*made, replace(made[0], error="wrong")):
        save_trial(trial, tmp_path)
    assert [(one.name, one.found) for one in read_trials(tmp_path)] == [("a", True), ("b", True)]
