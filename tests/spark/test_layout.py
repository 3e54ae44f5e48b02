"""Layouts: which rows reach a stage in memory, and which in messages."""

from __future__ import annotations

import pytest

from sash.physical.channels import StageRows
from sash.spark.layout import layout_of
from tests.physical.test_plan_job import PAIRS, planned

HIGHEST = "SELECT store_id, MAX(item_id) AS item_id FROM returns [RANGE 1 MINUTE] GROUP BY store_id"
LATER = f"SELECT p.store_id, p.item_id FROM ({PAIRS}) AS p JOIN ({HIGHEST}) AS h ON p.item_id = h.item_id"


@pytest.mark.parametrize("shards", [1, 3])
def test_a_local_reader_of_a_later_level_gets_messages(shards: int) -> None:
    """The join reads the DISTINCT in the same shard, but runs a level later, since it reads the aggregate by another key."""
    layout = layout_of(planned(PAIRS, LATER).physical, shards, share=True)
    (channel,) = (one for one in layout.channels.channels if isinstance(one.source, StageRows) and one.source.local)
    assert layout.levels_of(channel) == {1}
    assert layout.sent_to(channel) == [1]
    assert not any(layout.in_memory(channel, level) for level in range(layout.height))
