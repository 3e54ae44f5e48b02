"""A shard works on a batch in slices of time; how thick they are makes no difference."""

from __future__ import annotations

import pytest

from sash.runtime import shard
from tests.oracle.cases import BY_NAME
from tests.oracle.check import assert_oracle, run

NAMES = (
    "slide_aggregate",
    "first_last",
    "global_of_nothing",
    "distinct_rows",
    "top_by_two",
    "three_way_two_attributes",
    "full_theta_too",
    "anti_keeps_duplicates",
    "except_all_rows",
    "aggregate_over_aggregate",
    "unbounded_distinct",
    "relation_amid_the_chain",
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rows", [1, 3])
def test_slices_of_a_batch_give_the_same_changes(name: str, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(BY_NAME[name], shards=1)
    monkeypatch.setattr(shard, "SLICE", rows)
    sliced = assert_oracle(BY_NAME[name], shards=1)
    assert sorted(map(repr, sliced.changes)) == sorted(map(repr, whole.changes))
