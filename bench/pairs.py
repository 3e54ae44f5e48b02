"""Throughput of one query in this tree relative to another commit, by runs that alternate between the two.

Runs a few minutes apart differ by more than most changes do, so each run is compared with its neighbour, and the median of
the ratios counts. Each tree runs its own benchmark in a process of its own.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.report import Figures
from bench.runs import scratch
from sash.errors import SashError

_HERE = Path(__file__).resolve().parents[1]
_FIGURES = ("events_per_s", "processor_s_per_million")


def measure(base: str, turns: int, query: str, rows_per_batch: int, batches: int) -> Figures:
    """Run the query so many times in each tree; every other pair starts with the other tree."""
    options = ["--queries", query, "--rows-per-batch", str(rows_per_batch), "--batches", str(batches), "--json"]
    console = Console(stderr=True)
    found: list[dict[str, dict[str, float]]] = []
    with scratch() as there:
        commit = export(base, there)
        trees = {"base": there, "here": _HERE}
        for turn in range(turns):
            pair = {}
            for name in sorted(trees, reverse=turn % 2 == 1):
                with console.status(f"pair {turn + 1} of {turns}: {name}"):
                    pair[name] = _run(trees[name], options)
            found.append(pair)
    return summary(query, commit, found)


def export(commit: str, folder: Path) -> str:
    """Write the files of a commit into a folder, and return its full name."""
    try:
        name = _git("rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
        files = _git("archive", name)
    except subprocess.CalledProcessError as problem:
        raise SashError(f"cannot read commit {commit}: {problem.stderr.decode().strip()}") from None
    with tarfile.open(fileobj=io.BytesIO(files)) as archive:
        archive.extractall(folder, filter="data")
    return name


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(_HERE), *arguments], capture_output=True, check=True).stdout  # noqa: S603, S607


def _run(tree: Path, options: list[str]) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    command = [sys.executable, "-m", "bench", "throughput", *options]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise SashError(f"the benchmark failed in {tree}: {done.stderr.strip()[-2000:]}")
    (result,) = json.loads(done.stdout)["queries"]
    return {name: float(result[name]) for name in _FIGURES}


def summary(query: str, commit: str, pairs: list[dict[str, dict[str, float]]]) -> Figures:
    """The pairs, and for each figure the median of the ratios of this tree to the other.

    >>> runs = [{"here": dict.fromkeys(_FIGURES, speed), "base": dict.fromkeys(_FIGURES, 10)} for speed in (9, 10, 12)]
    >>> summary("q1", "abc", runs)["ratio"]
    1.0
    """
    speed, processor = (median(pair["here"][name] / pair["base"][name] for pair in pairs) for name in _FIGURES)
    return {
        "query": query,
        "base": commit,
        "ratio": round(speed, 3),
        "processor_ratio": round(processor, 3),
        "pairs": pairs,
    }


def table(figures: Figures) -> Table:
    """The figures as a table."""
    shown = Table(title=f"{figures['query']}: events per second, relative to {figures['base'][:10]}")
    for column in ("pair", "here", "base", "ratio"):
        shown.add_column(column, justify="right")
    for number, pair in enumerate(figures["pairs"], 1):
        here, base = (pair[name]["events_per_s"] for name in ("here", "base"))
        shown.add_row(str(number), f"{here:,.0f}", f"{base:,.0f}", f"{here / base:.3f}")
    shown.add_row("median", "", "", f"{figures['ratio']:.3f}")
    return shown
