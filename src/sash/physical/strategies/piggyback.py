"""Piggybacking: positive rows carry the time; time messages flow only while no positive row does (paper 3).

Each edge measures the gaps between the positive rows on it, which reflect the rate and selectivity of what is below. While
the gaps are short, a time that is due waits for the next row and is carried by it: no message is sent. Once the clock is more
than an answer may be delayed (`patience`) past it, it is sent as a message, and so are those after it, at once, until rows
come at half of that distance.
"""

from __future__ import annotations

from sash.physical.strategies.base import Delivery, Strategy, TimeSettings, TimeSource
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory
from sash.time import BEGINNING

_MODE, _GAP, _LAST, _PENDING, _SWITCHES, _SINCE = 2, 3, 4, 5, 6, 7
_MESSAGES, _ROWS = 0, 1
_WEIGHT = 4
"""The latest gap has a weight of a quarter in the running average."""


class PiggybackedTime(TimeSource):
    """Learns times by messages (at first) or from rows; it switches between the two modes."""

    def __init__(self, memory: Memory, settings: TimeSettings) -> None:
        super().__init__(memory, settings)
        self._patience = patience = settings.patience
        if self._words[_GAP] == 0:
            self._words[_GAP] = 4 * patience
            self._words[_LAST] = self._words[_PENDING] = self._words[_SINCE] = BEGINNING

    @property
    def by_rows(self) -> bool:
        """Whether rows carry the times."""
        return bool(self._words[_MODE] == _ROWS)

    @property
    def switches(self) -> int:
        return int(self._words[_SWITCHES])

    def receive_rows(self, batch: ChangeBatch, stamped: bool, now: int) -> bool:
        if not stamped:
            return super().receive_rows(batch, stamped, now)
        ts = batch.ts[batch.sign > 0]
        if not len(ts):
            return False
        carried = self._carry(int(ts[-1]))
        if self._words[_LAST] != BEGINNING:
            gap = (int(ts[-1]) - int(self._words[_LAST])) // len(ts)
            for _ in range(min(len(ts), 4 * _WEIGHT)):
                self._words[_GAP] += (gap - int(self._words[_GAP])) // _WEIGHT
        self._words[_LAST] = ts[-1]
        if 2 * self._words[_GAP] <= self._patience:
            self._switch(_ROWS)
        return carried

    def _carry(self, ts: int) -> bool:
        """A row brings its own time, and with it all that wait; returns whether one did."""
        self.advance(ts + 1)
        waited = self._words[_PENDING] != BEGINNING and self.time > self._words[_PENDING]
        if waited:
            self._words[_PENDING] = self._words[_SINCE] = BEGINNING
        return bool(waited)

    def receive_message(self, time: int, now: int, since: int | None = None) -> Delivery:
        if time < self.time:
            return Delivery.CARRIED
        since = time if since is None else since
        if self.by_rows and now - since < self._patience and now - int(self._words[_LAST]) < self._patience:
            if self._words[_PENDING] == BEGINNING:
                self._words[_SINCE] = since
            self._words[_PENDING] = max(int(self._words[_PENDING]), time)
            return Delivery.WAITING
        self._words[_PENDING] = max(int(self._words[_PENDING]), time)
        self._send()
        return Delivery.MESSAGE

    def tick(self, progress: int, now: int) -> bool:
        wake = self.wake
        if wake is None or now < wake:
            return False
        self._send()
        return True

    def flush(self) -> bool:
        if self._words[_PENDING] == BEGINNING:
            return False
        self._send()
        return True

    def _send(self) -> None:
        """Send the time that is due as a message, with all that waited for it."""
        self._switch(_MESSAGES)
        self.advance(int(self._words[_PENDING]) + 1)
        self._words[_PENDING] = self._words[_SINCE] = BEGINNING

    @property
    def wake(self) -> int | None:
        return None if self._words[_PENDING] == BEGINNING else int(self._words[_SINCE]) + self._patience

    def _switch(self, mode: int) -> None:
        if self._words[_MODE] != mode:
            self._words[_MODE] = mode
            self._words[_SWITCHES] += 1
            if mode == _MESSAGES:
                self._words[_GAP] = 4 * self._patience


PIGGYBACK = Strategy(
    "piggyback",
    "the times that positive rows carry, and time messages while no such row comes",
    PiggybackedTime,
    paced=True,
    messages=True,
)
