"""Every strategy against the oracle: the same answers at every instant, whoever hears the clock."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from sash.plan.options import STRATEGIES
from tests.oracle.case import Case
from tests.oracle.cases import CASES
from tests.oracle.check import Result, assert_oracle
from tests.oracle.random_cases import cases

quick = settings(max_examples=120, phases=(Phase.explicit, Phase.generate))

RIGHT = tuple(name for name in STRATEGIES if name not in ("auto", "update-pattern-aware", "clock-triggered"))
ON_TIME = tuple(name for name in RIGHT if name not in ("input-triggered", "piggyback"))
CUTS = ((1, None), (2, 1), (5, 3), (3, 2))


@pytest.mark.parametrize(
    ("strategy", "shards", "batch", "case"),
    [
        (strategy, *CUTS[(place + number) % len(CUTS)], case)
        for place, case in enumerate(CASES)
        for number, strategy in enumerate(RIGHT)
        if strategy == "negative-tuple" or (place + number) % 4 == 0
        if strategy != "re-evaluation" or not case.endless
    ],
    ids=lambda value: value.name if isinstance(value, Case) else str(value),
)
def test_fixed_case(strategy: str, shards: int, batch: int | None, case: Case) -> None:
    result = assert_oracle(case, strategy=strategy, shards=shards, batch=batch)
    if strategy != "piggyback" or not case.name.startswith("now_"):  # no row, and no end of one, has that time
        assert_released(strategy, result)


@quick
@given(
    case=cases(depth=3),
    strategy=st.sampled_from(RIGHT),
    shards=st.sampled_from((1, 2, 3)),
    batch=st.sampled_from((None, 1, 2, 5)),
)
def test_random_query(case: Case, strategy: str, shards: int, batch: int | None) -> None:
    assert_released(strategy, assert_oracle(case, strategy=strategy, shards=shards, batch=batch))


def assert_released(strategy: str, result: Result) -> None:
    """On time, but for the strategies that wait for a row."""
    if strategy in ON_TIME:
        assert [change.released for change in result.changes] == [change.ts for change in result.changes]
    assert strategy == "input-triggered" or None not in [change.released for change in result.changes]
