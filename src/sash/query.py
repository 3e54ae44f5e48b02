"""A standing query: planned, ready to be explained, read as a stream of changes, or started."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sash.errors import CatalogError
from sash.physical.explain import explain
from sash.plan.annotated import PlanNode
from sash.plan.keys import keys
from sash.plan.patterns import Pattern
from sash.plan.tree import tree
from sash.plan.types import Schema
from sash.planning import Planned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.spark.output import Mode
    from sash.spark.plan import Inputs
    from sash.spark.reread import Reread
    from sash.spark.sinks import Running, Sink


@dataclass(frozen=True)
class Query:
    """Made by `Engine.sql`."""

    planned: Planned
    spark: SparkSession
    inputs: Inputs
    shards: int
    checkpoint: str | None = None

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

    def explain(self) -> str:
        """The plan as text, update patterns, stages and buffers included."""
        return explain(self.planned.sql, self.planned.optimized, self.planned.rules, self.planned.physical)

    def changes(self, mode: Mode = "changes", key: Sequence[str] | None = None) -> DataFrame:
        """The changes of the answer as a streaming DataFrame, to be started by whoever asks for it.

        A query started by hand takes its settings from the session, so this sets those that it needs there, to stay:
        the RocksDB state store and one shuffle partition per shard among them. `start` leaves the session as it was.
        """
        from sash.spark.session import apply_settings

        for name in self.planned.changing:
            if name.lower() in self.inputs.reread:
                raise CatalogError(f"relation {name} is read again while a query runs: start the query with start()")
        apply_settings(self.spark, self._width)
        return self._changes(mode, key, self.inputs)

    def start(
        self,
        sink: Sink = "console",
        mode: Mode = "changes",
        trigger: str | None = None,
        checkpoint: str | None = None,
        key: Sequence[str] | None = None,
        name: str | None = None,
        **options: Any,
    ) -> Running:
        """Run the query into a sink: a Spark format with its options, or a function of a batch and its number.

        A function is called once per batch with a DataFrame that is already computed; after a failure the last batch
        may come again under the same number. `mode` is `changes`, `net` or `upsert` (by `key`, or by the key that the
        query has). `trigger` is None, "available_now", "once" or a period such as "500 milliseconds".
        """
        from sash.spark.fingerprint import check_fingerprint
        from sash.spark.session import query_settings
        from sash.spark.sinks import start_query

        beating = self._beating
        ends = trigger in ("available_now", "once")
        if beating and ends:
            raise CatalogError(
                f"stream {beating[0]} has a heartbeat, so its input has no end: trigger {trigger!r} cannot be"
            )
        place, temporary = self._place(checkpoint, name)
        check_fingerprint(self.spark, place, self._fingerprint())
        inputs, tables = self._read_tables(place)
        with query_settings(self.spark, self._width, place):
            changes = self._changes(mode, key, inputs)
            written = {option: str(value) for option, value in options.items()}
            running = start_query(changes, sink, written, trigger, place, name, temporary)
        return running.reading(tables, again=not ends)

    @property
    def _beating(self) -> list[str]:
        """The streams, and relations with updates, that have a heartbeat."""
        sources = {name: self.inputs.streams.get(name.lower()) for name in self._flowing}
        return [name for name, source in sources.items() if source is not None and source.heartbeat is not None]

    @property
    def _flowing(self) -> tuple[str, ...]:
        return (*self.planned.streams, *self.planned.changing)

    def _read_tables(self, place: str) -> tuple[Inputs, dict[str, Reread]]:
        """The tables that are read again, read for the first time, and what the query reads with their updates in it."""
        from sash.spark.plan import Source
        from sash.spark.reread import READ_AT, READING, Reread

        streams, tables = dict(self.inputs.streams), {}
        for name in map(str.lower, self.planned.changing):
            if name in self.inputs.reread:
                tables[name] = Reread(self.spark, self.inputs.reread[name], f"{place.rstrip('/')}/relations/{name}")
                tables[name].refresh()
                time = READING if self.planned.streams else READ_AT
                streams[name] = Source(tables[name].updates(), time=time)
        return replace(self.inputs, streams=streams), tables

    @property
    def _width(self) -> int:
        """How many shards there is work for."""
        return 1 if all(stage.single for stage in self.planned.physical.stages) else self.shards

    def _changes(self, mode: Mode, key: Sequence[str] | None, inputs: Inputs) -> DataFrame:
        from sash.spark.output import MODES
        from sash.spark.plan import change_frame

        if mode not in MODES:
            raise CatalogError(f"unknown output mode {mode!r}; use one of {', '.join(MODES)}")
        positions = self._key(key, needed=mode == "upsert")
        return change_frame(self.planned.physical, self.schema, inputs, self._width, mode, positions)

    def _key(self, names: Sequence[str] | None, *, needed: bool) -> tuple[int, ...] | None:
        """The columns that tell the answer's rows apart, as the user names them or as the plan knows them."""
        if names is None or not needed:
            known = sorted(keys(self.planned.optimized), key=lambda key: (len(key), sorted(key)))
            if needed and not known:
                raise CatalogError("upsert needs rows with a key: select all GROUP BY columns, or use mode='net'")
            return tuple(sorted(known[0])) if known else None
        columns = [field.name for field in self.schema]
        missing = [name for name in names if name not in columns]
        if missing:
            raise CatalogError(f"key column {missing[0]!r} is not in the answer; it has {', '.join(columns)}")
        return tuple(columns.index(name) for name in names)

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
            "shards": self.shards,
            "streams": list(streams),
            "relations": list(self.planned.changing),
            "heartbeats": self._beating,
        }
