"""The last stage's changes as Spark rows: columns are not converted, and batch metrics travel beside them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Field,
)
from sash.spark.gather import Gather
from sash.state.changes import ChangeBatch
from sash.time import FOREVER

_NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)
_ZONED = _NOON.replace(tzinfo=datetime.UTC)
_VALUES = {
    BOOLEAN: True, TINYINT: -8, SMALLINT: 16, INT: -32, BIGINT: 2**62 + 1, FLOAT: 0.5, DOUBLE: 0.1, STRING: "ä",
    BINARY: b"\x00\xff", DATE: _NOON.date(), TIMESTAMP: _ZONED, TIMESTAMP_NTZ: _NOON, NULL: None,
    pa.decimal128(38, 2): Decimal("123456789012345678901234567890123456.78"),
}  # fmt: skip
_SCHEMA = tuple(Field(f"column {number}", dtype) for number, dtype in enumerate(_VALUES))


def _changes() -> ChangeBatch:
    columns = tuple(pa.array([value, None], dtype) for dtype, value in _VALUES.items())
    times = np.array([1_709_208_000_123_456, 1_709_208_000_123_457])
    return ChangeBatch(times, np.full(2, FOREVER), np.array([1, -1], np.int8), columns)


def test_columns_are_sent_unconverted_and_times_as_integers() -> None:
    gather = Gather(_SCHEMA, TIMESTAMP)
    frame = gather.rows(_changes())
    sent = [(field.name, field.dataType.simpleString(), field.nullable) for field in gather.struct.fields]
    assert sent[:4] == [
        ("sign", "tinyint", False),
        ("ts", "bigint", False),
        ("c0", "boolean", True),
        ("c1", "tinyint", True),
    ]
    arrays = {name: pa.array(frame[name]) for name in frame.columns}
    for index, dtype in enumerate(_VALUES):
        expected = {TIMESTAMP: BIGINT, NULL: BOOLEAN}.get(dtype, dtype)
        assert arrays[f"c{index}"].type == expected, dtype


def test_batch_metrics_have_the_same_columns() -> None:
    gather = Gather(_SCHEMA, BIGINT)
    metrics = gather.metrics(["{}", '{"late": 1}'])
    assert list(metrics.columns) == list(gather.rows(_changes()).columns)
    assert set(metrics["sign"]) == {0}
    assert len(metrics) == 4  # thirteen bytes and two newlines, in words of four bytes


@pytest.mark.spark
@pytest.mark.parametrize("time", [TIMESTAMP, TIMESTAMP_NTZ, BIGINT])
def test_the_metrics_of_all_tasks_are_observed_unchanged(spark: SparkSession, time: pa.DataType) -> None:
    gather = Gather(_SCHEMA, time)
    first, second, third = '{"rows_out": 2}', '{"current_choices": "ä, ö"}', "{}"

    def made(frames: object) -> object:
        for frame in frames:  # type: ignore[attr-defined]
            yield gather.rows(_changes())
            yield gather.metrics([first, second] if frame["id"][0] else [third])
            yield gather.metrics([third])

    packed = spark.range(0, 2, 1, 2).mapInPandas(made, gather.struct)  # type: ignore[arg-type]
    assert sorted(_observed(gather, packed)) == sorted([first, second, third, third, third])


@pytest.mark.spark
def test_without_batch_metrics_the_observed_list_is_empty(spark: SparkSession) -> None:
    gather = Gather(_SCHEMA, BIGINT)

    def made(_: object) -> object:
        yield gather.rows(_changes())

    assert _observed(gather, spark.range(1).coalesce(1).mapInPandas(made, gather.struct)) == []  # type: ignore[arg-type]


def _observed(gather: Gather, packed: DataFrame) -> list[str]:
    """The list that Spark observed while the rows were read."""
    typed = gather.typed(packed)
    assert typed.collect()
    metrics = typed._jdf.queryExecution().observedMetrics()  # type: ignore[attr-defined]
    return list(metrics.apply("sash").getList(0))


@pytest.mark.spark
@pytest.mark.parametrize("time", [TIMESTAMP, TIMESTAMP_NTZ, BIGINT])
def test_every_type_arrives(spark: SparkSession, time: pa.DataType) -> None:
    gather = Gather(_SCHEMA, time)

    def made(_: object) -> object:
        yield gather.rows(_changes())
        yield gather.metrics(['{"rows_out": 2}'])

    packed = spark.range(1).coalesce(1).mapInPandas(made, gather.struct)  # type: ignore[arg-type]
    found = gather.typed(packed).toArrow()
    assert found.schema.names == ["_op", "_ts", *(field.name for field in _SCHEMA)]
    assert [field.type for field in found.schema][1:] == [time, *_VALUES]
    first, second = sorted(found.to_pylist(), key=lambda row: str(row["_op"]))
    expected = {TIMESTAMP: _ZONED, TIMESTAMP_NTZ: _NOON, BIGINT: 1_709_208_000_123_456}[time]
    assert (first["_op"], first["_ts"], second["_op"]) == ("+", expected, "-")
    assert [first[field.name] for field in _SCHEMA] == list(_VALUES.values())
    assert not any(second[field.name] for field in _SCHEMA)
