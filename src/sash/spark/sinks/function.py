"""Sinks that are not a system of their own: a user's function, and the store of a kept window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sash.plan.options import Mode
from sash.spark.sinks.base import Guarantee, OutputSpec, Sink
from sash.spark.sinks.batch import Batch, WriteBatch, WriteFrame


class FunctionSink(Sink):
    """Calls a function with every batch, as a DataFrame, and its number."""

    name = "function"
    needed = ()
    guarantee: Guarantee = "at least once"
    needs_empty_batches = True

    def __init__(self, function: WriteFrame, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options or {})
        self.function = function

    def is_like(self, other: Sink) -> bool:
        return super().is_like(other) and isinstance(other, FunctionSink) and self.function == other.function

    def accepts(self, option: str) -> bool:
        return True

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        return super().mode(chosen or "changes", keyed)

    def check(self, output: OutputSpec) -> None:
        """Refuse nothing: the function may name the columns as it likes."""

    def open(self, output: OutputSpec) -> WriteBatch:
        def write(batch: Batch, number: int) -> None:
            self.function(batch.frame, number)

        return write


class WindowSink(FunctionSink):
    """Applies every batch to the store of a kept window, which records the numbers of its batches."""

    name = "window"
    guarantee: Guarantee = "exactly once"

    def __init__(self, write: WriteBatch | None = None) -> None:
        Sink.__init__(self, {})
        self._write = write

    def is_like(self, other: Sink) -> bool:
        return Sink.is_like(self, other)

    def open(self, output: OutputSpec) -> WriteBatch:
        assert self._write is not None
        return self._write
