"""Random queries with any aggregate, and over windows of time and sessions, against the oracle."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sash.plan.options import STRATEGIES
from sash.sql.aggregates import AGGREGATES as NAMES
from tests.oracle.case import Case
from tests.oracle.check import assert_oracle
from tests.oracle.random_aggregates import AGGREGATES, aggregate_cases
from tests.oracle.random_time_windows import time_window_cases

quick = settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
RIGHT = tuple(name for name in STRATEGIES if name not in ("clock-triggered", "re-evaluation"))
OPAQUE = {
    *("bitmap_and_agg", "bitmap_construct_agg", "bitmap_or_agg", "count_min_sketch", "hll_sketch_agg", "hll_union_agg"),
    *("theta_intersection_agg", "theta_sketch_agg", "theta_union_agg", "schema_of_variant_agg"),
    *(f"kll_{what}_agg_{kind}" for what in ("sketch", "merge") for kind in ("bigint", "float", "double")),
}
"""Aggregates whose results are of formats that DuckDB does not have."""
ELSEWHERE = {"approx_top_k", "collect_set", "histogram_numeric"}
"""Aggregates whose results have no order, or are estimates."""


@quick
@given(
    case=st.one_of(aggregate_cases(), time_window_cases()),
    strategy=st.sampled_from(RIGHT),
    shards=st.sampled_from((1, 2, 3)),
    batch=st.sampled_from((None, 1, 2, 5)),
)
def test_random_aggregates_and_windows_of_time(case: Case, strategy: str, shards: int, batch: int | None) -> None:
    assert_oracle(case, strategy=strategy, shards=shards, batch=batch)


def test_every_aggregate_is_drawn() -> None:
    called = {re.match(r"\w+", call).group().lower() for call in AGGREGATES}  # type: ignore[union-attr]
    assert set(NAMES.values()) - {NAMES[name] for name in called} == OPAQUE | ELSEWHERE


@pytest.mark.parametrize("call", AGGREGATES)
def test_no_aggregate_is_constant(call: str) -> None:
    """Each has at least two results over a few rows: otherwise agreement would show little."""
    from sash.testing import replay

    values = ((2, "b", 0.5), (1, "a", 2.5), (3, "c", -1.0), (3, "a", 4.0))
    rows = [{"ts": at, "k": 1, "g": g, "v": v, "x": x} for at, (v, g, x) in enumerate(values)]
    schema = "ts BIGINT, k BIGINT, g STRING, v BIGINT, x DOUBLE"
    result = replay(
        f"SELECT {call} AS a FROM s [RANGE 9 SECONDS]", {"s": rows}, unit="s", schemas={"s": schema}, until=11
    )
    assert len({str(result.at(instant)) for instant in range(12)}) > 1
