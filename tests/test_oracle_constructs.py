"""Random queries with first rows per group, grouping sets, FILTER, frames, generators and nested keys against the oracle."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sash.plan.options import STRATEGIES
from tests.oracle.case import Case
from tests.oracle.check import assert_oracle
from tests.oracle.random_cases import construct_cases

quick = settings(max_examples=60, phases=(Phase.explicit, Phase.generate))
RIGHT = tuple(name for name in STRATEGIES if name != "clock-triggered")


@quick
@given(case=construct_cases(), shards=st.sampled_from((1, 2, 3)), batch=st.sampled_from((None, 1, 2, 5)))
def test_random_constructs(case: Case, shards: int, batch: int | None) -> None:
    assert_oracle(case, shards=shards, batch=batch)


@quick
@given(case=construct_cases(), strategy=st.sampled_from(RIGHT), shards=st.sampled_from((1, 2)))
def test_random_constructs_by_strategy(case: Case, strategy: str, shards: int) -> None:
    assert_oracle(case, strategy=strategy, shards=shards)
