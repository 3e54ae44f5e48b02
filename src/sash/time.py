"""Event time: microseconds since 1970 in an int64, the two limits outside of it, and its units."""

from __future__ import annotations

from typing import Final

FOREVER: Final = 2**63 - 1
"""The expiration time of a row that is valid until it is retracted; the clock of an input that has ended."""

BEGINNING: Final = -(2**62)
"""The clock of an input that has not reported one. A window may be subtracted from it without overflow."""

MICROSECOND: Final = 1
MILLISECOND: Final = 1_000 * MICROSECOND
SECOND: Final = 1_000 * MILLISECOND
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY
