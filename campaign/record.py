"""Keeps what campaigns have tried: a tally per run, for the page, and every failing case as a file that runs it again."""

from __future__ import annotations

import base64
import datetime
import decimal
import json
import math
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.search import Failure, Tally
from campaign.subject import Subject

RESULTS = Path(__file__).parent / "results"
FAILURES = Path(__file__).parent / "failures"

_TAG = "$type"


def to_json(value: Any) -> Any:
    """A value of a case as JSON has it: numbers that JSON lacks, dates, decimals and bytes carry their type."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            return value if math.isfinite(value) else {_TAG: "float", "value": repr(value)}
        case decimal.Decimal():
            return {_TAG: "decimal", "value": str(value)}
        case datetime.datetime() | datetime.date():
            return {_TAG: type(value).__name__, "value": value.isoformat()}
        case bytes():
            return {_TAG: "bytes", "value": base64.b64encode(value).decode()}
        case Mapping():
            return {str(name): to_json(item) for name, item in value.items()}
        case list() | tuple():
            return [to_json(item) for item in value]
    raise TypeError(f"a case has a value of type {type(value).__name__}, which has no form in a file")


def from_json(value: Any) -> Any:
    """The value that `to_json` wrote."""
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if not isinstance(value, dict):
        return value
    if _TAG not in value:
        return {name: from_json(item) for name, item in value.items()}
    made: dict[str, Callable[[str], Any]] = {
        "float": float,
        "decimal": decimal.Decimal,
        "datetime": datetime.datetime.fromisoformat,
        "date": datetime.date.fromisoformat,
        "bytes": base64.b64decode,
    }
    return made[value[_TAG]](value["value"])


def save_failure(subject: Subject[Any], failure: Failure, folder: Path = FAILURES) -> Path:
    """Write a failing case, and return the file: `python -m campaign replay FILE` runs it again."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{subject.name}-{failure.seed}-{failure.round}.json"
    stored = {
        "subject": subject.name,
        "seed": failure.seed,
        "round": failure.round,
        "error": failure.error,
        "case": to_json(subject.encode(failure.case)),
        "trace": failure.trace,
    }
    path.write_text(json.dumps(stored, indent=1, ensure_ascii=True) + "\n")
    return path


def read_failure(path: Path) -> tuple[str, Any]:
    """The subject and the encoded case of a file."""
    stored = json.loads(path.read_text())
    return stored["subject"], from_json(stored["case"])


@dataclass(frozen=True)
class Run:
    """A saved run, as the page shows it."""

    subject: str
    seed: int
    cases: int
    refused: int
    seconds: float
    words: Counter[str]
    failures: tuple[str, ...]
    measured: str
    commit: str
    mended: str = ""
    """The test that shows that what failed is right since, once there is one; it is written into the file by hand."""


def save_run(tally: Tally, folder: Path = RESULTS) -> Path:
    """Write the tally of a campaign."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    path = folder / f"{tally.subject}-{tally.seed}-{now:%Y%m%dT%H%M%S}.json"
    stored = {
        "subject": tally.subject,
        "seed": tally.seed,
        "cases": tally.cases,
        "refused": tally.refused,
        "seconds": round(tally.seconds, 1),
        "words": dict(sorted(tally.words.items())),
        "failures": [failure.error for failure in tally.failures],
        "measured": now.isoformat(),
        "commit": commit(),
    }
    path.write_text(json.dumps(stored, indent=1) + "\n")
    return path


def read_runs(folder: Path = RESULTS) -> list[Run]:
    """All saved runs, by subject and time."""
    runs = []
    for path in sorted(folder.glob("*-*-*.json")):
        stored = json.loads(path.read_text())
        words, failures = Counter[str](stored.pop("words")), tuple(stored.pop("failures"))
        runs.append(Run(**stored, words=words, failures=failures))
    return sorted(runs, key=lambda run: (run.subject, run.measured))


def commit() -> str:
    """The commit that is checked out."""
    found = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607  (whichever git is there)
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip()
