"""NEXMark's answers by DuckDB, over the rows that are valid at an instant.

A stream with a window in brackets becomes a view of its rows that are not older. TUMBLE and HOP become views with a row per
row and open window, and session_window one with the rows of open sessions. Without these, all rows so far are valid.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from examples.nexmark.generator import START, Row
from tests.oracle.duck import naive

_WINDOW = re.compile(r"\b(\w+) \[RANGE (\d+) MINUTES\]")
_TUMBLE = re.compile(r"TABLE\(TUMBLE\(TABLE (\w+), DESCRIPTOR\(ts\), INTERVAL '(\d+)' SECONDS\)\)")
_HOP = re.compile(r"TABLE\(HOP\(TABLE (\w+), DESCRIPTOR\(ts\), INTERVAL '(\d+)' SECONDS, INTERVAL '(\d+)' SECONDS\)\)")
_SESSION = re.compile(r"session_window\(ts, '(\d+) seconds'\)")


class Oracle:
    """The answers of one query of Sash, whose text it translates."""

    def __init__(self, sql: str, streams: Mapping[str, list[Row]], relations: Mapping[str, list[Row]]) -> None:
        self._streams = streams
        self._relations = relations
        self._views: dict[str, tuple[str, int, int]] = {}
        sql = _WINDOW.sub(lambda found: self._view(found[1], int(found[2]) * 60, 0), sql)
        sql = _TUMBLE.sub(lambda found: self._view(found[1], int(found[2]), int(found[2])), sql)
        sql = _HOP.sub(lambda found: self._view(found[1], int(found[3]), int(found[2])), sql)
        session = _SESSION.search(sql)
        self._gap = int(session[1]) if session else 0
        if session:
            sql = _SESSION.sub("session_start, session_end", sql).replace("FROM bid\n", "FROM bid_sessions\n")
            sql = sql.replace("session_window.", "session_")
        sql = re.sub(r"DATE_FORMAT\(ts, 'yyyy-MM-dd'\)", "strftime(ts, '%Y-%m-%d')", sql)
        sql = re.sub(r"DATE_FORMAT\(ts, 'HH:mm'\)", "strftime(ts, '%H:%M')", sql)
        self._sql = sql

    def at(self, instant: datetime.datetime) -> list[tuple[Any, ...]]:
        """The rows of the answer."""
        with duckdb.connect(config={"threads": 1}) as connection:
            for name, rows in self._relations.items():
                connection.register(name, pa.Table.from_pylist(rows))
            for name, rows in self._streams.items():
                connection.register(name, _table([row for row in rows if row["ts"] <= instant], rows))
            for name, (stream, length, slide) in self._views.items():
                rows = self._streams[stream]
                found = list(_assigned(rows, length, slide)) if slide else rows
                valid = [row for row in found if row["ts"] <= instant < row.get("window_end", row["ts"] + _s(length))]
                connection.register(name, _table(valid, found))
            if self._gap:
                found = list(_sessions([row for row in self._streams["bid"] if row["ts"] <= instant], self._gap))
                connection.register(
                    "bid_sessions", _table([row for row in found if instant < row["session_end"]], found)
                )
            return connection.execute(self._sql).fetchall()

    def _view(self, stream: str, length: int, slide: int) -> str:
        name = f"{stream}_{length}_{slide}"
        self._views[name] = stream, length, slide
        return name


def _assigned(rows: list[Row], length: int, slide: int) -> Iterator[Row]:
    """Each row once for every window of a length, in seconds, that it is in; windows begin at multiples of the slide."""
    midnight = START.replace(hour=0, minute=0)
    for row in rows:
        start = midnight + (row["ts"] - midnight) // _s(slide) * _s(slide)
        while start + _s(length) > row["ts"]:
            yield {**row, "window_start": start, "window_end": start + _s(length)}
            start -= _s(slide)


def _sessions(rows: list[Row], gap: int) -> Iterator[Row]:
    """Each bid with the session of its bidder, in which no pause is longer than the gap, in seconds."""
    by_bidder: dict[int, list[list[Row]]] = {}
    for row in sorted(rows, key=lambda row: row["ts"]):
        sessions = by_bidder.setdefault(row["bidder"], [])
        if not sessions or row["ts"] > sessions[-1][-1]["ts"] + _s(gap):
            sessions.append([])
        sessions[-1].append(row)
    for session in (session for sessions in by_bidder.values() for session in sessions):
        ends = {"session_start": session[0]["ts"], "session_end": session[-1]["ts"] + _s(gap)}
        yield from ({**row, **ends} for row in session)


def _table(rows: list[Row], like: list[Row]) -> pa.Table:
    """Rows as a table, with the columns of others."""
    return pa.Table.from_pylist([_naive(row) for row in rows], pa.Table.from_pylist([_naive(like[0])]).schema)


def _naive(row: Row) -> Row:
    return {name: naive(value) if isinstance(value, datetime.datetime) else value for name, value in row.items()}


def _s(seconds: int) -> datetime.timedelta:
    return datetime.timedelta(seconds=seconds)


def plain(row: Mapping[str, Any] | tuple[Any, ...]) -> tuple[Any, ...]:
    """A row whose numbers are all of one type, and whose times have no zone."""
    values = row.values() if isinstance(row, Mapping) else row
    return tuple(_plain(value) for value in values)


def _plain(value: Any) -> Any:
    if isinstance(value, int | Decimal):
        return float(value)
    return naive(value) if isinstance(value, datetime.datetime) else value
