"""The input of a job that faults strike, its queries, and what its sinks must hold: recomputed by DuckDB."""

from __future__ import annotations

import datetime
import os
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.oracle.case import clause
from tests.oracle.duck import Bag, Oracle, Row, View, bag_of

BASE = 1_700_000_000_000_000
"""The time of the first batch, in microseconds: a day of the year 2023."""
SPAN, SLACK = 20_000, 3_000
"""Microseconds of a batch, and by how much its rows may be out of order."""
_PER_BATCH = 30
_FAR = 7_500_000_000_000_000
"""A time in the 23rd century, which MAX JUMP sets aside."""
_KEPT = 12
"""The batches whose rows can still be in a window of limited length."""


@dataclass(frozen=True)
class Text:
    """A query over views, in which `{s}` stands for a window; `keyed` is whether its first column is its key."""

    text: str
    views: tuple[tuple[str, View], ...]
    columns: tuple[str, ...]
    keyed: bool = False
    duck: str | None = None

    @property
    def sash(self) -> str:
        """The query as Sash has it."""
        return self.text.format(**{name: f"{view.stream} {clause(view, 'us')}" for name, view in self.views})


def _short(stream: str, length: int) -> View:
    return View(stream, length)


QUERIES: dict[str, Text] = {
    "totals": Text(
        "SELECT k, COUNT(*) AS n, CAST(SUM(v) AS BIGINT) AS total FROM {s} WHERE v > 2 GROUP BY k",
        (("s", _short("s", 60_000)),),
        ("k", "n", "total"),
        keyed=True,
    ),
    "pairs": Text(
        "SELECT a.k AS k, a.v AS v, b.v AS w FROM {a} AS a JOIN {b} AS b ON a.k = b.k AND a.v < b.v",
        (("a", _short("s", 30_000)), ("b", _short("u", 50_000))),
        ("k", "v", "w"),
    ),
    "sizes": Text(
        "SELECT n, COUNT(*) AS groups FROM (SELECT k, COUNT(*) AS n FROM {s} GROUP BY k) AS g GROUP BY n",
        (("s", _short("s", 60_000)),),
        ("n", "groups"),
        keyed=True,
    ),
    "lacking": Text(
        "SELECT k, v FROM {s} EXCEPT ALL SELECT k, v FROM {u}",
        (("s", _short("s", 70_000)), ("u", _short("u", 40_000))),
        ("k", "v"),
    ),
    "values": Text("SELECT DISTINCT k, v FROM {s}", (("s", _short("u", 45_000)),), ("k", "v")),
    "best": Text(
        "SELECT k, v, x FROM {s} ORDER BY v DESC, x DESC LIMIT 5",
        (("s", _short("s", 50_000)),),
        ("k", "v", "x"),
    ),
    "extremes": Text(
        "SELECT k, MIN(v) AS low, MAX(x) AS high, COUNT(DISTINCT v) AS kinds FROM {u} GROUP BY k",
        (("u", View("u", 60_000, slide=10_000)),),
        ("k", "low", "high", "kinds"),
        keyed=True,
    ),
    "ever": Text(
        "SELECT k, COUNT(*) AS n, MAX(x) AS high FROM {s} GROUP BY k",
        (("s", View("s", None)),),
        ("k", "n", "high"),
        keyed=True,
    ),
    "numbers": Text(
        "SELECT k, v, x, COUNT(*) OVER (PARTITION BY k) AS n FROM {s}",
        (("s", _short("s", 40_000)),),
        ("k", "v", "x", "n"),
    ),
    "last": Text(
        "SELECT a.k AS k, a.v AS v, b.v AS w FROM {a} AS a LEFT JOIN {b} AS b ON a.k = b.k",
        (("a", _short("s", 20_000)), ("b", View("u", rows=1, partition=("k",)))),
        ("k", "v", "w"),
    ),
}


def rows_of(seed: int, stream: str, number: int) -> list[Row]:
    """The rows of a batch, out of order by less than the slack, also with those of the batch before.

    The last one moves the clock to the batch's end. No two rows of a stream have the same `x`.
    """
    rnd = random.Random(f"{seed}.{stream}.{number}")
    times = rnd.sample(range(2 - SLACK if number else 0, SPAN - 1), _PER_BATCH - 1)
    times.sort(key=lambda ts: ts + rnd.randint(0, SLACK - 2))
    begin = BASE + number * SPAN
    rows: list[Row] = [
        {"ts": begin + ts, "k": f"k{rnd.randint(0, 7)}", "v": rnd.randint(0, 9), "x": number * 1_000 + place}
        for place, ts in enumerate([*times, SPAN - 1])
    ]
    return rows


def write_batch(home: Path, seed: int, number: int) -> None:
    """Write the files of a batch; stream `u` also has a row of the far future now and then."""
    for stream in ("s", "u"):
        rows = list(rows_of(seed, stream, number))
        if stream == "u" and number % 5 == 2:
            rows.insert(len(rows) // 2, {"ts": _FAR, "k": "k1", "v": 99, "x": -number})
        folder = home / stream
        folder.mkdir(parents=True, exist_ok=True)
        table = pa.Table.from_pylist(
            [dict(row) for row in rows],
            pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("x", pa.int64())]),
        )
        draft = folder / f".{number}"
        pq.write_table(table, draft)
        os.utime(draft, (10**9 + number, 10**9 + number))
        draft.replace(folder / f"{number}.parquet")


def last_instant(batches: int) -> int:
    """The last instant at which nothing can change any more once so many batches have been processed."""
    return BASE + batches * SPAN - 1 - SLACK - 1


class Truth:
    """What a query answers at the last instant of a number of batches; it remembers its last answer."""

    def __init__(self, seed: int, query: Text) -> None:
        self._seed = seed
        self._query = query
        self._endless = any(view.length is None for _, view in query.views)

    def at(self, instant: int) -> Bag:
        """The query's answer over the rows that are valid at an instant."""
        upto = (instant - BASE) // SPAN + 2
        first = 0 if self._endless else max(0, upto - _KEPT)
        streams = {
            name: sorted(
                (row for number in range(first, upto) for row in rows_of(self._seed, name, number)),
                key=lambda row: row["ts"],
            )
            for name in {view.stream for _, view in self._query.views}
        }
        text = (self._query.duck or self._query.text).format(**{name: f"{name}_view" for name, _ in self._query.views})
        views = {f"{name}_view": view for name, view in self._query.views}
        oracle = Oracle(text, streams, views, unit="us")
        try:
            return oracle.at(instant).bag
        finally:
            oracle.close()


def folded(folder: Path, columns: tuple[str, ...], mode: str, instant: int) -> Bag:
    """The answer that a changelog has at an instant. No row is taken back before it is there, whatever was repeated."""
    answer: Counter[tuple[Any, ...]] = Counter()
    changes: list[tuple[int, bool, tuple[Any, ...]]] = []
    keyed: dict[Any, tuple[Any, ...]] = {}
    for path in sorted(folder.glob("batch=*/*.parquet")):
        for row in pq.read_table(path, partitioning=None).to_pylist():
            at = row["_ts"] if isinstance(row["_ts"], int) else _microseconds(row["_ts"])
            changes.append((at, row["_op"] == "+", tuple(row[name] for name in columns)))
    for at, added, values in sorted(changes, key=lambda change: (change[0], change[1])):
        if at > instant:
            break
        answer[values] += 1 if added else -1
        if mode == "upsert":
            keyed.pop(values[0], None)
            if added:
                keyed[values[0]] = values
    if mode == "upsert":
        return bag_of(keyed.values())
    below = {row: count for row, count in answer.items() if count < 0}
    assert not below, f"taken back without being there: {below}"
    return bag_of((+answer).elements())


def _microseconds(value: datetime.datetime) -> int:
    return round(value.timestamp() * 1_000_000)
