"""The scheduler of one live window: queries read its sub-windows while updates replace them.

Algorithms 1 and 2 (sections 4.1-4.3), with the level of isolation chosen per query. The scheduler decides; it reads
and writes nothing itself. A query goes

    reader = scheduler.begin(Request(length=60))            # None: not yet (serial only)
    while (read := scheduler.claim(reader)) is not None:    # several threads may claim at a time
        partials[read] = ...scan read.version...            # without any lock; slow
        scheduler.finish(reader, read)
    commit = scheduler.commit(reader)                       # None: there is more to read, go on with claim
    answer = merge(partials[read] for read in commit.reads) # these and no others; as of update commit.as_of

and a window update

    scheduler.update(swap)                                  # swap(): makes the new sub-window visible, atomically

`swap` runs under the scheduler's lock, so it must be short (the rename of a manifest) and must not call the scheduler;
no commit falls between the swap and its being known. If it raises, the update has not happened.

What an update does to the queries that are running:
- latest levels: their state moves on by one. A query that had read the version that leaves its window is in conflict:
  with `retain=0` it starts again (all its reads count for nothing; `claim` hands them out anew), with `retain>0` only
  the stale read is taken back, and no query is aborted;
- window-serializable: nothing, as long as the versions still to be read are among the last n + retain ones; a version
  older than these is gone, and the query starts again on the latest state;
- serial: the update waits for them.

Whoever keeps the versions may delete those smaller than `oldest_needed()`; reads under way are never among them.

Across processes: `lock` guards the swaps (shared: no swap meanwhile; exclusive: the swap), and `observe(latest)` gives
the updates that others have made after update `latest`, each as its inserts (`{}` for plain windows). The scheduler
looks with `observe` when a query begins and when it commits, and takes `lock.shared()` around commits; a serial query
holds the shared lock from begin to end, so the swap of another process waits for it.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from sash.errors import IsolationError
from sash.window_store.scheduling.isolation import Isolation
from sash.window_store.scheduling.levels import level
from sash.window_store.scheduling.reader import Commit, Passed, Read, Reader, Request
from sash.window_store.scheduling.recorder import Recorder


class SwapLock(Protocol):
    """Keeps swaps of several processes and their readers apart; many may hold it shared at a time."""

    def shared(self) -> AbstractContextManager[object]:
        """While held, no process swaps."""

    def exclusive(self) -> AbstractContextManager[object]:
        """While held, only this process swaps; waits for everyone who holds it shared."""


class NoLock:
    """The lock of a window that lives in one process."""

    def shared(self) -> AbstractContextManager[object]:
        return nullcontext()

    def exclusive(self) -> AbstractContextManager[object]:
        return nullcontext()


@dataclass(frozen=True)
class Update:
    """A committed window update and what it did to running queries."""

    number: int
    restarted: tuple[Reader, ...] = ()
    rescanned: tuple[tuple[Reader, int], ...] = ()


class Scheduler:
    """Serves queries over a window of n sub-windows, `latest` being its last update (-1: none yet). Thread-safe."""

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
            raise IsolationError(f"a window has at least one sub-window, not {n}: choose a RANGE of at least one slide")
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
        """Call `listener` after everything that may let a waiting query or update go on; never under our lock."""
        self._listeners.append(listener)

    def oldest_needed(self) -> int:
        """The smallest version that any query may still read."""
        with self._changed:
            needed = [self._latest - self.n + 1 - self.retain]
            for reader in self._readers:
                needed += reader.claimed
                needed += reader.request.expired(reader.state)[:1]
            return max(0, min(needed))

    # ---- queries

    def begin(self, request: Request, isolation: str | Isolation | None = None) -> Reader | None:
        """Begin a query on the latest state, or say with None that it has to wait (serial: for another transaction)."""
        wanted = level(isolation) if isinstance(isolation, str) else isolation or self.isolation
        if not 1 <= request.length <= self.n:
            raise IsolationError(
                f"the window keeps {self.n} sub-windows, a query over {request.length} does not fit: "
                "register the stream with a longer window"
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
        """What the query reads next; None if nothing is left to begin (or the query has ended)."""
        with self._changed:
            if not reader.running or not reader.unread:
                return None
            version = reader.isolation.pick(reader.unread, self.n)
            reader.unread.remove(version)
            read = Read(version % self.n, version, reader.state)
            reader.claimed[version] = read
            return read

    def finish(self, reader: Reader, read: Read) -> bool:
        """Count a read that was claimed; False if it became stale meanwhile and counts for nothing."""
        with self._changed:
            if not reader.running or reader.claimed.get(read.version) is not read:
                return False
            del reader.claimed[read.version]
            reader.done[read.version] = read
            if self._recorder is not None and read.version in reader.request.window(reader.state):
                passed = any(row.version == read.version for row in reader.passed)
                self._recorder.read(reader.name, read.sub_window, read.as_of, reader.state if passed else None)
            return True

    def commit(self, reader: Reader) -> Commit | None:
        """Commit if everything has been read, against all updates so far; None if there is more to read."""
        if not self._complete(reader):
            return None  # most often, and without the lock
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
        """End a query without an answer: cancelled, failed or out of time. Ending it twice is harmless."""
        with self._changed:
            if not reader.running:
                return
            if self._recorder is not None:
                self._recorder.abort(reader.name)
            self._end(reader)
        self._notify()

    # ---- updates

    def update(
        self,
        swap: Callable[[], object] | None = None,
        inserts: Mapping[int, Any] | None = None,
        *,
        wait: bool = True,
    ) -> Update | None:
        """Commit the next window update.

        Where it has to wait for a serial query and `wait` is off: None, and no other serial query begins before the
        update has been tried again.

        `inserts` are rows that the update adds to older sub-windows of a materialized result, by version (4.3): they
        are passed to the queries that have read these.
        """
        while True:
            with self._changed:
                while self._held():
                    self._update_waits = True
                    if not wait:
                        return None
                    self._changed.wait()
            with self._lock.exclusive(), self._changed:
                if self._held():  # a query of another thread took its shared lock before we had ours
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
        """Apply what other processes have done."""
        if self._observe is not None:
            for inserts in self._observe(self._latest):
                self._apply(inserts)

    def _apply(self, inserts: Mapping[int, Any]) -> Update:
        self._latest += 1
        number = self._latest
        if self._recorder is not None:
            self._recorder.update(number, number % self.n, [version % self.n for version in inserts])
        restarted: list[Reader] = []
        rescanned: list[tuple[Reader, int]] = []
        for reader in self._readers:
            if reader.isolation.follows:
                self._follow(reader, inserts, restarted, rescanned)
            elif any(version <= number - self.n - self.retain for version in reader.unread):
                self._restart(reader)
                restarted.append(reader)
        return Update(number, tuple(restarted), tuple(rescanned))

    def _follow(
        self,
        reader: Reader,
        inserts: Mapping[int, Any],
        restarted: list[Reader],
        rescanned: list[tuple[Reader, int]],
    ) -> None:
        """Move a query of a latest level on to the new state."""
        before, after = (set(reader.request.window(state)) for state in (reader.state, self._latest))
        left = before - after
        reader.state = self._latest
        reader.unread = reader.request.wanted(self._latest) - reader.done.keys() - reader.claimed.keys()
        for version in left & reader.claimed.keys():
            del reader.claimed[version]  # its read is under way and will be dropped when it is finished
        stale = left & reader.done.keys()
        if stale and not self.retain:
            self._restart(reader)
            restarted.append(reader)
            return
        for version in stale:
            del reader.done[version]
            reader.rescans += 1
            rescanned.append((reader, version))
            if self._recorder is not None:
                self._recorder.undo(reader.name, version % self.n)
        for version, rows in inserts.items():
            if version in reader.done or version in reader.claimed:
                reader.passed.append(Passed(version, self._latest, rows))
                if self._recorder is not None and version in reader.done and version in after:
                    self._recorder.pass_on(reader.name, version % self.n)

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
