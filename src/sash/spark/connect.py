"""Spark Connect: sessions without a JVM of their own. What needs one is refused by name.

The function that writes a batch is sent to the server and runs there, in a process of its own. So the sink is opened there,
by the first batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sash.errors import OptionError
from sash.spark.sinks.base import OutputSpec, Sink
from sash.spark.sinks.retry import Retries
from sash.spark.sinks.start import WriteFailure, compute_once

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.spark.sinks.batch import WriteBatch


def is_connect(spark: object) -> bool:
    """Whether it is a session of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def refuse_connect(spark: object, what: str) -> None:
    """Raise OptionError if the session is of Spark Connect."""
    if is_connect(spark):
        raise OptionError(
            f"{what} needs a session with a JVM of its own, which Spark Connect has not: use a classic session "
            "(SparkSession.builder.master(...)), or start queries with start()"
        )


class RemoteWriter:
    """Writes batches on the server of Spark Connect: it is pickled, and opens the sink when it gets the first batch."""

    def __init__(self, sink: Sink, output: OutputSpec, shown: str) -> None:
        self._sink = sink
        self._output = output
        self._shown = shown
        self._opened: WriteBatch | None = None

    def __call__(self, batch: DataFrame, number: int) -> None:
        """Write a batch."""
        retries = Retries(self._shown, self._sink.policy)
        if self._opened is None:
            self._opened = retries.run(lambda: self._sink.open(self._output), "connecting")
        compute_once(retries.writing(self._opened), WriteFailure())(batch, number)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None}
