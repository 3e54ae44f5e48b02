"""Spark's answers to queries over three small tables, pinned in the text files of this folder.

A file has the queries of one topic. Below each query are the rows that Spark returns in batch, or `refused`. The tables are
streams whose rows all come at one instant. `python -m tests.sql.spark_answers` asks Spark again and rewrites the files; a
query that is new in a file needs no answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.oracle.case import table
from tests.oracle.duck import Rows

FOLDER = Path(__file__).parent
REFUSED = "refused"
_NAN = float("nan")

TABLES: Mapping[str, Rows] = {
    "s": table(
        "ts k g v x d b all t",
        (1, 1, "a", 10, -0.0, Decimal("0.55"), True, 1, "abc"),
        (1, 1, "b", 20, 0.0, Decimal("-0.99"), False, 2, None),
        (1, 2, None, None, None, None, True, None, ""),
        (1, 2, "ab", 30, _NAN, Decimal("0.00"), None, 1, "A%c"),
        (1, 3, "B", -5, 1.5, Decimal("0.50"), False, 2, "x_y"),
    ),
    "r": table("ts k w", (1, 1, 1), (1, 1, 2), (1, 3, 3), (1, 4, None)),
    "q": table("ts k z", (1, 1, 3), (1, 2, 2), (1, 3, 1)),
}
SCHEMAS = {
    "s": "ts BIGINT, k INT, g STRING, v INT, x DOUBLE, d DECIMAL(2,2), b BOOLEAN, `all` INT, t STRING",
    "r": "ts BIGINT, k INT, w INT",
    "q": "ts BIGINT, k INT, z INT",
}


@dataclass(frozen=True)
class Pinned:
    """A query and Spark's answer: its rows as text, in order, or None if Spark refuses the query."""

    sql: str
    rows: tuple[str, ...] | None


def topics() -> list[Path]:
    """The files with queries."""
    return sorted(FOLDER.glob("*.txt"))


def read(topic: Path) -> list[Pinned]:
    """The queries of a file."""
    found: list[tuple[str, list[str]]] = []
    for line in topic.read_text().splitlines():
        if line.startswith("    "):
            found[-1][1].append(line.strip())
        elif line:
            found.append((line, []))
    return [Pinned(sql, None if rows == [REFUSED] else tuple(rows)) for sql, rows in found]


def write(topic: Path, answers: Iterable[Pinned]) -> None:
    """Write the queries of a file and their answers."""
    blocks = (
        "\n".join([answer.sql, *(f"    {row}" for row in ([REFUSED] if answer.rows is None else answer.rows))])
        for answer in answers
    )
    topic.write_text("\n".join(blocks) + "\n")


def as_text(rows: Iterable[Iterable[Any]]) -> tuple[str, ...]:
    """Rows in an order of their own, with the sign of zeros and the types of values."""
    return tuple(sorted(repr(tuple(_plain(value) for value in row)) for row in rows))


def _plain(value: Any) -> Any:
    return value.replace(tzinfo=None) if isinstance(value, datetime) else value
