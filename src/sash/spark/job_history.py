"""Keeps the history of a job: what its outputs give to their sinks, batch by batch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pyarrow as pa

from sash.history.answers import in_order
from sash.history.limits import HistoryLimits
from sash.history.outputs import KeptQuery
from sash.history.writer import HistoryWriter
from sash.plan.types import type_name
from sash.spark.sinks.function import WindowSink

if TYPE_CHECKING:
    from sash.spark.job_output import JobOutput
    from sash.spark.sinks.base import OutputSpec
    from sash.spark.sinks.batch import Batch

_NO_CHANGES = pa.table({})
_MOST_ROWS = 200_000
"""The largest batch of a query that is brought to the driver for its history if its sink writes it from Spark; of larger ones
their net effect is."""
_PATIENCE = 1.0
"""For how many seconds at most the end of a batch waits until the history has it."""

Record = Callable[["Batch", int], None]
"""Keeps the changes that a sink got, with the number of their batch."""


def history_folder(run_folder: Path, job: str) -> Path:
    """The folder of a job's history."""
    return run_folder / "history" / quote(job, safe="")


class JobHistory:
    """The history of one run of a job. It is open once it has been told of its queries."""

    def __init__(self, folder: Path, limits: HistoryLimits) -> None:
        self._writer = HistoryWriter(folder, limits)

    def open(self, outputs: Iterable[tuple[str, OutputSpec]], *, fresh: bool, switched: int | None) -> None:
        """Continue the history of the last run; `switched` is the number of a change of the job that was made just now."""
        self._writer.open([_kept(*one) for one in outputs], fresh=fresh, switched=switched)

    def set_outputs(self, outputs: Iterable[tuple[str, OutputSpec]]) -> None:
        """Note that queries were added or removed."""
        self._writer.set_queries([_kept(*one) for one in outputs])

    def record(self, query: str, spec: OutputSpec) -> Record:
        """What an output calls with the changes that its sink got."""

        def keep(batch: Batch, number: int) -> None:
            small = batch.small or batch.rows <= _MOST_ROWS
            table = batch.table if small else batch.net_effect(spec.mode, spec.key, _MOST_ROWS)
            ordered = None if table is None else in_order(table)
            self._writer.add(query, number, ordered, batch.clock, net=not small)

        return keep

    def advance(self, query: str, number: int, clock: int | None) -> None:
        """Note the clock of a query that has no changes in a batch."""
        self._writer.add(query, number, _NO_CHANGES, clock)

    def begin(self, number: int) -> None:
        """Begin or repeat a batch."""
        self._writer.begin(number)

    def end(self, number: int) -> None:
        """Write a batch, whether it succeeded or not, before Spark commits it."""
        self._writer.end(number)
        self.settle()

    def settle(self) -> None:
        """Wait until what was recorded is written, but not for long."""
        self._writer.settle(_PATIENCE)

    def commit(self, number: int, clocks: Mapping[str, int] | None = None) -> None:
        """Publish the batches up to a number, with the clocks of queries that the last of them did not know."""
        self._writer.commit(number, clocks)

    def close(self) -> None:
        """End the history."""
        self._writer.close()


def kept_outputs(outputs: Iterable[JobOutput]) -> list[tuple[str, OutputSpec]]:
    """The outputs whose changes are kept: those of queries."""
    return [(output.name, output.spec) for output in outputs if not isinstance(output.sink, WindowSink)]


def _kept(name: str, spec: OutputSpec) -> KeptQuery:
    columns = tuple((field.name, type_name(field.dtype)) for field in spec.schema)
    return KeptQuery(name, spec.mode, spec.key, columns, str(spec.time))
