"""Negative tuples: Expire sits at the bottom, and every row that expires sends a retraction up the pipeline (paper 1, 3.2).

All edges above a scan are explicit, so no operator but Expire needs the clock, and there is no difference between rows that
expire and rows that are invalidated. Selections and joins with tables above a scan run above Expire, and process every row
twice.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy
from sash.physical.strategies.direct import InputClock

NEGATIVE_TUPLE = Strategy("negative-tuple", "a retraction for every row that expires", InputClock, expire="bottom")
