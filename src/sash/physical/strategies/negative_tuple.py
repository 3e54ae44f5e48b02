"""Negative tuples: Expire sits at the bottom, and every row that ends sends a `-` row up the pipeline (paper 1, 3.2).

All edges above a scan are explicit, so that no operator but Expire hears the clock, and rows that end and rows that are
invalidated are one. Selections and joins with tables above a scan run above Expire, and see every row twice.
"""

from __future__ import annotations

from sash.physical.strategies.base import Strategy
from sash.physical.strategies.direct import Clock

NEGATIVE_TUPLE = Strategy("negative-tuple", "a `-` row for every row that ends", Clock, expire="bottom")
