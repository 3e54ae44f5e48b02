from __future__ import annotations

from sash.cli.demo import plot, sampled


def test_a_value_holds_until_the_next() -> None:
    assert sampled([(1, 5.0), (3, 7.0)], 0, 4, 4) == [5.0, 5.0, 7.0, 7.0]
    assert sampled([(2, 5.0)], 0, 4, 4) == [0.0, 5.0, 5.0, 5.0]
    assert sampled([], 0, 4, 2) == [0.0, 0.0]


def test_the_highest_value_fills_the_height() -> None:
    assert plot([(0, 1.0), (2, 4.0)], 0, 4, width=4, height=2) == [" ███", "▄███"]
    assert plot([], 0, 1, width=3, height=1) == ["   "]
    assert plot([(0, 8.0), (1, 1.0)], 0, 2, width=4, height=1) == ["█▁▁▁"]
