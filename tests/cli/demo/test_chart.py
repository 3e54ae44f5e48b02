from __future__ import annotations

from sash.cli.demo.chart import columns, sampled


def test_a_value_holds_until_the_next() -> None:
    assert sampled([(1, 5.0), (3, 7.0)], 0, 4, 4) == [5.0, 5.0, 7.0, 7.0]
    assert sampled([(2, 5.0)], 0, 4, 4) == [0.0, 5.0, 5.0, 5.0]
    assert sampled([], 0, 4, 2) == [0.0, 0.0]


def test_the_highest_value_fills_the_height() -> None:
    assert columns([1, 4, 4, 4], 4, 2) == [" ███", "▄███"]
    assert columns([0, 0, 0], 0, 1) == ["   "]
    assert columns([8, 1, 1, 1], 8, 1) == ["█▁▁▁"]
