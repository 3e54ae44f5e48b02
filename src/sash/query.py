"""A standing query: planned, ready to be explained, read as a stream of changes, or started."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sash.errors import CatalogError
from sash.plan.annotated import PlanNode
from sash.plan.patterns import Pattern
from sash.plan.tree import tree
from sash.plan.types import Schema
from sash.planning import Planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.spark.output import Mode
    from sash.spark.sinks import Running, Sink
    from sash.spark.sources.inputs import QueryInputs
    from sash.spark.sources.refresh import TableRefresh
    from sash.spark.stores import Answer


@dataclass(frozen=True)
class Query:
    """Made by `Engine.sql`."""

    planned: Planned
    spark: SparkSession
    inputs: QueryInputs
    shards: int
    checkpoint: str | None = None
    keep: Callable[[str, Running], None] | None = None

    @property
    def schema(self) -> Schema:
        """The columns of the answer."""
        return self.planned.schema

    @property
    def plan(self) -> PlanNode:
        """The optimized logical plan: nodes to walk, each with the update pattern of its output."""
        return self.planned.plan

    @property
    def pattern(self) -> Pattern:
        """The update pattern of the answer."""
        return self.planned.pattern

    def explain(self, *, all: bool = False, analyze: bool = False) -> str:  # noqa: A002  (as in EXPLAIN ALL)
        """The plan as text, update patterns, estimates, stages and buffers included; with `all` also what was rejected.

        With `analyze` the query runs over what is in its sources now, its answer going nowhere, and the plan says what
        each operator did. `Running.explain` says it of a query that runs.
        """
        if not analyze:
            return self.planned.explain(all=all)
        running = replace(self, checkpoint=None, keep=None).start("noop", trigger="available_now")
        try:
            running.await_termination()
            return running.explain()
        finally:
            running.stop()

    def changes(self, mode: Mode = "changes", key: Sequence[str] | None = None) -> DataFrame:
        """The changes of the answer as a streaming DataFrame, to be started by whoever asks for it.

        A query started by hand takes its settings from the session, so this sets those that it needs there, to stay:
        the RocksDB state store and one shuffle partition per shard among them. `start` leaves the session as it was.
        """
        from sash.spark.session import apply_settings

        for name in self.planned.changing:
            if name.lower() in self.inputs.refreshed:
                raise CatalogError(f"relation {name} is read again while a query runs: start the query with start()")
        apply_settings(self.spark, self._width)
        return self._changes(mode, key, self.inputs)

    def start(
        self,
        sink: Sink = "console",
        mode: Mode | None = None,
        trigger: str | None = None,
        checkpoint: str | None = None,
        key: Sequence[str] | None = None,
        name: str | None = None,
        observe: bool = False,
        **options: Any,
    ) -> Running:
        """Run the query into a sink: a store of Sash's, a Spark format, or a function of a batch and its number.

        The stores are "postgres" (`url`, `table`), "changelog" (`path`) and "kafka" (`kafka.bootstrap.servers`,
        `topic`). A function is called once per batch with a DataFrame that is already computed; after a failure the
        last batch may come again under the same number. `mode` is `changes`, `net` or `upsert` (by `key`, or by the key
        that the query has); None is what suits the sink. `trigger` is None, "available_now", "once" or a period such as
        "500 milliseconds". With `observe` the streams are counted as they are read, for `Running.statistics`.
        """
        from sash.spark.counts import operator_names
        from sash.spark.fingerprint import check_fingerprint
        from sash.spark.session import query_settings
        from sash.spark.sinks import check_trigger, start_query
        from sash.spark.sources.observation import StreamObservation, observe_streams
        from sash.spark.stores import STORES

        check_trigger(trigger, self._beating)
        store = STORES[sink](options) if isinstance(sink, str) and sink in STORES else None
        if store is None:
            chosen = mode or "changes"
        else:
            keyed = key is not None or self.planned.key(None, needed=False) is not None
            chosen = store.mode(mode, keyed)
        self._check(chosen, key)
        place, temporary = self._place(checkpoint, name)
        identity = check_fingerprint(self.spark, place, self._fingerprint())
        inputs, tables = self._read_tables(place)
        inputs = observe_streams(inputs, self.planned) if observe else inputs
        if store is not None:
            sink, options = store.open(self._answer(chosen, key, identity, inputs)), {}
        with query_settings(self.spark, self._width, place):
            changes = self._changes(chosen, key, inputs)
            written = {option: str(value) for option, value in options.items()}
            operators = operator_names(self.planned.physical)
            running = start_query(changes, sink, written, trigger, place, name, temporary, operators)
        running.planned = self.planned
        running.observation = StreamObservation(self.planned) if observe else None
        running.reading(tables, again=trigger not in ("available_now", "once"))
        if self.keep is not None:
            self.keep(name or f"query-{running.id[:8]}", running)
        return running

    def _answer(self, mode: Mode, key: Sequence[str] | None, identity: str, inputs: QueryInputs) -> Answer:
        from sash.spark.dataflow import time_type
        from sash.spark.stores import Answer

        chosen = self.planned.key(key, needed=mode == "upsert")
        return Answer(self.schema, time_type(self.planned.physical, inputs), mode, chosen, identity)

    @property
    def _beating(self) -> list[str]:
        """The streams, and relations with updates, that have a heartbeat."""
        sources = {name: self.inputs.streams.get(name.lower()) for name in self._flowing}
        return [name for name, source in sources.items() if source is not None and source.heartbeat is not None]

    @property
    def _flowing(self) -> tuple[str, ...]:
        return (*self.planned.streams, *self.planned.changing)

    def _read_tables(self, place: str) -> tuple[QueryInputs, dict[str, TableRefresh]]:
        """The tables that are read again, read for the first time, and what the query reads with their updates in it."""
        from sash.spark.sources.inputs import StreamSource
        from sash.spark.sources.refresh import READ_AT, READING, TableRefresh

        streams, tables = dict(self.inputs.streams), {}
        for name in map(str.lower, self.planned.changing):
            if name in self.inputs.refreshed:
                tables[name] = TableRefresh(
                    self.spark, self.inputs.refreshed[name], f"{place.rstrip('/')}/relations/{name}"
                )
                tables[name].refresh()
                time = READING if self.planned.streams else READ_AT
                streams[name] = StreamSource(tables[name].updates(), time=time)
        return replace(self.inputs, streams=streams), tables

    @property
    def _width(self) -> int:
        """How many shards there is work for."""
        return 1 if all(stage.single for stage in self.planned.physical.stages) else self.shards

    def _changes(self, mode: Mode, key: Sequence[str] | None, inputs: QueryInputs) -> DataFrame:
        from sash.spark.dataflow import change_frame

        positions = self._check(mode, key)
        return change_frame(self.planned.physical, self.planned.output, inputs, self._width, mode, positions)

    def _check(self, mode: Mode, key: Sequence[str] | None) -> tuple[int, ...] | None:
        """The key by which the mode reduces changes."""
        from sash.spark.output import MODES

        if mode not in MODES:
            raise CatalogError(f"unknown output mode {mode!r}; use one of {', '.join(MODES)}")
        return self.planned.key(key, needed=mode == "upsert")

    def _place(self, checkpoint: str | None, name: str | None) -> tuple[str, bool]:
        if checkpoint is not None:
            return checkpoint, False
        if self.checkpoint is not None:
            own = name or hashlib.sha256(self.planned.sql.encode()).hexdigest()[:16]
            return f"{self.checkpoint.rstrip('/')}/{own}", False
        return tempfile.mkdtemp(prefix="sash-checkpoint-"), True

    def _fingerprint(self) -> dict[str, Any]:
        from sash.spark.stage import FORMAT

        streams = self.planned.streams
        return {
            "format": FORMAT,
            "sql": self.planned.sql.strip(),
            "plan": tree(self.planned.optimized),
            "join": self.planned.options.join,
            "tau": self.planned.options.tau,
            "shards": self.shards,
            "strategy": self.planned.physical.strategy,
            "streams": list(streams),
            "relations": list(self.planned.changing),
            "heartbeats": self._beating,
        }
