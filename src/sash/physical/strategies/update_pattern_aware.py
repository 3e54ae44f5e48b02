"""Update-pattern-aware: as direct, with operators and buffers chosen by update pattern (paper 5, 5.3): the default.

FIFO buffers where rows expire in order, calendars where they do not, delta-star DISTINCT; above negation calendars or
hash buffers, by the share of rows that end prematurely (`operators/ends.py`).
Where ends must be said, to the answer or to operators that keep counts and sums (`spoken_joins.py`), a join takes its results
back by probing once more instead of having them kept. DISTINCT always says them: to an operator above, a value whose row is
replaced has not changed.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy
from sash.physical.strategies.direct import Clock

UPDATE_PATTERN_AWARE = Strategy("update-pattern-aware", "exp stamps and the clock", Clock, speaking=True, by_share=True)
