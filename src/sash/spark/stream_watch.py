"""Warnings about the streams of a running query: no rows for long, late rows, and what to change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sash.time import DAY, SECOND

_IDLE = 60.0
"""Seconds without rows until the first warning; the next comes after twice as long."""

_INTERVAL = 60.0
"""Seconds between two warnings about late rows of a stream."""

_SHARE = 0.001
"""A smaller share of late rows is not worth a warning."""


@dataclass(frozen=True)
class WatchedStream:
    """The settings of a stream: its slack, whether it has a heartbeat, and how far ahead rows may be; in microseconds."""

    slack: int
    heartbeat: bool
    max_jump: int | None = None


class _Watch:
    """What is known about one stream."""

    def __init__(self, name: str, stream: WatchedStream, now: float, at: datetime) -> None:
        self.name, self.stream = name, stream
        self.seen, self.seen_at, self.idle = now, at, _IDLE
        self.arrived = self.late = self.late_by = self.ahead = 0
        self.watermark: int | None = None
        self.all_late = False
        self.warned = self.warned_ahead = -_INTERVAL

    def count(self, counts: Mapping[str, int], now: float, at: datetime) -> None:
        if counts.get("rows_in"):
            self.seen, self.seen_at, self.idle = now, at, _IDLE
        arrived, late = counts.get("arrived", 0), counts.get("late", 0)
        self.arrived += arrived
        self.late += late
        self.ahead += counts.get("ahead", 0)
        self.late_by = max(self.late_by, counts.get("late_by", 0))
        self.watermark = counts.get("watermark", self.watermark)
        self.all_late = late == arrived if arrived else self.all_late

    def is_idle(self, now: float) -> bool:
        return now - self.seen >= self.idle

    def warnings(self, now: float, silent: bool) -> list[str]:
        found = []
        if silent and self.is_idle(now):
            self.idle *= 2
            found.append(self._idle_text())
        if self.ahead and now - self.warned_ahead >= _INTERVAL:
            found.append(self._ahead_text())
            self.warned_ahead, self.ahead = now, 0
        if self.late and self.late >= _SHARE * self.arrived and now - self.warned >= _INTERVAL:
            found.append(self._all_late_text() if self.all_late else self._late_text())
            self.warned = now
            self.arrived = self.late = self.late_by = 0
        return found

    def _idle_text(self) -> str:
        text = f"stream {self.name} has had no rows since {self.seen_at:%H:%M:%S} UTC"
        if self.stream.heartbeat:
            return f"{text}; its heartbeat lets its rows expire meanwhile"
        return (
            f"{text}, and without rows its time stands still: nothing expires, and joined streams wait for it. If it is "
            f"often silent, declare it with HEARTBEAT '1 second' (heartbeat=), which advances its time by the wall clock"
        )

    def _ahead_text(self) -> str:
        most = _length(self.stream.max_jump or 0)
        return (
            f"stream {self.name}: {self.ahead:,} rows were more than MAX JUMP '{most}' in the future and were dropped. Correct "
            "their source, or declare a longer MAX JUMP (max_jump=); BAD ROWS INTO keeps such rows"
        )

    def _all_late_text(self) -> str:
        slack = (
            f"; if its rows come out of order, declare SLACK '{self._suggested()}' (slack=)"
            if self.late_by < DAY
            else ""
        )
        return (
            f"stream {self.name}: all rows of the last batch were late and dropped, {self._behind()}. If a row with a time in the "
            f"future moved the watermark, declare MAX JUMP '1 day' (max_jump=) and start with a new checkpoint{slack}"
        )

    def _late_text(self) -> str:
        return (
            f"stream {self.name}: {self.late:,} of {self.arrived:,} rows ({self.late / self.arrived:.1%}) were late and dropped, "
            f"{self._behind()}. SLACK '{self._suggested()}' (slack=) would have kept them, for answers that are so much later"
        )

    def _behind(self) -> str:
        return f"up to {_length(self.late_by)} behind the watermark{'' if self.watermark is None else f' {_instant(self.watermark)}'}"

    def _suggested(self) -> str:
        return _length(self.stream.slack + self.late_by)


class StreamWatch:
    """Watches the streams of one query."""

    def __init__(self, streams: Mapping[str, WatchedStream]) -> None:
        self._streams = dict(streams)
        self._watched: dict[str, _Watch] = {}

    def look(
        self, batches: list[dict[str, Any]], now: float, busy: Callable[[], bool], at: datetime | None = None
    ) -> list[str]:
        """Return the warnings that are due, given the progress of the batches since the last look, and the time.

        While the query is busy with a batch, it is unknown whether this has rows of a stream.
        """
        at = datetime.now(UTC) if at is None else at
        for name, stream in self._streams.items():
            self._watched.setdefault(name, _Watch(name, stream, now, at))
        for progress in batches:
            for name, counts in progress.get("streams", {}).items():
                if name in self._watched:
                    self._watched[name].count(counts, now, at)
        silent = bool(batches) or (any(watch.is_idle(now) for watch in self._watched.values()) and not busy())
        return [text for watch in self._watched.values() for text in watch.warnings(now, silent)]


def _length(micros: int) -> str:
    """A length of time, rounded up, as SQL reads it.

    >>> _length(1_200_000), _length(3_599_000_001), _length(1_500)
    ('2 seconds', '60 minutes', '2 milliseconds')
    """
    for unit, size, most in (("millisecond", 1_000, 1_000), ("second", SECOND, 120), ("minute", 60 * SECOND, 120)):
        if (count := -(-micros // size)) <= most:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    hours = -(-micros // (3600 * SECOND))
    return f"{hours} hours" if hours <= 72 else f"{-(-hours // 24)} days"


def _instant(micros: int) -> str:
    try:
        return f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        return str(micros)
