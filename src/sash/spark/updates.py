"""Updates of a relation as Spark reads them: `_ts`, its columns c0 ... cn, the time once more, and `_sign`.

`_op` is '+' or '-'; a stream without such a column has nothing but '+', which replaces by key.
"""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame

from sash.physical.nodes import UpdateLeg
from sash.plan.catalog import OP
from sash.spark.legs import micros
from sash.spark.scatter import SIGN, TIME
from sash.spark.types import arrow_type
from sash.sql.render import quoted


def update_frame(leg: UpdateLeg, updates: DataFrame, time: str | None) -> DataFrame:
    """The updates, ready to be scattered."""
    assert time is not None
    moment = micros(quoted(time), update_time(updates, time))
    named = [f"{quoted(field.name)} AS c{index}" for index, field in enumerate(leg.relation.schema)]
    sign = f"CASE {OP} WHEN '+' THEN 1 WHEN '-' THEN -1 END" if OP in updates.columns else "1"
    made = f"{moment} AS c{len(named)}"
    return updates.selectExpr(f"{moment} AS {TIME}", *named, made, f"CAST({sign} AS TINYINT) AS {SIGN}")


def update_time(updates: DataFrame, time: str | None) -> pa.DataType:
    """The type of the updates' time column."""
    found = next(field for field in updates.schema.fields if field.name == time)
    return arrow_type(found.dataType)
