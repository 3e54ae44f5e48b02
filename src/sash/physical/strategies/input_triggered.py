"""Input-triggered: an operator learns the time from the positive rows that reach it (paper 1, 2.3; paper 3).

The changes are right, with the times that they should have, but an expiration is noticed only when the next row arrives:
answers are late, and the last ones never come. This is the baseline of the other strategies.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy, TimeSource


class RowTimes(TimeSource):
    """Learns the times of rows, and nothing else."""


INPUT_TRIGGERED = Strategy(
    "input-triggered", "the times of positive rows that reach the operator", RowTimes, paced=True
)
