"""What shards do, told once, with those that do it."""

from __future__ import annotations

from sash.runtime.in_force import over_shards

OLD, NEW = ("order a, b, c", "as planned"), ("order c, a, b", "since 5 (change 1): c had 9 times its rows/s")


def test_shards_that_agree_are_told_together() -> None:
    (only,) = over_shards({0: OLD})
    assert only.text == "in force in the only shard: order a, b, c, as planned"
    (both,) = over_shards({1: OLD, 0: OLD})
    assert both.text == "in force in all 2 shards: order a, b, c, as planned"
    assert both.as_json == {"what": "order a, b, c", "why": "as planned", "shards": [0, 1]}


def test_shards_that_differ_are_told_apart() -> None:
    assert [found.text for found in over_shards({0: OLD, 1: NEW, 2: OLD})] == [
        "in force in shards 0, 2: order a, b, c, as planned",
        f"in force in shard 1: order c, a, b, {NEW[1]}",
    ]


def test_of_several_reasons_the_first_shards_is_told() -> None:
    (found,) = over_shards({3: ("order c, a, b", "since 7"), 1: ("order c, a, b", "since 5")})
    assert found.text == "in force in all 2 shards: order c, a, b, in shard 1 since 5"
