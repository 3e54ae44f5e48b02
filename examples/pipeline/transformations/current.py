"""The answer kept by Spark's own change data capture: a flow that merges the changes into a table by key.

It needs a target that MERGE INTO supports, such as a table of an Iceberg catalog; without SASH_PIPELINE_TABLE it is left out.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp

TARGET = os.environ.get("SASH_PIPELINE_TABLE")

if TARGET:
    dp.create_streaming_table(TARGET)
    dp.create_auto_cdc_flow(
        target=TARGET,
        source="total_changes",
        keys=["item_id"],
        # At one instant the old row of a key is retracted and its new one added: the second is the later. (Spark 4.3
        # cannot order by struct(_ts, _op = '+') here.)
        sequence_by="2 * unix_micros(_ts) + if(_op = '+', 1, 0)",
        apply_as_deletes="_op = '-'",
        except_column_list=["_op", "_ts"],
    )
