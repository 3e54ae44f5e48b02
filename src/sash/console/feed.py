"""Changes of queries as server-sent events: encoded once per batch for all readers, who pull them at their own pace.

A reader has a position and nothing else: its buffers are those of its connection, and while they are full it waits. If
what follows its position is no longer kept, it is told to start again from an answer.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from sash.console.kept import KeptHistory
from sash.console.values import rows_of
from sash.errors import NotKeptError
from sash.history.answers import ADDED
from sash.history.outputs import Position
from sash.history.ring import KeptChanges

_POLL = 0.1
_ALIVE = 15.0
_MOST_CHUNKS = 64
_MOST_BYTES = 8 << 20
_PIECE = 1 << 16
_MOST_PARTS = 32
RESTART = b'event: restart\ndata: {"detail":"changes since then are no longer kept: start again from an answer"}\n\n'


def position_text(position: Position) -> str:
    """A position as the API writes it.

    >>> position_text((12, 3))
    '12.3'
    """
    return f"{position[0]}.{position[1]}"


def parse_position(text: str) -> Position:
    """The position in a text.

    >>> parse_position("12.3")
    (12, 3)
    """
    number, _, index = text.strip().partition(".")
    try:
        return int(number), int(index)
    except ValueError:
        raise NotKeptError(f"a position is batch.index, such as 12.3, not {text[:40]!r}") from None


def encode_events(part: KeptChanges, names: list[str]) -> bytes:
    """The changes of a batch as events, whose ids are the positions after them, then an event that the batch is whole."""
    lines: list[str] = []
    if part.table.num_rows:
        times = part.table.column(1).cast("int64").to_pylist()
        ops = part.table.column(0).to_pylist()
        rows = rows_of(part.table.select(range(ADDED, part.table.num_columns)))
        for place, (ts, op, row) in enumerate(zip(times, ops, rows, strict=True), part.index):
            change = {
                "batch": part.number,
                "index": place,
                "ts": ts,
                "op": op,
                "row": dict(zip(names, row, strict=True)),
            }
            lines.append(f"id: {part.number}.{place + 1}\nevent: change\ndata: {_json(change)}\n\n")
    end = {"batch": part.number, "watermark": part.clock}
    lines.append(f"id: {position_text(part.end)}\nevent: batch\ndata: {_json(end)}\n\n")
    return "".join(lines).encode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True)
class _Chunk:
    start: Position
    end: Position
    data: bytes


class QueryFeed:
    """The last batches of a query as events."""

    def __init__(self, history: KeptHistory, query: str) -> None:
        self._history, self._query = history, query
        self._chunks: deque[_Chunk] = deque()
        self._size = 0
        self.position: Position | None = None

    def advance(self) -> None:
        """Take in the batches that are new. They are encoded here, once."""
        ring, kept = self._history.ring(self._query)
        now = ring.position(self._query)
        if self.position is None:
            self.position = now
        if now == self.position:
            return
        parts = ring.changes(self._query, self.position)
        if parts is None:
            self._chunks.clear()
            self._size, self.position = 0, now
            return
        names = [name for name, _ in kept.columns]
        for part in parts:
            chunk = _Chunk(self.position, part.end, encode_events(part, names))
            self._chunks.append(chunk)
            self._size, self.position = self._size + len(chunk.data), part.end
        while self._chunks and (len(self._chunks) > _MOST_CHUNKS or self._size > _MOST_BYTES):
            self._size -= len(self._chunks.popleft().data)

    def after(self, position: Position) -> tuple[list[bytes], Position] | None:
        """The events after a position; None if they must be read from the history."""
        if position == self.position:
            return [], position
        found: list[bytes] = []
        for chunk in reversed(self._chunks):
            found.append(chunk.data)
            if chunk.start == position:
                assert self.position is not None
                return found[::-1], self.position
        return None

    def read(self, position: Position) -> tuple[list[bytes], Position] | None:
        """The events after a position from the history, some batches at a time; None if they are no longer kept."""
        ring, kept = self._history.ring(self._query)
        parts = ring.changes(self._query, position)
        if parts is None:
            return None
        found: list[bytes] = []
        names = [name for name, _ in kept.columns]
        for part in parts:
            found.append(encode_events(part, names))
            position = part.end
            if len(found) >= _MOST_PARTS:
                break
        return found, position


class Feeds:
    """The feeds of the queries of a job that have readers; one task looks for what is new."""

    def __init__(self, history: KeptHistory) -> None:
        self._history = history
        self._feeds: dict[str, tuple[QueryFeed, int]] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.readers = 0

    async def events(self, query: str, after: Position | None) -> AsyncIterator[bytes]:
        """The events of a query after a position, or from now on; endless, unless they are no longer kept."""
        feed = await self._enter(query)
        try:
            if after is None:
                assert feed.position is not None
                after = feed.position
            position = after
            yield f"retry: 1000\nid: {position_text(position)}\nevent: start\ndata: {{}}\n\n".encode()
            while True:
                changed = self._changed
                found = feed.after(position) or await asyncio.to_thread(feed.read, position)
                if found is None:
                    yield RESTART
                    return
                chunks, position = found
                for chunk in chunks:
                    for begin in range(0, len(chunk), _PIECE):
                        yield chunk[begin : begin + _PIECE]
                if not chunks:
                    try:
                        await asyncio.wait_for(changed.wait(), _ALIVE)
                    except TimeoutError:
                        yield b": alive\n\n"
        finally:
            self._leave(query)

    async def _enter(self, query: str) -> QueryFeed:
        known = self._feeds.get(query)
        feed = QueryFeed(self._history, query) if known is None else known[0]
        if feed.position is None:
            await asyncio.to_thread(feed.advance)
        feed, count = self._feeds.get(query, (feed, 0))
        self._feeds[query] = feed, count + 1
        self.readers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._follow())
        return feed

    def _leave(self, query: str) -> None:
        feed, count = self._feeds[query]
        if count == 1:
            del self._feeds[query]
        else:
            self._feeds[query] = feed, count - 1
        self.readers -= 1

    async def _follow(self) -> None:
        """Look for new batches as long as there are readers."""
        version = -1
        while self._feeds:
            found = await asyncio.to_thread(self._history.poll)
            if found != version:
                version = found
                for feed, _ in list(self._feeds.values()):
                    await asyncio.to_thread(_advance, feed)
                before, self._changed = self._changed, asyncio.Event()
                before.set()
            await asyncio.sleep(_POLL)


def _advance(feed: QueryFeed) -> None:
    try:
        feed.advance()
    except NotKeptError:  # the query was dropped; its readers are told when they ask
        feed.position = None
