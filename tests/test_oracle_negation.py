"""EXCEPT ALL below joins against the oracle: however the joins learn that its rows end, and when that changes."""

from __future__ import annotations

from functools import partial
from importlib import import_module

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sash.operators import expiration_choice
from sash.operators.expiration_choice import ExpirationPlan
from sash.plan.options import STRATEGIES
from sash.planning import plan_query
from tests.oracle.case import Case
from tests.oracle.check import assert_oracle
from tests.oracle.random_cases import negated_cases, sent_cases

quick = settings(max_examples=150, phases=(Phase.explicit, Phase.generate))

RIGHT = tuple(name for name in STRATEGIES if name not in ("auto", "clock-triggered"))
BATCHES = st.sampled_from((None, 1, 2, 3, 5))
HELD = ("pull_up_negation", "push_down_negation")
"""The rules that would put the joins below."""


@quick
@given(
    case=negated_cases(), first=st.booleans(), steady=st.booleans(), shards=st.sampled_from((1, 1, 3)), batch=BATCHES
)
def test_whichever_way_ends_are_told(case: Case, first: bool, steady: bool, shards: int, batch: int | None) -> None:
    """By calendar, by negative tuples, or one way after the other with every batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("sash.testing.replay"), "plan_query", partial(plan_query, disable=frozenset(HELD)))
        patch.setattr(ExpirationPlan, "calendar", first)
        patch.setattr(expiration_choice, "PATIENCE", 10**9 if steady else 1)
        patch.setattr(expiration_choice, "WORTH", 0.0)
        assert_oracle(case, shards=shards, batch=batch)


@settings(max_examples=100, phases=(Phase.explicit, Phase.generate))
@given(case=sent_cases(), steady=st.booleans(), shards=st.sampled_from((1, 2, 3)), batch=BATCHES)
def test_whichever_way_rows_are_sent_to_another_stage(case: Case, steady: bool, shards: int, batch: int | None) -> None:
    """By negative tuples, or one way after the other with every batch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("sash.testing.replay"), "plan_query", partial(plan_query, disable=frozenset(HELD)))
        patch.setattr(expiration_choice, "PATIENCE", 10**9 if steady else 1)
        patch.setattr(expiration_choice, "WORTH", 0.0)
        assert_oracle(case, shards=shards, batch=batch)


@quick
@given(case=negated_cases(), strategy=st.sampled_from(RIGHT), shards=st.sampled_from((1, 2)), batch=BATCHES)
def test_every_strategy(case: Case, strategy: str, shards: int, batch: int | None) -> None:
    assert_oracle(case, strategy=strategy, shards=shards, batch=batch)
