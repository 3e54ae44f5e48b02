"""The start of a query as a source: one row, in a file of its folder, whose time is past all others.

Stages over constants alone read no stream, so no batch of Spark's would reach them. This row makes them run, once: Spark's
record of the files that it has read says whether they have, so a batch that is repeated repeats it.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from sash.spark.folders import Folder
from sash.spark.scatter import TIME
from sash.spark.sources.declared import FILES_OF_ANY_AGE
from sash.time import FOREVER

_FOLDER, _FILE = "start", "0.parquet"


def start_row(spark: SparkSession, home: str) -> DataFrame:
    """A stream of the one row, whose file is made in the folder of the query or job if it is not there."""
    folder = Folder(spark, home).inside(_FOLDER)
    if not folder.exists(_FILE):
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({TIME: pa.array([FOREVER], pa.int64())}), sink)
        # Spark does not see the draft, so it never sees a part of the file.
        folder.write_bytes(f"_{_FILE}", bytes(sink.getvalue().to_pybytes()))
        folder.rename(f"_{_FILE}", _FILE)
    reader = spark.readStream.schema(f"{TIME} long").options(**FILES_OF_ANY_AGE)
    return reader.parquet(folder.location)
