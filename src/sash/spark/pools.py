"""Spark's scheduling pools: which share of the cores the jobs of a thread get.

The allocation file is set when the embedded session is made; in a session of the user's own that is not FAIR, or that
has no local properties (Connect), setting a pool changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from pyspark.sql import SparkSession

_POOL = "spark.scheduler.pool"
URGENT, STREAMS, BACKGROUND = "urgent", "streams", "background"

FAIR = {
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": Path(__file__).with_name("pools.xml").as_uri(),
}
"""The settings of a session that has these pools."""


@contextmanager
def in_pool(spark: SparkSession, pool: str) -> Iterator[None]:
    """Put the jobs and streaming queries that this thread starts meanwhile into a pool."""
    try:
        context = spark.sparkContext
    except Exception:  # noqa: BLE001  (a Connect session has no Spark context, whatever it raises)
        yield
        return
    before = context.getLocalProperty(_POOL)
    context.setLocalProperty(_POOL, pool)
    try:
        yield
    finally:
        context.setLocalProperty(_POOL, cast(str, before))  # None takes the property away


def pool_of(priority: int) -> str:
    """The pool for reads of a query with that priority."""
    return URGENT if priority > 0 else BACKGROUND
