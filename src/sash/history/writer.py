"""The history of a job: a ring of segments in its run folder, which a thread of the job writes.

Each segment begins with the answers of all queries, so that the oldest can be removed. A batch is written when its sinks
have it, and published by a second record when it is known to be committed. A batch waits for its record, for a bounded
time, so that a process that is killed leaves none out. Of a batch with too many changes the net effect is kept: its changes
cannot be listed, and the answer after it is known. If even that is too large, answers of the query are unknown.
"""

from __future__ import annotations

import logging
import os
import queue
import shutil
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from sash.history.answers import encode_table, fold, net_effect
from sash.history.limits import HistoryLimits
from sash.history.outputs import Kept, KeptQuery, Part, QueryState, part_of
from sash.history.records import pack, read_records, segment_number, segment_path, segments
from sash.history.segment import Segment
from sash.private_folders import make_private

_SEGMENTS = 8
"""Into how many segments the bounds are divided."""
_MOST_WAITING = 32 << 20
"""The bytes of tables that may wait for the thread."""

Clock = Callable[[], float]


@dataclass(frozen=True)
class Given:
    """What the sink of a query got in a batch, or its net effect, and the clock of the query, as far as it is known."""

    table: pa.Table | None
    clock: int | None
    kept: Kept

    @property
    def size(self) -> int:
        """In bytes."""
        return 0 if self.table is None else int(self.table.nbytes)


class HistoryWriter:
    """Keeps the history of a job in a folder. Its methods never raise errors, and all but `settle` and `close` return at once.

    `fresh` says that the job has not run before, so that all answers are empty. `switched` is the number under which a
    change of the job was delivered, if there was one since the last batch.
    """

    def __init__(self, folder: Path, limits: HistoryLimits, clock: Clock = time.time) -> None:
        self._folder, self._limits, self._clock = folder, limits, clock
        self._tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._waiting = 0
        self._lock = threading.Lock()
        self._running: int | None = None
        self._parts: dict[str, Given] = {}
        self._queries: dict[str, KeptQuery] = {}
        self._warned: set[str] = set()
        self._segment: Segment | None = None
        self._handle = -1
        self._broken = False
        self._thread = threading.Thread(target=self._work, name="sash-history", daemon=True)
        self._thread.start()

    def open(self, queries: Sequence[KeptQuery], *, fresh: bool = False, switched: int | None = None) -> None:
        """Continue the history of the last run with these queries."""
        self._queries = {query.name: query for query in queries}
        self._submit(lambda: self._open(queries, fresh, switched))

    def set_queries(self, queries: Sequence[KeptQuery]) -> None:
        """Note that queries were added to the running job or removed from it."""
        self._queries = {query.name: query for query in queries}
        self._submit(lambda: self._change(queries))

    def begin(self, number: int) -> None:
        """Begin or repeat a batch. Batches before it are committed."""
        with self._lock:
            self._running, self._parts = number, {}
        self._submit(lambda: self._begin(number))

    def add(self, query: str, number: int, table: pa.Table | None, clock: int | None, *, net: bool = False) -> None:
        """Keep what the sink of a query got, or its net effect; None is more than can be kept."""
        given = self._admitted(query, number, table, clock, net)
        with self._lock:
            if self._running == number:
                self._parts[query] = given
                return
        self._submit(lambda: self._write(number, {query: given}))

    def _admitted(self, query: str, number: int, table: pa.Table | None, clock: int | None, net: bool) -> Given:
        """What may wait for the thread: the changes, their net effect, or nothing."""
        known = self._queries.get(query)
        tries = [(table, Kept.NET if net else Kept.ALL)] if table is not None else []
        for given, kept in tries:
            assert given is not None
            with self._lock:
                if self._waiting + given.nbytes <= max(_MOST_WAITING, self._limits.size // 2):
                    self._waiting += given.nbytes
                    if kept is Kept.NET:
                        self._warn(query, number, "their net effect is kept, and readers of changes must start again")
                    return Given(given, clock, kept)
            if kept is Kept.ALL and known is not None:
                tries.append((net_effect(given, known.mode, known.key), Kept.NET))
        self._warn(query, number, "its answer is unknown to the console from now on; a larger --history keeps more")
        return Given(None, clock, Kept.NOTHING)

    def _warn(self, query: str, number: int, what: str) -> None:
        """Warn once of each query of which not all is kept."""
        if query not in self._warned:
            self._warned.add(query)
            logging.getLogger("sash").warning(
                "query %s: batch %s has more changes than its history keeps one by one: %s", query, number, what
            )

    def end(self, number: int) -> None:
        """Write the batch that was begun."""
        with self._lock:
            parts, self._running, self._parts = self._parts, None, {}
        self._submit(lambda: self._write(number, parts))

    def settle(self, seconds: float) -> bool:
        """Wait until all that was submitted is written, but no longer than this; return whether it is."""
        written = threading.Event()
        self._submit(written.set)
        until = time.monotonic() + seconds
        while not self._broken and time.monotonic() < until:
            if written.wait(0.1):
                return True
        return False

    def commit(self, number: int, clocks: Mapping[str, int] | None = None) -> None:
        """Publish the batches up to a number: they are committed. `clocks` are those of queries after the last of them."""
        self._submit(lambda: self._commit(number, clocks or {}))

    def close(self) -> None:
        """Write what waits, and end the thread."""
        self._tasks.put(None)
        self._thread.join(timeout=10)

    def _submit(self, task: Callable[[], None]) -> None:
        self._tasks.put(task)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            if self._broken:
                continue
            try:
                task()
            except Exception as problem:  # noqa: BLE001  (the job does not depend on its history)
                self._broken = True
                logging.getLogger("sash").warning("the history in %s ends: %s", self._folder, problem)
                with suppress(OSError):
                    shutil.rmtree(self._folder)
        if self._handle >= 0:
            os.close(self._handle)
        if self._segment is not None:
            self._segment.close()

    def _open(self, queries: Sequence[KeptQuery], fresh: bool, switched: int | None) -> None:
        make_private(self._folder)
        before = self._last_segment()
        continued = before is not None and (not fresh or before.committed < 0)
        if before is not None and switched is not None:
            before.commit(switched - 1)
            continued &= before.last == switched - 1 or switched in before.follows
        if before is None or not continued:
            for path in segments(self._folder):
                path.unlink()
            states = {query.name: QueryState(query, known=fresh) for query in queries}
            self._start_segment(0 if before is None else segment_number(before.path) + 1, states, -1, -1, ())
            return
        os.truncate(before.path, before.end)
        states = {query.name: self._continued(before, query) for query in queries}
        follows = (switched, switched + 1) if switched is not None else before.follows
        last = before.last if switched is None else switched - 1
        same = switched is None and set(before.queries) == set(states)
        if same and all(before.queries[query.name].query == query for query in queries):
            self._segment, self._handle = before, os.open(before.path, os.O_WRONLY | os.O_APPEND)
            return
        self._start_segment(segment_number(before.path) + 1, states, last, before.committed, follows, before)

    def _last_segment(self) -> Segment | None:
        """The last segment of which anything can be read."""
        for path in reversed(segments(self._folder)):
            found = Segment(path, whole=True)
            if found.read_on() and found.queries:
                return found
            path.unlink()
        return None

    @staticmethod
    def _continued(before: Segment, query: KeptQuery) -> QueryState:
        """The state of a query of the last run; one that is new begins with an empty answer."""
        known = before.queries.get(query.name)
        if known is not None and known.query == query:
            return known
        return QueryState(query, known=True, start=(max(before.committed, -1), 0))

    def _change(self, queries: Sequence[KeptQuery]) -> None:
        before = self._segment
        assert before is not None
        before.read_on()
        states = {query.name: self._continued(before, query) for query in queries}
        number = segment_number(before.path) + 1
        self._start_segment(number, states, before.last, before.committed, before.follows, before)

    def _start_segment(
        self,
        number: int,
        states: Mapping[str, QueryState],
        last: int,
        committed: int,
        follows: tuple[int, ...],
        before: Segment | None = None,
    ) -> None:
        """Begin a segment with the answers that the one before it leads to, and with its uncommitted batches."""
        payload, bases = bytearray(), {}
        for name, state in states.items():
            data = None if before is None else self._answer(before, state)
            if data is not None and len(payload) + len(data) > self._limits.size // 4:
                state.known, data = False, None
            bases[name] = None if data is None else (len(payload), len(data))
            payload += data or b""
        meta = {
            "kind": "base",
            "time": self._clock(),
            "last": last,
            "committed": committed,
            "follows": follows,
            "queries": {name: state.to_json(bases[name]) for name, state in states.items()},
        }
        written = bytearray(pack(meta, bytes(payload)))
        for batch, parts in sorted(before.pending.items()) if before is not None else ():
            assert before is not None
            tables = {name: Given(self._table(before, part), part.clock, part.kept) for name, part in parts.items()}
            written += self._batch_record(batch, tables)
        path = segment_path(self._folder, number)
        draft = path.with_suffix(".part")
        draft.write_bytes(written)
        draft.replace(path)
        if self._handle >= 0:
            os.close(self._handle)
        if before is not None:
            before.close()
        self._handle, self._segment = os.open(path, os.O_WRONLY | os.O_APPEND), Segment(path)
        self._segment.read_on()

    @staticmethod
    def _table(segment: Segment, part: Part) -> pa.Table | None:
        return None if part.place is None else segment.table(part.place)

    @staticmethod
    def _answer(segment: Segment, state: QueryState) -> bytes | None:
        """The answer of a query at the end of a segment, encoded; None if it is empty or unknown."""
        tables = [*segment.base(state), *segment.tables(state.parts)] if state.answered else []
        if not tables:
            return None
        found = fold(tables, state.query.mode, state.query.key)
        return encode_table(found) if found.num_rows else None

    def _begin(self, number: int) -> None:
        segment = self._segment
        assert segment is not None
        segment.read_on()
        expected = {segment.last, segment.last + 1} if segment.last > segment.committed else {segment.last + 1}
        if segment.follows:
            expected = set(segment.follows)
        if number not in expected and segment.last >= 0:
            self._lose(number)
            return
        if segment.last >= 0 and number - 1 > segment.committed:
            self._commit(number - 1, {})

    def _lose(self, number: int) -> None:
        """Begin anew: batches are missing, so that no answer is known."""
        segment = self._segment
        assert segment is not None
        states = {
            name: QueryState(state.query, known=False, start=(number - 1, 0)) for name, state in segment.queries.items()
        }
        segment.pending.clear()
        self._start_segment(segment_number(segment.path) + 1, states, number - 1, number - 1, (), segment)
        for path in segments(self._folder)[:-1]:
            path.unlink()

    def _write(self, number: int, parts: Mapping[str, Given]) -> None:
        waited = sum(given.size for given in parts.values())
        self._append(self._batch_record(number, parts))
        with self._lock:
            self._waiting -= waited

    def _batch_record(self, number: int, parts: Mapping[str, Given]) -> bytes:
        payload, found = bytearray(), {}
        for name, given in parts.items():
            part, data = self._encoded(name, number, given)
            place = (len(payload), len(data)) if data else None
            found[name] = replace(part, place=place).to_json()
            payload += data
        meta: dict[str, Any] = {"kind": "batch", "number": number, "time": self._clock(), "parts": found}
        return pack(meta, bytes(payload))

    def _encoded(self, query: str, number: int, given: Given) -> tuple[Part, bytes]:
        """The part of a query with its bytes; with its net effect, if there are too many."""
        table, kept, known = given.table, given.kept, self._queries.get(query)
        while kept is not Kept.NOTHING:
            data = encode_table(table) if table is not None and table.num_rows else b""
            if len(data) <= self._limits.size // 4:
                return Part(number, 0, given.clock, kept=kept) if table is None else part_of(
                    number, table, given.clock, kept
                ), data
            if kept is Kept.NET or known is None:
                break
            table, kept = net_effect(table, known.mode, known.key), Kept.NET
        return Part(number, 0, given.clock, kept=Kept.NOTHING), b""

    def _append(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def _commit(self, number: int, clocks: Mapping[str, int]) -> None:
        segment = self._segment
        assert segment is not None
        segment.read_on()
        if number <= segment.committed and not clocks:
            return
        self._append(pack({"kind": "commit", "number": number, **({"clocks": clocks} if clocks else {})}))
        segment.read_on()
        self._bound(segment)

    def _bound(self, segment: Segment) -> None:
        """Begin the next segment if this one has its share of the bounds, and remove old ones."""
        now, size = self._clock(), segment.end
        assert segment.begun is not None
        if any(state.awaits_clock for state in segment.queries.values()):
            if size > self._limits.size:
                self._lose(segment.last + 1)
            return
        share = self._limits.size // _SEGMENTS
        if size > share or (now - segment.begun > self._limits.seconds / _SEGMENTS and segment.has_parts):
            before = segment
            number = segment_number(before.path) + 1
            self._start_segment(number, dict(before.queries), before.last, before.committed, before.follows, before)
        self._remove_old(now)

    def _remove_old(self, now: float) -> None:
        """Remove segments whose last batch is older than the bound, and the oldest ones past the bound of bytes."""
        kept = segments(self._folder)
        sizes = [path.stat().st_size for path in kept]
        for place, path in enumerate(kept[:-1]):
            ended = self._begun(kept[place + 1])
            if sum(sizes[place:]) <= self._limits.size and now - ended <= self._limits.seconds:
                return
            path.unlink()

    @staticmethod
    def _begun(path: Path) -> float:
        """When a segment was begun, which is when the one before it ended."""
        handle = os.open(path, os.O_RDONLY)
        try:
            return next((float(record.meta["time"]) for record in read_records(handle, 0)), 0.0)
        finally:
            os.close(handle)
