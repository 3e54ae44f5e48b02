"""The scheduler of one live window: queries read its sub-windows while updates replace them.

Algorithms 1 and 2 (sections 4.1-4.3), with one isolation level per query. The scheduler only decides; it does not read
or write data. A query runs as

    reader = scheduler.begin(Request(length=60))            # None: must wait (serial only)
    while (read := scheduler.claim(reader)) is not None:    # several threads may claim at a time
        partials[read] = ...scan read.version...            # slow, without any lock
        scheduler.finish(reader, read)
    commit = scheduler.commit(reader)                       # None: there is more to read, continue with claim
    result = merge(partials[read] for read in commit.reads) # only these reads; as of update commit.as_of

and a window update as

    scheduler.update(swap)                                  # swap() makes the new sub-window visible, atomically

`swap` runs under the scheduler's lock, so it must be short (the rename of a manifest) and must not call the scheduler.
No query commits between the swap and its registration. If it raises, the update has not happened.

The effect of an update on running queries depends on their level:
- latest levels: their state advances by one. A query that has read the version that leaves its window is in conflict.
  With `retain=0` it restarts (`claim` returns all its reads again). With `retain>0` only the stale read is undone, and no
  query is aborted.
- window-serializable: no effect while the unread versions are among the last n + retain ones. Older versions are
  deleted, and the query restarts on the latest state.
- serial: the update waits for the query.

Across processes, `lock` guards the swaps (shared: no swap; exclusive: the swap), and `observe(latest)` returns the
updates that other processes made after update `latest`, each as its inserts (`{}` for windows of streams). The scheduler
calls `observe` when a query begins and commits, and holds `lock.shared()` around commits. A serial query holds the shared
lock from begin to end, so the swap of another process waits for it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from sash.errors import IsolationError
from sash.window_store.scheduling.levels import Isolation, level
from sash.window_store.scheduling.reader import Commit, Passed, Read, Reader, Request
from sash.window_store.scheduling.recorder import Recorder


class SwapLock(Protocol):
    """The lock between the swaps and the readers of several processes."""

    def shared(self) -> AbstractContextManager[object]:
        """Prevent swaps. Many readers may hold it."""

    def exclusive(self) -> AbstractContextManager[object]:
        """Wait for all shared holders, then exclude them."""


class NoLock:
    """The lock of a window that only one process uses."""

    shared = exclusive = staticmethod(nullcontext)


@dataclass(frozen=True)
class Update:
    """A committed window update, and the running queries that it made restart."""

    number: int
    restarted: tuple[Reader, ...] = ()


class Scheduler:
    """Serves queries over a window of n sub-windows. `latest` is its last update, -1 if none. Thread-safe."""

    def __init__(
        self,
        n: int,
        latest: int = -1,
        *,
        retain: int = 0,
        isolation: str | Isolation = "ttu",
        recorder: Recorder | None = None,
        lock: SwapLock | None = None,
        observe: Callable[[int], Sequence[Mapping[int, Any]]] | None = None,
    ) -> None:
        if n < 1:
            raise IsolationError(
                f"a window has at least one sub-window, not {n}: choose a window of at least one sub-window"
            )
        if retain < 0:
            raise IsolationError(f"retain is the number of old sub-windows to keep: 0 or more, not {retain}")
        self.n = n
        self.retain = retain
        self.isolation = level(isolation) if isinstance(isolation, str) else isolation
        self._latest = latest
        self._recorder = recorder
        self._lock: SwapLock = lock or NoLock()
        self._observe = observe
        self._readers: dict[Reader, ExitStack] = {}
        self._update_waits = False
        self._names = itertools.count(1)
        self._changed = threading.Condition(threading.RLock())
        self._listeners: list[Callable[[], None]] = []

    @property
    def latest(self) -> int:
        """The number of the last update."""
        return self._latest

    @property
    def readers(self) -> tuple[Reader, ...]:
        """The queries that are running."""
        with self._changed:
            return tuple(self._readers)

    def subscribe(self, listener: Callable[[], None]) -> None:
        """Call `listener`, without holding the lock, after each event that may unblock a query or update."""
        self._listeners.append(listener)

    # ---- queries

    def begin(self, request: Request, isolation: str | Isolation | None = None) -> Reader | None:
        """Begin a query on the latest state. None if it must wait (serial: for another transaction)."""
        wanted = level(isolation) if isinstance(isolation, str) else isolation or self.isolation
        if not 1 <= request.length <= self.n:
            raise IsolationError(
                f"the window keeps {self.n} sub-windows, a query over {request.length} does not fit: "
                "keep a longer window"
            )
        with ExitStack() as held:
            if wanted.holds_updates:
                if self._update_waits or self._held():
                    return None
                held.enter_context(self._lock.shared())
            with self._changed:
                if wanted.holds_updates and (self._update_waits or self._held()):
                    return None
                self._catch_up()
                reader = Reader(request, wanted, f"Q{next(self._names)}", self._latest, request.wanted(self._latest))
                self._readers[reader] = held.pop_all()
                return reader

    def claim(self, reader: Reader) -> Read | None:
        """The next read of the query. None if no reads are left, or the query has ended."""
        with self._changed:
            if not reader.running or not reader.unread:
                return None
            version = reader.isolation.pick(reader.unread, self.n)
            reader.unread.remove(version)
            read = Read(version % self.n, version, reader.state)
            reader.claimed[version] = read
            return read

    def reached(self, reader: Reader) -> dict[str, list[int]]:
        """The versions that the query has read, those that it reads now, and the others in the order in which it would read them."""
        with self._changed:
            left, order = set(reader.unread), []
            while left:
                order.append(reader.isolation.pick(left, self.n))
                left.remove(order[-1])
            return {"done": sorted(reader.done), "reading": sorted(reader.claimed), "next": order}

    def finish(self, reader: Reader, read: Read) -> bool:
        """Complete a claimed read. False if it has become stale and must not be used."""
        with self._changed:
            if not reader.running or reader.claimed.get(read.version) is not read:
                return False
            del reader.claimed[read.version]
            reader.done[read.version] = read
            if self._recorder is not None and read.version in reader.request.window(reader.state):
                passed = any(row.version == read.version for row in reader.passed)
                self._recorder.read(reader.name, read.sub_window, read.as_of, reader.state if passed else None)
            return True

    def give_up(self, reader: Reader) -> tuple[Read, ...]:
        """Undo reads of a query whose results need too much memory while it waits; it will read these versions again.

        A window-serializable query keeps what it could not read again.
        """
        with self._changed:
            if not reader.running:
                return ()
            gone = self._latest - self.n - self.retain
            given = tuple(read for read in reader.done.values() if reader.isolation.follows or read.version > gone)
            for read in given:
                del reader.done[read.version]
                reader.unread.add(read.version)
                reader.given_up += 1
                if self._recorder is not None and read.version in reader.request.window(reader.state):
                    self._recorder.undo(reader.name, read.sub_window)
            versions = {read.version for read in given}
            reader.passed = [row for row in reader.passed if row.version not in versions]
            return given

    def commit(self, reader: Reader) -> Commit | None:
        """Commit a query that has read everything as of the latest update. None if there is more to read."""
        if not self._complete(reader):
            return None  # the usual case, without taking the lock
        with self._lock.shared(), self._changed:
            self._catch_up()
            if not self._complete(reader):
                return None
            reads = tuple(
                reader.done[version] for version in sorted(reader.request.wanted(reader.state) & reader.done.keys())
            )
            passed = tuple(row for row in reader.passed if row.version in reader.done)
            if self._recorder is not None:
                self._recorder.commit(reader.name, len(reader.request.window(reader.state)))
            self._end(reader)
        self._notify()
        return Commit(reader.state, reads, passed)

    def _complete(self, reader: Reader) -> bool:
        with self._changed:
            return reader.running and not reader.claimed and not reader.unread

    def abort(self, reader: Reader) -> None:
        """End a query without a result: cancelled, failed or timed out. Has no effect on a query that has ended."""
        with self._changed:
            if not reader.running:
                return
            if self._recorder is not None:
                self._recorder.abort(reader.name)
            self._end(reader)
        self._notify()

    # ---- updates

    def update(
        self, swap: Callable[[], object] | None = None, inserts: Mapping[int, Any] | None = None, *, wait: bool = True
    ) -> Update | None:
        """Commit the next window update.

        Without `wait`, an update that has to wait for a serial query returns None, and no other serial query begins
        before the update was tried again.

        `inserts` are rows that the update adds to older sub-windows of a kept result, by version (4.3). They are passed
        to the queries that have read these versions.
        """
        while True:
            with self._changed:
                while self._held():
                    self._update_waits = True
                    if not wait:
                        return None
                    self._changed.wait()
            with self._lock.exclusive(), self._changed:
                if self._held():  # a query of another thread took the shared lock first
                    continue
                self._update_waits = False
                self._catch_up()
                if swap is not None:
                    swap()
                update = self._apply(inserts or {})
            self._notify()
            return update

    def _held(self) -> bool:
        with self._changed:
            return any(reader.isolation.holds_updates for reader in self._readers)

    def _catch_up(self) -> None:
        """Apply the updates of other processes."""
        if self._observe is not None:
            for inserts in self._observe(self._latest):
                self._apply(inserts)

    def _apply(self, inserts: Mapping[int, Any]) -> Update:
        self._latest += 1
        number = self._latest
        if self._recorder is not None:
            self._recorder.update(number, number % self.n, [version % self.n for version in inserts])
        restarted: list[Reader] = []
        for reader in self._readers:
            if reader.isolation.follows:
                conflict = self._follow(reader, inserts)
            else:
                conflict = any(version <= number - self.n - self.retain for version in reader.unread)
            if conflict:
                self._restart(reader)
                restarted.append(reader)
        return Update(number, tuple(restarted))

    def _follow(self, reader: Reader, inserts: Mapping[int, Any]) -> bool:
        """Advance a query of a latest level to the new state. True if it is in conflict and must restart."""
        before, after = (set(reader.request.window(state)) for state in (reader.state, self._latest))
        left = before - after
        reader.state = self._latest
        reader.unread = reader.request.wanted(self._latest) - reader.done.keys() - reader.claimed.keys()
        for version in left & reader.claimed.keys():
            del reader.claimed[version]  # its read is in progress and is dropped when it finishes
        stale = left & reader.done.keys()
        if stale and not self.retain:
            return True
        for version in stale:
            del reader.done[version]
            reader.rescans += 1
            if self._recorder is not None:
                self._recorder.undo(reader.name, version % self.n)
        for version, rows in inserts.items():
            if version in reader.done or version in reader.claimed:
                reader.passed.append(Passed(version, self._latest, rows))
                if self._recorder is not None and version in reader.done and version in after:
                    self._recorder.pass_on(reader.name, version % self.n)
        return False

    def _restart(self, reader: Reader) -> None:
        if self._recorder is not None:
            self._recorder.abort(reader.name)
        reader.name = f"Q{next(self._names)}"
        reader.state = self._latest
        reader.unread = reader.request.wanted(self._latest)
        reader.done.clear()
        reader.claimed.clear()
        reader.passed.clear()
        reader.restarts += 1

    def _end(self, reader: Reader) -> None:
        reader.running = False
        self._readers.pop(reader).close()
        self._changed.notify_all()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
