"""Re-evaluation: every answer is computed anew from the rows of the windows (the baseline of papers 1 and 3).

Nothing is kept from one instant to the next but the rows that are valid, and the last answer. At every instant at which a
row arrives or ends, new operators process all valid rows, and the difference to the last answer is the change. Operators
that decide which rows are valid, such as `[ROWS n]` windows, are no part of that: they run as ever.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy
from sash.physical.strategies.direct import InputClock

RE_EVALUATION = Strategy(
    "re-evaluation",
    "the rows that are valid: every answer is computed anew from all of them",
    InputClock,
    expire="bottom",
    by_pattern=False,
    recomputes=True,
    note=lambda _plan: "work grows with the window times the rows that arrive and end: for comparisons only",
)
