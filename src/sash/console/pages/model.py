"""What the pages need of a job, and one cache of polled results per job that all clients share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

Values = dict[str, Any]

_THREADS = ThreadPoolExecutor(16, thread_name_prefix="sash-console")


class View(Protocol):
    """A job as the console sees it. Methods may be called from any thread, and return values that JSON has.

    Instants are microseconds since 1970, and None is not known. A `SashError` has a text for users.
    """

    @property
    def name(self) -> str:
        """The name of the job."""

    @property
    def checkpoint(self) -> str:
        """The folder of the job."""

    @property
    def allow_changes(self) -> bool:
        """Whether the console may change the job."""

    def status(self) -> Values: ...

    def queries(self) -> list[Values]: ...

    def answer(self, query: str, at: int | None = None, limit: int = 500) -> Values: ...

    def changes(self, query: str, after: tuple[int, int] | None = None, limit: int = 200) -> Values: ...

    def span(self, query: str) -> Values: ...

    def plan(self) -> list[Values]: ...

    def explain(self, query: str) -> str: ...

    def windows(self) -> list[Values]: ...

    def snapshot(self, sql: str, isolation: str, timeout: float = 10, limit: int = 500) -> Values: ...

    def preview(self, sql: str, seconds: float = 5, rows: int = 500) -> Values: ...

    def check(self, sql: str) -> list[Values]: ...

    def catalog(self) -> list[Values]: ...

    def add(self, sql: str) -> str: ...


async def in_thread(method: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a method that may take a while, called in a worker thread.

    If the page is closed meanwhile, this is cancelled. (NiceGUI's `run.io_bound` would return None.)
    """
    return await asyncio.get_running_loop().run_in_executor(_THREADS, partial(method, *arguments))


@dataclass
class _Entry:
    """A result, or the error raised instead, and when it was read."""

    read: float = float("-inf")
    value: Any = None
    error: Exception | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Poll:
    """Reads results of a view in worker threads. Clients that ask within `age` seconds of a read share its result."""

    def __init__(self, view: View, age: float = 0.9, most: int = 256) -> None:
        self.view = view
        self._age = age
        self._most = most
        self._entries: dict[tuple[Any, ...], _Entry] = {}

    async def read(self, method: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of a method of the view. An error that it raises is raised for all who share the read."""
        key = (method.__name__, *arguments)
        entry = self._entries.setdefault(key, _Entry())
        async with entry.lock:
            if time.monotonic() - entry.read > self._age:
                try:
                    entry.value, entry.error = await in_thread(method, *arguments), None
                except Exception as problem:  # noqa: BLE001  (raised below, for each client)
                    entry.value, entry.error = None, problem
                entry.read = time.monotonic()
                self._forget()
        if entry.error is not None:
            raise entry.error
        return entry.value

    def _forget(self) -> None:
        """Drop the oldest results past the bound."""
        while len(self._entries) > self._most:
            oldest = min(self._entries, key=lambda key: self._entries[key].read)
            if self._entries[oldest].lock.locked():
                return
            del self._entries[oldest]


Views = Mapping[str, View]
