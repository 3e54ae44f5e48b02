"""Output of a benchmark's figures: as a table, as JSON, and as a file in bench/results."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from bench.figures import Figure
from bench.machine import machine

Figures = dict[str, Any]
RESULTS = Path("bench") / "results"
EXPERIMENTS = Path("docs") / "experiments"


def latest(name: str) -> Figures:
    """The figures that were saved last, without the description of that run; none before the first."""
    saved = sorted(RESULTS.glob(f"{name}-2*.json"))
    found: Figures = json.loads(saved[-1].read_text(encoding="utf-8")) if saved else {}
    return {key: value for key, value in found.items() if key not in ("benchmark", "measured", "machine")}


def publish(
    name: str, figures: Figures, table: Callable[[Figures], RenderableType], *, as_json: bool, save: bool
) -> None:
    """Print the figures, and save them if requested."""
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        Console().print(table(figures))
    if save:
        RESULTS.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC)
        saved = {"benchmark": name, "measured": now.isoformat(timespec="seconds"), "machine": machine(), **figures}
        path = RESULTS / f"{name}-{now:%Y%m%dT%H%M%S}.json"
        path.write_text(json.dumps(saved, indent=2) + "\n", encoding="utf-8")
        Console(stderr=True).print(f"saved in {path}")


def write_page(name: str, text: str, figures: Sequence[Figure]) -> None:
    """Write the page of an experiment, and its plots beside it."""
    EXPERIMENTS.mkdir(parents=True, exist_ok=True)
    (EXPERIMENTS / f"{name}.md").write_text(text, encoding="utf-8")
    for figure in figures:
        figure.draw()
