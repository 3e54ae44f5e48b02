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
    name: str,
    figures: Figures,
    table: Callable[[Figures], RenderableType],
    *,
    page: Callable[[Figures], str] | None = None,
    plots: Callable[[Figures], Sequence[Figure]] = lambda _: (),
    as_json: bool,
    save: bool,
) -> None:
    """Print the figures, and save them if requested, with their page and its plots where there is one."""
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
        if page is not None:
            EXPERIMENTS.mkdir(parents=True, exist_ok=True)
            (EXPERIMENTS / f"{name}.md").write_text(page(figures), encoding="utf-8")
            for figure in plots(figures):
                figure.draw()
