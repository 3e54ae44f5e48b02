"""Kept windows: a window store, its writer, and the streaming query that fills it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from sash.arguments import shown
from sash.errors import StoreError
from sash.plan.catalog import StreamEntry
from sash.plan.options import Trigger
from sash.spark.errors import sash_errors
from sash.spark.handle import StreamingHandle
from sash.spark.session import STREAMS, in_pool, query_settings
from sash.spark.sinks.start import await_sources, set_trigger
from sash.spark.sources.inputs import StreamSource
from sash.spark.temporary import TemporaryFolder
from sash.spark.window_store import ApplyRows, kept_frame
from sash.window_store.queries import WindowQueries
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.sets import WindowSets

StartWriting = Callable[[WindowSets], StreamingQuery]
"""Starts the streaming query that fills a store through its writer."""


@dataclass(frozen=True)
class StoreFolder:
    """The folder of a store. A temporary one is deleted when its query is stopped."""

    root: Path
    temporary: TemporaryFolder | None = None

    @property
    def checkpoint(self) -> str:
        """The checkpoint directory of the query that fills the store."""
        return str(self.root / "checkpoint")

    @staticmethod
    def of(path: str | None, checkpoint: str | None, name: str) -> StoreFolder:
        """The given path, else a folder under the engine's checkpoint directory, else a temporary one."""
        if path is not None:
            return StoreFolder(Path(path))
        if checkpoint is not None and "://" not in checkpoint:
            return StoreFolder(Path(checkpoint) / "windows" / name)
        folder = TemporaryFolder("window")
        return StoreFolder(folder.path, folder)


class KeptWindow(StreamingHandle):
    """A streaming query that keeps a window. Stopping it closes the store, which stays."""

    def __init__(
        self,
        query: StreamingQuery,
        writer: WindowSets,
        on_stop: Callable[[], None],
        queries: WindowQueries,
    ) -> None:
        super().__init__(query)
        self._writer = writer
        self._queries = queries
        self._on_stop = on_stop

    def stop(self) -> None:
        """Stop the query. The store and its checkpoint stay, unless they are temporary."""
        super().stop()
        self._on_stop()

    def progress(self) -> dict[str, Any]:
        """The last batch applied, the window updates so far, the watermark, late rows, and the sub-windows with their rows.

        While the length of the sub-windows changes, `changing` is how much of the window the new ones cover. `query_groups` are the groups of snapshot and periodic queries of this process that share their scans.
        """
        return {**self._writer.progress(), "query_groups": self._queries.groups(self._writer.layout.name)}

    def change_every(self, every: str | int) -> None:
        """Change the length of the sub-windows, as given to `Engine.keep`, while the window is kept and queried.

        Two sets of sub-windows are maintained until the new one covers the window; queries read the old one until then.
        `progress()["changing"]` tells how far that is.
        """
        self._writer.change_every(every)


def start_stream(
    source: StreamSource, entry: StreamEntry, trigger: str | None, checkpoint: str, writer: WindowSets
) -> StreamingQuery:
    """Start the query that applies the rows of a stream to a store."""
    spark = source.frame.sparkSession
    plain = kept_frame(source, entry).writeStream.outputMode("append").option("checkpointLocation", checkpoint)
    with query_settings(spark, 1, checkpoint), in_pool(spark, STREAMS), sash_errors():
        started = set_trigger(plain, Trigger.parse(trigger)).foreachBatch(ApplyRows(writer, source)).start()
        return await_sources(started)


def keep_window(
    queries: WindowQueries, layout: StoreLayout, folder: StoreFolder, start: StartWriting, recorder: Recorder | None
) -> KeptWindow:
    """Open a store, and start the query that fills it."""
    try:
        writer = queries.write(folder.root, layout, recorder)
    except OSError as problem:
        raise StoreError(
            f"a window cannot be kept in {shown(str(folder.root))}: {problem.strerror}; pass another path"
        ) from problem

    def stopped() -> None:
        queries.detach(layout.name)
        writer.close()
        if folder.temporary is not None:
            folder.temporary.remove()

    try:
        kept = KeptWindow(start(writer), writer, stopped, queries)
    except BaseException:
        stopped()
        raise
    if folder.temporary is not None:
        folder.temporary.before_exit = kept.query.stop
    return kept
