"""The answer kept by Spark: an auto-CDC flow merges the changes into the table SASH_PIPELINE_TABLE by key.

The table must be one that MERGE INTO supports, such as a table of an Iceberg catalog. Without the variable there is no flow.
"""

from __future__ import annotations

import os

from pyspark import pipelines as dp

TARGET = os.environ.get("SASH_PIPELINE_TABLE")

if TARGET is not None:
    dp.create_streaming_table(TARGET)
    dp.create_auto_cdc_flow(
        target=TARGET,
        source="total_changes",
        keys=["item_id"],
        # At one instant the old row of a key is retracted and its new one added: the second is the later. It is a number,
        # since a struct as sequence_by fails in Spark 4.3 ("cannot cast STRUCT").
        sequence_by="2 * unix_micros(_ts) + if(_op = '+', 1, 0)",
        apply_as_deletes="_op = '-'",
        except_column_list=["_op", "_ts"],
    )
