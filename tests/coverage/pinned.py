"""The queries and their pinned answers, as they are in the files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.coverage.streams import LENGTH
from tests.coverage.values import Row

FOLDER = Path(__file__).parent
_COMMENT = re.compile(r"^\s*--.*$", re.MULTILINE)
_WINDOW = re.compile(r"\b(\w+) \[RANGE (\d+) SECONDS\]")
_TEXT = re.compile(r"'(?:[^']|'')*'|;")


@dataclass(frozen=True)
class Pinned:
    """Spark's answer to a query: the types of its columns, and its rows by instant."""

    types: tuple[str, ...]
    rows: Mapping[int, Sequence[Row]]


@dataclass(frozen=True)
class Query:
    """A query of a file, with spaces for line breaks."""

    construct: str
    place: int
    sql: str

    @property
    def continuous(self) -> str:
        """The text for Sash: every stream has a window."""
        return f"{self.sql} WINDOW {LENGTH} SECONDS"

    @property
    def batch(self) -> str:
        """The text for Spark: a stream with a window of its own is a view of another name."""
        return _WINDOW.sub(lambda found: view(found[1], int(found[2])), self.sql)

    @property
    def windows(self) -> set[tuple[str, int]]:
        """The streams with windows of their own, and their lengths."""
        return {(found[1], int(found[2])) for found in _WINDOW.finditer(self.sql)}


def view(stream: str, length: int) -> str:
    """The name of Spark's view of a stream's rows that are valid."""
    return stream if length == LENGTH else f"{stream}_{length}"


def constructs() -> list[str]:
    """The names of the files."""
    return sorted(path.stem for path in FOLDER.glob("queries/*.sql"))


def queries(construct: str) -> list[Query]:
    """The queries of a file.

    >>> [query.sql for query in queries("aggregates")][:1]
    ['SELECT COUNT(*) AS n, COUNT(v) AS m FROM s']
    """
    text = _COMMENT.sub("", (FOLDER / "queries" / f"{construct}.sql").read_text())
    ends = [found.start() for found in _TEXT.finditer(text) if found[0] == ";"]
    parts = (text[start:end] for start, end in zip([0, *(end + 1 for end in ends)], [*ends, len(text)], strict=True))
    written = (" ".join(part.split()) for part in parts)
    return [Query(construct, place, sql) for place, sql in enumerate(filter(None, written))]


def read(construct: str) -> dict[str, Pinned]:
    """The pinned answers of a file, by query."""
    path = FOLDER / "answers" / f"{construct}.txt"
    found: dict[str, Pinned] = {}
    rows: dict[int, list[Row]] = {}
    sql, instant = "", 0
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("    "):
            rows[instant].append(tuple(json.loads(line)))
        elif line.startswith("  @"):
            instant = int(line[3:])
            rows[instant] = []
        elif line.startswith("  "):
            rows = {}
            found[sql] = Pinned(tuple(json.loads(line)), rows)
        else:
            sql = line
    return found


def write(construct: str, answers: Mapping[str, Pinned]) -> None:
    """Write the answers of a file that are known, in the order of its queries."""
    lines: list[str] = []
    for query in queries(construct):
        pinned = answers.get(query.sql)
        if pinned is None:
            continue
        lines += [query.sql, f"  {json.dumps(pinned.types)}"]
        for instant, rows in pinned.rows.items():
            lines.append(f"  @{instant}")
            lines += sorted(f"    {json.dumps(row, ensure_ascii=False)}" for row in rows)
    (FOLDER / "answers" / f"{construct}.txt").write_text("\n".join(lines) + "\n")
