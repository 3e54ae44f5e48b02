"""The queries, a file each."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent

SIDE_INPUT = [{"key": key, "value": f"side {key}"} for key in range(0, 10_000, 7)]
"""The fixed table of q13."""


def names() -> list[str]:
    """The queries, in order."""
    return sorted((path.stem for path in FOLDER.glob("q*.sql")), key=lambda name: int(name[1:]))


def text(name: str) -> str:
    """The SQL of a query."""
    return (FOLDER / f"{name}.sql").read_text()
