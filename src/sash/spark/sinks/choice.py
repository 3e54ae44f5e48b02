"""The sink that a user names: one of Sash's, a function, or, in a job, a format of Spark's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sash.arguments import check_text
from sash.spark.sinks import SINKS
from sash.spark.sinks.base import Sink
from sash.spark.sinks.formats import FormatSink
from sash.spark.sinks.function import FunctionSink


def own_sink(sink: str | Callable[..., None] | Sink, options: Mapping[str, Any]) -> Sink | None:
    """The sink of Sash's, or the function; None for a format of Spark's."""
    if isinstance(sink, Sink):
        return sink
    if callable(sink):
        return FunctionSink(sink, options)
    check_text("sink", sink)
    return SINKS[sink](options) if sink in SINKS else None


def job_sink(sink: str | Callable[..., None] | Sink, options: Mapping[str, Any], query: str) -> Sink:
    """The sink of a query in a job, where Spark's formats are written batch by batch."""
    return own_sink(sink, options) or FormatSink(str(sink), options, query)
