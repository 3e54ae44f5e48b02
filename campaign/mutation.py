"""Mutants: known ways to break Sash, kept as patches to today's tree, and whether a campaign finds each of them.

A patch begins with two lines: what it breaks, and what finds it. That is a subject with a number of cases, or a case of its own
in the file beside the patch, for subjects whose cases take long; such a case passes on the tree as it is.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from campaign.record import RESULTS, commit
from sash.cache import cache_directory
from sash.errors import SashError

ROOT = Path(__file__).parents[1]
MUTANTS = Path(__file__).parent / "mutants"
_TRIALS = "mutants.json"
_COPIED = ("src", "campaign", "tests")
_LEFT_OUT = ("__pycache__", "results", "failures", "*.pyc")


@dataclass(frozen=True)
class Mutant:
    """A patch, what it breaks, and the arguments of the campaign that finds it."""

    path: Path
    breaks: str
    finder: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the patch."""
        return self.path.stem

    @property
    def files(self) -> list[str]:
        """The files that it changes."""
        lines = self.path.read_text().splitlines()
        return [line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/")]

    @property
    def has_case(self) -> bool:
        """Whether it has a case of its own."""
        return self.finder[0] == "replay"


@dataclass(frozen=True)
class Trial:
    """What the campaign found in a tree with the mutant: the error, and after how many cases and seconds."""

    name: str
    breaks: str
    finder: str
    error: str
    cases: int
    seconds: float
    commit: str

    @property
    def found(self) -> bool:
        """Whether a case failed."""
        return bool(self.error)

    def __str__(self) -> str:
        if not self.found:
            return f"NOT FOUND by {self.finder} in {self.seconds:.0f} s"
        return f"found by {self.finder} after {self.cases:,} cases and {self.seconds:.0f} s: {self.error[:120]}"


def read_mutants(names: Sequence[str] | None = None) -> list[Mutant]:
    """The mutants with these names, or all."""
    found = {path.stem: _read(path) for path in sorted(MUTANTS.glob("*.patch"))}
    unknown = [name for name in names or () if name not in found]
    if unknown:
        raise SashError(f"there is no mutant {unknown[0]}: {', '.join(found)}")
    return [found[name] for name in names or found]


def _read(path: Path) -> Mutant:
    breaks, found = path.read_text().splitlines()[:2]
    heads = ("Breaks: ", "Found by: ")
    if not (breaks.startswith(heads[0]) and found.startswith(heads[1])):
        raise SashError(f"{path} must begin with lines {heads[0]!r} and {heads[1]!r}")
    return Mutant(path, breaks.removeprefix(heads[0]).rstrip("."), tuple(found.removeprefix(heads[1]).split()))


def apply(mutant: Mutant, tree: Path, *, only_check: bool = False) -> None:
    """Apply the patch to a tree; raise an error if it does not fit."""
    command = ["git", "apply", *(["--check"] if only_check else []), str(mutant.path)]
    # Without a ceiling, git would take the copy for a folder of the repository around it, and skip the patch.
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.resolve().parent)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SashError(f"mutant {mutant.name} does not fit today's tree: {done.stderr.strip()}")


def try_mutant(mutant: Mutant, tree: Path, seed: int = 1) -> Trial:
    """Have the campaign look for the mutant in a copy of this tree, which is as before then."""
    begun = time.monotonic()
    if mutant.has_case and (error := _replayed(mutant, tree)):
        raise SashError(f"the case of {mutant.name} fails without the mutant: {error}")
    apply(mutant, tree)
    try:
        cases, error = (1, _replayed(mutant, tree)) if mutant.has_case else _searched(mutant, tree, seed)
    finally:
        for file in mutant.files:
            # With its time: compiled loops are those of files with these times.
            shutil.copy2(ROOT / file, tree / file)
    seconds = round(time.monotonic() - begun, 1)
    return Trial(mutant.name, mutant.breaks, " ".join(mutant.finder), error, cases, seconds, commit())


def save_trial(trial: Trial, folder: Path = RESULTS) -> None:
    """Keep what was found of a mutant, in place of what was found before."""
    kept = {one.name: one for one in read_trials(folder)} | {trial.name: trial}
    folder.mkdir(exist_ok=True)
    (folder / _TRIALS).write_text(json.dumps([asdict(kept[name]) for name in sorted(kept)], indent=1) + "\n")


def read_trials(folder: Path = RESULTS) -> list[Trial]:
    """What was found of each mutant the last time."""
    path = folder / _TRIALS
    return [Trial(**stored) for stored in json.loads(path.read_text())] if path.exists() else []


@contextmanager
def copied_tree() -> Iterator[Path]:
    """A copy of this tree, in the user's cache: there loops that one run has compiled are found by the next."""
    home = cache_directory("mutants")
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in _COPIED:
            shutil.rmtree(home / name, ignore_errors=True)
            shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        yield home


def _searched(mutant: Mutant, tree: Path, seed: int) -> tuple[int, str]:
    """The cases that were run, and the error of the one that failed, if one did."""
    done = _campaign(tree, *mutant.finder, "--seed", str(seed), "--failures", "1", "--no-reduce", "--json")
    try:
        told = json.loads(done.stdout)
    except json.JSONDecodeError:
        raise SashError(f"the campaign ended without a tally: {done.stderr[-2_000:]}") from None
    return told["cases"], "".join(told["failures"][:1])


def _replayed(mutant: Mutant, tree: Path) -> str:
    """The error of the mutant's own case; empty if it passes."""
    done = _campaign(tree, "replay", str(MUTANTS / mutant.finder[1]))
    if not done.returncode:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("AssertionError")]
    if not lines:
        raise SashError(f"the case of {mutant.name} ended with another error: {done.stderr[-2_000:]}")
    return lines[-1][:500]


def _campaign(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(tree / "src"), str(tree)])
    return subprocess.run(
        [sys.executable, "-m", "campaign", *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(tree / ".cache")},
        capture_output=True,
        text=True,
        check=False,
    )
