"""Numbers of partitions (paper 5, Fig 10) and lazy expiration at five per cent of the window (6.1), beside the defaults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench.paper5.measure import batch_of, measure_options, merged
from bench.paper5.queries import CASES
from bench.paper5.trace import generated
from sash.plan.options import Options

LAZY_SHARE = 0.05
PARTITIONS = (10, 50)
_JOINS = ("q1-ftp", "q1-telnet", "q4")
_BY_NAME = {case.name: case for case in CASES}


def measure_partitions(
    windows: Sequence[int], rows: int, seeds: int, report: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Query 1 with the unselective protocol, by the number of partitions of every calendar."""
    options = {"negative-tuple": Options("negative-tuple")}
    for name in ("direct", "update-pattern-aware"):
        options |= {f"{name}({count})": Options(name, partitions=count) for count in PARTITIONS}
        options[name] = Options(name)
    return _over("q1-telnet", windows, rows, seeds, lambda _window: options, report)


def measure_lazy(windows: Sequence[int], rows: int, seeds: int, report: Callable[[str], None]) -> list[dict[str, Any]]:
    """Queries with joins, update-pattern-aware: expired rows purged at once, and at an interval."""

    def options(window: int) -> dict[str, Options]:
        return {
            "at once": Options("update-pattern-aware"),
            "lazy": Options("update-pattern-aware", purge=max(1, round(LAZY_SHARE * window))),
        }

    return [result for name in _JOINS for result in _over(name, windows, rows, seeds, options, report)]


def _over(
    name: str,
    windows: Sequence[int],
    rows: int,
    seeds: int,
    options: Callable[[int], dict[str, Options]],
    report: Callable[[str], None],
) -> list[dict[str, Any]]:
    made = []
    for window in windows:
        report(f"variants of {name}, {window:,} rows per window")
        runs = [
            measure_options(
                _BY_NAME[name],
                generated(window + rows, seed),
                1_000 * window,
                options(1_000 * window),
                batch_of(window),
            )
            for seed in range(seeds)
        ]
        made += merged(runs)
    return made
