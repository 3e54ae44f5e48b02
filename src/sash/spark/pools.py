"""Spark's scheduling pools: the share of the cores that the jobs of a thread get.

The embedded session sets the allocation file. In a user's session that is not FAIR, or that has no local properties
(Connect), setting a pool has no effect.
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
"""The settings of a session with these pools."""


@contextmanager
def in_pool(spark: SparkSession, pool: str) -> Iterator[None]:
    """Run the jobs and streaming queries that this thread starts in a pool."""
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
        context.setLocalProperty(_POOL, cast(str, before))  # None removes the property


def pool_of(priority: int) -> str:
    """The pool for reads of a query with this priority."""
    return URGENT if priority > 0 else BACKGROUND
