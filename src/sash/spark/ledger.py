"""The ledger of a job: which queries' sinks have the current batch, so that a repeated batch goes only to the others.

There is one file per batch in the checkpoint, with a line for each query, written when its sink has committed. Sinks that
record the numbers of batches are exactly-once without it. For the others it narrows what a failure can repeat to the
batches that were being written when the process died.
"""

from __future__ import annotations

import json
import threading

from sash.spark.folders import Folder


class Ledger:
    """The ledger in a folder; its methods may be called from several threads."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._number: int | None = None

    def begin(self, number: int) -> frozenset[str]:
        """Begin or repeat a batch; return the queries whose sinks have it. The batches before it are committed."""
        if self._number is None:
            for name in self._folder.names():
                if name.isdigit() and int(name) < number:
                    self._folder.remove(name)
        elif self._number < number:
            self._folder.remove(str(self._number))
        self._number = number
        written = self._folder.read(str(number)) or ""
        whole = written[: written.rfind("\n") + 1]
        if whole != written:  # the process died while it wrote the last line
            self._folder.write(str(number), whole)
        return frozenset(json.loads(line) for line in whole.splitlines())

    def commit(self, query: str) -> None:
        """Record that the query's sink has the batch."""
        with self._lock:
            self._folder.append(str(self._number), json.dumps(query) + "\n")
