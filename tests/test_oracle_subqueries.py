"""Random queries with subqueries against the oracle, at every instant, under every strategy and however they are cut."""

from __future__ import annotations

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sash.plan.options import STRATEGIES
from tests.oracle.case import Case
from tests.oracle.check import assert_oracle
from tests.oracle.random_cases import nested_cases

quick = settings(max_examples=40, phases=(Phase.explicit, Phase.generate))
RIGHT = tuple(name for name in STRATEGIES if name != "clock-triggered")


@quick
@given(case=nested_cases(), shards=st.sampled_from((1, 2, 3)), batch=st.sampled_from((None, 1, 2, 5)))
def test_random_subqueries(case: Case, shards: int, batch: int | None) -> None:
    assert_oracle(case, shards=shards, batch=batch)


@quick
@given(case=nested_cases(), strategy=st.sampled_from(RIGHT), shards=st.sampled_from((1, 2)))
def test_random_subqueries_by_strategy(case: Case, strategy: str, shards: int) -> None:
    assert_oracle(case, strategy=strategy, shards=shards)
