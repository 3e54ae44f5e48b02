"""The lock of a checkpoint: one query at a time may use it, since two would overwrite each other's batches.

On a local path it is a file lock, which the operating system frees when the process ends, however it ends. A file system
of Spark's (HDFS, S3) has none, so there the owner renews a lease, and a lease that stands still is taken over.
"""

from __future__ import annotations

import json
import logging
import os
import re
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.errors import CheckpointError
from sash.file_lock import FileLock, LockHeldError, lock_holder
from sash.job_index import LOCK
from sash.private_folders import make_private
from sash.spark.folders import Folder, local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

NAME = LOCK
RENEWAL = 10.0
"""Seconds between two renewals of a lease; one that stands still for 2.5 times as long is taken over."""

_held: dict[str, CheckpointLock] = {}
_guard = threading.Lock()


class CheckpointLock(ABC):
    """Holds a checkpoint for one query. Made by `lock_checkpoint`."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._query: StreamingQuery | None = None

    def bind(self, query: StreamingQuery) -> None:
        """Hold the lock as long as this query runs."""
        self._query = query

    @property
    def ended(self) -> bool:
        """Whether the query that held it has ended."""
        return self._query is not None and not self._query.isActive

    def held_by(self, query_id: str) -> bool:
        """Whether the query with this id holds it."""
        return self._query is not None and str(self._query.id) == query_id

    def release(self) -> None:
        """Let another query use the checkpoint. To release it twice has no effect."""
        with _guard:
            if _held.get(self._checkpoint) is self:
                del _held[self._checkpoint]
                self._free()

    @abstractmethod
    def _free(self) -> None: ...


def lock_checkpoint(spark: SparkSession, checkpoint: str, query: str | None) -> CheckpointLock:
    """Lock a checkpoint for a query, or raise CheckpointError with the process that uses it."""
    path = local_path(checkpoint)
    location = checkpoint if path is None else str(path.resolve())
    with _guard:
        held = _held.get(location)
    if held is not None and held.ended:
        held.release()
    taken = _Lease(location, Folder(spark, location), query) if path is None else _FileLock(location, query)
    with _guard:
        _held[location] = taken
    return taken


def refuse_locked(checkpoint: str) -> None:
    """Raise CheckpointError if another process uses a checkpoint on a local path; needs no Spark."""
    path = local_path(checkpoint)
    owner = None if path is None else lock_holder(path / NAME)
    if path is not None and owner is not None:
        raise _in_use(str(path.resolve()), owner)


def lock_run(path: Path, checkpoint: str, job: str) -> FileLock:
    """Lock the folder of all checkpoints of a job as long as its process runs, or raise CheckpointError with who uses it.

    The lock is the file at `path`, since the folder itself may be on a file system without locks.
    """
    try:
        make_private(path.parent)
        return FileLock(path, json.dumps(_owner(job)))
    except LockHeldError as problem:
        raise _in_use(checkpoint, str(problem)) from None
    except OSError as problem:
        raise CheckpointError(
            f"checkpoint {checkpoint} cannot be written: {problem.strerror}. Choose a folder that you may write to"
        ) from None


def release_lock(query_id: str) -> None:
    """Release the lock of the query with this id, which has ended."""
    with _guard:
        found = [lock for lock in _held.values() if lock.held_by(query_id)]
    for lock in found:
        lock.release()


class _FileLock(CheckpointLock):
    """A lock on a file of the checkpoint, which also names the process."""

    def __init__(self, checkpoint: str, query: str | None) -> None:
        super().__init__(checkpoint)
        path = Path(checkpoint)
        try:
            make_private(path)
            self._lock = FileLock(path / NAME, json.dumps(_owner(query)))
        except LockHeldError as problem:
            raise _in_use(checkpoint, str(problem)) from None
        except OSError as problem:
            raise CheckpointError(
                f"checkpoint {checkpoint} cannot be written: {problem.strerror}. Choose a folder that you may write to"
            ) from None

    def _free(self) -> None:
        self._lock.release()


class _Lease(CheckpointLock):
    """A file of the checkpoint that a thread of the owner rewrites from time to time."""

    def __init__(self, checkpoint: str, folder: Folder, query: str | None) -> None:
        super().__init__(checkpoint)
        self._folder = folder
        self._owner = {**_owner(query), "renewed": 0}
        found = folder.read(NAME)
        if found and (checkpoint in _held or (_may_be_alive(found) and self._is_renewed(found))):
            raise _in_use(checkpoint, found)
        self._released = threading.Event()
        folder.write(NAME, json.dumps(self._owner))
        threading.Thread(target=self._renew, daemon=True).start()

    def _is_renewed(self, found: str) -> bool:
        logging.getLogger("sash").warning("checkpoint %s: checking whether %s", self._checkpoint, _described(found))
        until = time.monotonic() + 2.5 * RENEWAL
        while time.monotonic() < until:
            time.sleep(RENEWAL / 10)
            now = self._folder.read(NAME)
            if now is None:
                return False
            if now != found:
                return True
        return False

    def _renew(self) -> None:
        while not self._released.wait(RENEWAL):
            self._owner["renewed"] += 1
            with suppress(Exception):  # the file system may be unreachable for a while
                self._folder.write(NAME, json.dumps(self._owner))

    def _free(self) -> None:
        self._released.set()
        with suppress(Exception):
            self._folder.remove(NAME)


def _owner(query: str | None) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "query": query,
        "command": _command(sys.orig_argv),
    }


def _command(arguments: list[str]) -> str:
    """The command of a process in one line of bounded length, without passwords in URLs.

    >>> _command(["/usr/bin/python", "-c", "connect('postgresql://me:secret@host/shop')"])
    "python -c connect('postgresql://...@host/shop')"
    """
    text = " ".join(" ".join([Path(arguments[0]).name, *arguments[1:]]).split())
    return re.sub(r"://[^@/\s]+@", "://...@", text)[:100]


def _may_be_alive(text: str) -> bool:
    """Whether the owner may be a running process: of this host it is known, of another it is not."""
    try:
        owner = json.loads(text)
    except ValueError:  # it is being written
        return True
    if owner["host"] != socket.gethostname():
        return True
    if owner["pid"] == os.getpid():  # of an earlier process with this number
        return False
    try:
        os.kill(owner["pid"], 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _in_use(checkpoint: str, text: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint {checkpoint} is in use: {_described(text)}. Stop that one first, or choose another checkpoint"
    )


def _described(text: str) -> str:
    try:
        owner = json.loads(text)
    except ValueError:
        return "another process has just locked it"
    query = f"query {owner['query']} of " if owner.get("query") else ""
    process = "this process" if _is_here(owner) else f"process {owner['pid']} on {owner['host']} ({owner['command']})"
    return f"{query}{process} is running on it since {owner['since']}"


def _is_here(owner: dict[str, Any]) -> bool:
    return bool(owner["pid"] == os.getpid() and owner["host"] == socket.gethostname())
