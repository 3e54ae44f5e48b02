"""The current choices of shards, grouped."""

from __future__ import annotations

from sash.runtime.current_choice import over_shards

OLD, NEW = ("order a, b, c", "as planned"), ("order c, a, b", "since 5 (change 1): c had 9 times its rows/s")


def test_shards_that_agree_are_grouped() -> None:
    (only,) = over_shards({0: OLD})
    assert only.text == "now in the only shard: order a, b, c, as planned"
    (both,) = over_shards({1: OLD, 0: OLD})
    assert both.text == "now in all 2 shards: order a, b, c, as planned"
    assert both.as_json == {"what": "order a, b, c", "why": "as planned", "shards": [0, 1]}


def test_shards_that_differ_are_listed() -> None:
    assert [found.text for found in over_shards({0: OLD, 1: NEW, 2: OLD})] == [
        "now in shards 0, 2: order a, b, c, as planned",
        f"now in shard 1: order c, a, b, {NEW[1]}",
    ]


def test_of_several_reasons_the_first_shards_is_shown() -> None:
    (found,) = over_shards({3: ("order c, a, b", "since 7"), 1: ("order c, a, b", "since 5")})
    assert found.text == "now in all 2 shards: order c, a, b, in shard 1 since 5"
