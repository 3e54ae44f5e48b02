"""Random queries on random streams against the oracle."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle.case import Case
from tests.oracle.check import assert_oracle, until_of
from tests.oracle.random_cases import cases

quick = settings(max_examples=150)
brief = settings(quick, max_examples=40)

SHARDS = st.sampled_from((1, 2, 3, 5))
BATCHES = st.sampled_from((None, 1, 2, 3, 5))


@quick
@given(case=cases(depth=3), shards=SHARDS, batch=BATCHES)
def test_random_query(case: Case, shards: int, batch: int | None) -> None:
    assert_oracle(case, shards=shards, batch=batch)


@brief
@given(case=cases(depth=1, max_rows=12), shards=SHARDS, batch=BATCHES)
def test_random_operator_alone(case: Case, shards: int, batch: int | None) -> None:
    assert_oracle(case, shards=shards, batch=batch)


@brief
@given(case=cases(depth=2), random=st.randoms(use_true_random=False), shards=SHARDS)
def test_order_within_a_batch_does_not_matter(case: Case, random: Random, shards: int) -> None:
    streams = {name: list(rows) for name, rows in case.streams.items()}
    for rows in streams.values():
        random.shuffle(rows)
    assert_oracle(replace(case, streams=streams), shards=shards, batch=None)


@brief
@given(case=cases(depth=2), random=st.randoms(use_true_random=False), batch=BATCHES)
def test_slack_puts_late_rows_in_their_place(case: Case, random: Random, batch: int | None) -> None:
    streams = {name: list(rows) for name, rows in case.streams.items()}
    for rows in streams.values():
        random.shuffle(rows)
    assert_oracle(replace(case, streams=streams), slack=until_of(case), batch=batch)
