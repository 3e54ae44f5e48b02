"""The bounds of a job's history, as `--history` gives them."""

from __future__ import annotations

from dataclasses import dataclass

from sash.durations import microseconds
from sash.errors import OptionError, SashError
from sash.sizes import size_in_bytes, size_text
from sash.time import SECOND


@dataclass(frozen=True)
class HistoryLimits:
    """How long changes are kept, by the wall clock, and in how many bytes of all queries together."""

    seconds: float = 600.0
    size: int = 64 << 20

    @staticmethod
    def parse(text: str) -> HistoryLimits | None:
        """The bounds in a text that has a length of time, a size, or both; None for `off`.

        >>> HistoryLimits.parse("1 hour, 256 MB")
        HistoryLimits(seconds=3600.0, size=268435456)
        >>> HistoryLimits.parse("30 seconds")
        HistoryLimits(seconds=30.0, size=67108864)
        """
        if text.strip().lower() == "off":
            return None
        found = HistoryLimits()
        for part in text.split(","):
            try:
                found = HistoryLimits(microseconds(part, "history") / SECOND, found.size)
            except SashError:
                try:
                    found = HistoryLimits(found.seconds, size_in_bytes(part.strip(), "history"))
                except SashError:
                    raise OptionError(
                        f'history must be bounds such as "10 minutes, 64 MB", or "off", not {text!r}'
                    ) from None
        if found.seconds <= 0 or found.size < 1 << 16:
            raise OptionError(f"history needs more than 0 seconds and at least {size_text(1 << 16)}, not {text!r}")
        return found
