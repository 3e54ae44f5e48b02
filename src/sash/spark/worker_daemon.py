"""The process from which Spark forks Python workers, with Sash and common compiled loops already loaded.

Spark's own daemon loads nothing, so that every worker would spend a second on it in its first task.
"""

from __future__ import annotations

import gc

import pyspark.sql.streaming.stateful_processor_api_client
import pyspark.sql.streaming.stateful_processor_util
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

import sash.spark.scatter
import sash.spark.stage  # noqa: F401
from sash.spark.sample import run_sample

if __name__ == "__main__":
    run_sample()
    gc.freeze()
    manager()
