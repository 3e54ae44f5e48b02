"""How the figures of a benchmark are given: as a table, as JSON, or kept in bench/results."""

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


def publish(
    name: str, figures: Figures, table: Callable[[Figures], RenderableType], *, as_json: bool, save: bool
) -> None:
    """Show the figures, and keep them if asked."""
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        Console().print(table(figures))
    if save:
        RESULTS.mkdir(parents=True, exist_ok=True)
        now = datetime.now(UTC)
        kept = {"benchmark": name, "measured": now.isoformat(timespec="seconds"), "machine": machine(), **figures}
        path = RESULTS / f"{name}-{now:%Y%m%dT%H%M%S}.json"
        path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
        Console(stderr=True).print(f"kept in {path}")


def write_page(name: str, text: str, figures: Sequence[Figure]) -> None:
    """Keep what a run says of an experiment: its page, and its plots beside it."""
    EXPERIMENTS.mkdir(parents=True, exist_ok=True)
    (EXPERIMENTS / f"{name}.md").write_text(text, encoding="utf-8")
    for figure in figures:
        figure.draw()
