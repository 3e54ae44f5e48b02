"""Spark's values of scalar expressions over a small table of edge values, pinned in the text files of this folder.

A file has the expressions of one family of functions. Below each expression are its type and its values: one (`=`) if all
rows have it, otherwise a list by row; or `error`. `python -m tests.sql.spark_expressions` asks Spark for the expressions
that have no value yet, and with `--all` for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from sash.plan.types import type_name

FOLDER = Path(__file__).parent
ERROR = "error"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


_COLUMNS: dict[str, pa.DataType] = {
    "id": pa.int32(),
    "a": pa.string(),
    "b": pa.string(),
    "n": pa.int32(),
    "l": pa.int64(),
    "x": pa.float64(),
    "d": pa.decimal128(10, 2),
    "o": pa.bool_(),
    "y": pa.binary(),
    "dt": pa.date32(),
    "tm": pa.timestamp("us", tz="UTC"),
    "tn": pa.timestamp("us"),
    "z": pa.string(),
}
_NAN, _INFINITY = float("nan"), float("inf")
_ROWS: list[tuple[Any, ...]] = [
    ("Spark SQL", "SQL", 3, 42, 2.5, "12.34", True, b"abc", "2024-02-29", "2024-02-29T12:34:56.789012", "Europe/Berlin"),
    ("", "", 0, 0, 0.0, "0.00", False, b"", "1970-01-01", "1970-01-01T00:00:00", "UTC"),
    (None, None, None, None, None, None, None, None, None, None, None),
    ("héllo wörld", "ö", -2, -1, -0.0, "-0.50", True, b"\x00\xff", "1969-12-31", "1969-12-31T23:59:59.999999", "+05:30"),
    ("a,b,,c", ",", 100, 2**63 - 1, _NAN, "99999999.99", False, "é".encode(), "9999-12-31", "9999-12-31T23:59:59", "Z"),
    ("\U0001d4b3y\U0001f600", "y", 2**31 - 1, -(2**63), _INFINITY, "-99999999.99", True, b"Hi", "0001-01-01", "0001-01-01T00:00:00", "UTC"),
    ("  trim\tme ", "m", -(2**31), 1234567890123, -1.5, "7.00", False, b"q", "2021-03-14", "2021-03-14T07:30:00.5", "America/New_York"),
    ("2024-03-31 02:30:00", "1.5", 7, -42, 1e20, "-7.25", True, b"\xf0\x9f", "2024-03-31", "2024-03-31T01:30:00", "Asia/Kolkata"),
]  # fmt: skip


def edge_values() -> pa.Table:
    """The table `t` of edge values."""
    rows = []
    for number, (a, b, n, l, x, d, o, y, dt, ts, z) in enumerate(_ROWS, 1):
        day = None if dt is None else date.fromisoformat(dt)
        moment = None if ts is None else _moment(ts)
        local = None if moment is None else moment.replace(tzinfo=None)
        rows.append((number, a, b, n, l, x, None if d is None else Decimal(d), o, y, day, moment, local, z))
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, dtype) for column, dtype in zip(columns, _COLUMNS.values(), strict=True)]
    return pa.table(arrays, list(_COLUMNS))


@dataclass(frozen=True)
class Pinned:
    """An expression, and the text of Spark's values: None if Spark has not been asked."""

    sql: str
    values: str | None


def topics() -> list[Path]:
    """The files with expressions."""
    return sorted(FOLDER.glob("*.txt"))


def read(topic: Path) -> list[Pinned]:
    """The expressions of a file."""
    found: list[Pinned] = []
    for line in topic.read_text().splitlines():
        if line.startswith("    "):
            found[-1] = Pinned(found[-1].sql, line.strip())
        elif line:
            found.append(Pinned(line, None))
    return found


def write(topic: Path, answers: Iterable[Pinned]) -> None:
    """Write the expressions of a file and their values."""
    topic.write_text("".join(f"{answer.sql}\n    {answer.values}\n" for answer in answers))


def as_text(values: pa.Array | pa.ChunkedArray) -> str:
    """The type and the values of a column."""
    return text_of(type_name(values.type), values.to_pylist())


def text_of(name: str, values: Sequence[Any]) -> str:
    """The values of a type as text."""
    texts = [_plain(value) for value in values]
    return f"{name} = {texts[0]}" if len(set(texts)) == 1 else f"{name} [{', '.join(texts)}]"


def _plain(value: Any) -> str:
    if isinstance(value, list):
        texts = list(map(_plain, value))
        is_map = all(isinstance(entry, tuple) for entry in value)
        return f"[{', '.join(sorted(texts) if is_map else texts)}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_plain(each)}' for key, each in value.items())}}}"
    if isinstance(value, datetime):
        return str(value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value)
    return str(value) if isinstance(value, date | Decimal) else repr(value)
