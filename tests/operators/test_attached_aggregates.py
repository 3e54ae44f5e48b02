"""Aggregates whose operator is made anew on the same memory for every batch, as Spark's workers do."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sash.operators.aggregate import Aggregate
from sash.operators.base import Edge, Expiry
from sash.plan.expressions import USER, AggregateCall, AggregateDetail, Column
from sash.plan.user_code import UserCode
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from tests.test_user_code import Listed, Merged, WeightedMean

DTYPES = (pa.int64(), pa.int64(), pa.float64(), pa.string())
K, V, X, W = (Column(index, name, dtype) for index, (name, dtype) in enumerate(zip("kvxw", DTYPES, strict=True)))


def user(name: str, code: Any, *arguments: Column) -> AggregateCall:
    dtype = pa.float64() if code is WeightedMean else pa.string()
    return AggregateCall(USER, arguments, dtype, detail=AggregateDetail(user=UserCode.of(name, "1", dtype, code)))


CALLS = (
    AggregateCall("corr", (V, X), pa.float64()),
    AggregateCall("kurtosis", (X,), pa.float64(), distinct=True),
    AggregateCall("bit_or", (V,), pa.int64()),
    AggregateCall("mode", (W,), pa.string()),
    AggregateCall("percentile_disc", (X,), pa.float64(), parameter=0.4, detail=AggregateDetail(descending=True)),
    AggregateCall("listagg", (W,), pa.string(), distinct=True, detail=AggregateDetail(separator=b",")),
    AggregateCall("collect_list", (V,), pa.list_(pa.int64())),
    AggregateCall("percentile", (X, V), pa.float64(), parameter=0.5),
    user("listed", Listed, V),
    user("merged", Merged, W),
    user("mean", WeightedMean, V, V),
)


def batches(expiry: Expiry, seed: int) -> list[tuple[ChangeBatch, int]]:
    generator = random.Random(seed)
    made = []
    for start in range(0, 60, 6):
        ts = np.array(sorted(generator.randrange(start, start + 6) for _ in range(8)))
        exp = ts + 13 if expiry == "fifo" else ts + np.array([generator.randrange(1, 20) for _ in ts])
        columns = [
            pa.array([generator.randrange(2) for _ in ts]),
            pa.array([generator.choice([None, 1, 2, 5]) for _ in ts], pa.int64()),
            pa.array([generator.choice([None, 0.5, 1e9, -3.0]) for _ in ts], pa.float64()),
            pa.array([generator.choice([None, "a", "b", "cc"]) for _ in ts], pa.string()),
        ]
        made.append((ChangeBatch.stamped(ts, exp, columns), start + 6))
    return [*made, (ChangeBatch.empty(DTYPES), 100)]


@pytest.mark.parametrize("expiry", ["fifo", "calendar"])
def test_a_new_operator_on_the_same_memory_continues(expiry: Expiry) -> None:
    def operator(memory: HeapMemory) -> Aggregate:
        return Aggregate(memory, (Edge(DTYPES, expiry),), (0,), CALLS, timed=True)

    memory = HeapMemory()
    lasting = operator(HeapMemory())
    seen = 0
    for batch, clock in batches(expiry, 5):
        one, two = lasting.process([batch], clock), operator(memory).process([batch], clock)
        assert one.ts.tolist() == two.ts.tolist()
        assert one.sign.tolist() == two.sign.tolist()
        assert [column.to_pylist() for column in one.columns] == [column.to_pylist() for column in two.columns]
        seen += len(one)
    assert seen > 100
    assert operator(memory).state_rows == 0
