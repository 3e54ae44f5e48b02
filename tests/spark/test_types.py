from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from sash.plan.sql_types import VARIANT
from sash.plan.types import STRING, Field
from sash.spark.sources.declared import struct
from sash.spark.types import expression_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_what_spark_refuses_is_not_logged(spark: SparkSession, capfd: pytest.CaptureFixture[str]) -> None:
    frame = spark.createDataFrame([], struct((Field("k", STRING),)))
    assert expression_type(frame, "summ(k)") is None
    assert expression_type(frame, "soundex(k)") == STRING
    assert expression_type(frame, "split(k, ',')") == pa.list_(STRING)
    assert expression_type(frame, "parse_json(k)") == VARIANT
    assert expression_type(frame, "make_interval(1)") == "interval"
    assert capfd.readouterr().err == ""
