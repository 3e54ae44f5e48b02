"""The changes of an answer as a streaming table, and the answer as a materialized view: `spark-pipelines run`."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import sash

HOME = os.environ.get("SASH_PIPELINE", "/tmp/sash-pipeline")  # noqa: S108  (that of spark-pipeline.yml)

spark = SparkSession.active()
engine = sash.Engine(spark, shards=2)
sales = spark.readStream.schema("ts timestamp, item_id int, price double").csv(f"{HOME}/sales")
engine.stream("sales", sales)
query = engine.sql("SELECT item_id, COUNT(*) AS n, SUM(price) AS total FROM sales [RANGE 1 HOUR] GROUP BY item_id")

# Spark plans the frame here, which it does not do within the function of a flow.
changes = query.changes(configure=False, guard=f"{HOME}/storage/sash/total_changes")


@dp.table(name="total_changes", spark_conf=query.settings())
def total_changes() -> DataFrame:
    """Every change of the answer, with `_op` and `_ts`."""
    return changes


@dp.materialized_view(name="totals")
def totals() -> DataFrame:
    """The answer: at one instant an item's old row is retracted and its new one added, so the order of the two decides."""
    last = "max_by(struct(_op, n, total), struct(_ts, _op = '+')) AS last"
    rows = spark.read.table("total_changes").groupBy("item_id").agg(sf.expr(last))
    return rows.where("last._op = '+'").selectExpr("item_id", "last.n", "last.total")
