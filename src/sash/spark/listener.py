"""A listener of Spark's: hears of every batch of every query as it ends, none forgotten, and passes it on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener


class BatchListener(StreamingQueryListener):
    """Calls a function with the id of the query whose batch has ended, and what Spark tells of the batch."""

    def __init__(self, heard: Callable[[str, Sequence[Any]], None]) -> None:
        self._heard = heard

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802  (Spark's names)
        """Nothing has been done yet."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """A batch has ended."""
        self._heard(str(event.progress.id), [event.progress])

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing was done."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """The query has ended; its last batch was told before."""
        self._heard(str(event.id), [])
