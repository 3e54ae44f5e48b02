"""The interface of state buffers: they number the live rows of one input and return those that have expired."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from sash.state.memory import Ints, Memory
from sash.state.slots import Slots


class SlotBuffer:
    """Rows by slot. Operators keep what they need of a row in arrays indexed by its slot."""

    def __init__(self, slots: Slots) -> None:
        self.slots = slots

    def release(self, slots: Ints) -> None:
        """Free the slots of rows that ended."""
        self.slots.give(slots)

    @property
    def capacity(self) -> int:
        """Every slot is below this."""
        return self.slots.high

    @property
    def live(self) -> int:
        """The number of rows in the buffer."""
        return self.slots.live


class Buffer(SlotBuffer, ABC):
    """The live rows of one stamped input."""

    expired: ClassVar[int] = 0
    """The number of rows that have expired in all buffers of this process; callers compute differences."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(Slots(memory))

    @abstractmethod
    def add(self, exp: Ints) -> Ints:
        """Slots for new rows with these expiration times."""

    def drain(self, clock: int) -> tuple[Ints, Ints]:
        """The rows with exp < clock, in order of expiration: (slots, exps). The caller releases the slots when done."""
        slots, exps = self._drain(clock)
        Buffer.expired += len(slots)
        return slots, exps

    @abstractmethod
    def _drain(self, clock: int) -> tuple[Ints, Ints]:
        """As `drain`, without counting."""
