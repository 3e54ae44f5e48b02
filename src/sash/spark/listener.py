"""A listener of Spark's that passes on the report of every batch, so that none is lost between two polls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener


class BatchListener(StreamingQueryListener):
    """Calls a function with a query's id and Spark's report whenever a batch of the query has ended."""

    def __init__(self, on_batch: Callable[[str, Sequence[Any]], None]) -> None:
        self._on_batch = on_batch

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  (Spark's names)
        """Do nothing: no batch has ended."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Pass on the report of the batch that has ended."""
        self._on_batch(str(event.progress.id), [event.progress])

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Do nothing: no batch has ended."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Do nothing: the last batch has been reported."""
