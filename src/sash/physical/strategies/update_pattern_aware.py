"""Update-pattern-aware: as direct, with operators and buffers chosen by update pattern (paper 5, 5.3): the default.

FIFO buffers where rows expire in order, calendars where they do not, delta-star DISTINCT; above negation calendars or hash
buffers, by the share of rows that expire prematurely (`passes/allow_strict_edges.py`). Where retractions are needed, for the
answer or for operators that keep counts and sums (`passes/retract_from_joins.py`), a join retracts its results by probing
once more instead of having them kept. DISTINCT always retracts: to an operator above, a value whose row is replaced has not
changed.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy
from sash.physical.strategies.direct import InputClock

UPDATE_PATTERN_AWARE = Strategy(
    "update-pattern-aware", "exp stamps and the clock", InputClock, retracting_joins=True, adaptive_expiration=True
)
