"""Counts of what an operator did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from sash.state.changes import ChangeBatch


@dataclass
class Counts:
    """Rows in and out of an operator, `negative` ones being retractions, and its work.

    Of time it learns by rows, by the `messages` that it received and by its `time_probes` of inputs; `switches` is how often
    its edges changed between messages and piggybacking. `expired` are the rows that expired in its buffers, `rows_examined`
    the rows that it compared to find matches (multi-way joins only), `premature` the rows that it retracted before their
    expiration time, and `refused` the retractions of rows that were not there, which it left out. `microseconds` is how long
    it worked, by the wall clock, which no comparison of counts looks at. `current_choice` is, by
    shard, the adaptive choice now in use and its reason.
    """

    taken: int = 0
    taken_negative: int = 0
    given: int = 0
    given_negative: int = 0
    messages: int = 0
    time_probes: int = 0
    switches: int = 0
    expired: int = 0
    rows_examined: int = 0
    premature: int = 0
    refused: int = 0
    microseconds: int = field(default=0, compare=False)
    current_choice: dict[int, tuple[str, str]] = field(default_factory=dict)

    def count_call(self, inputs: Sequence[ChangeBatch], output: ChangeBatch, expired: int) -> None:
        """Count one call of the operator."""
        for batch in inputs:
            self.taken += len(batch)
            self.taken_negative += int(np.count_nonzero(batch.sign < 0))
        self.given += len(output)
        self.given_negative += int(np.count_nonzero(output.sign < 0))
        self.expired += expired

    def add(self, other: Counts) -> None:
        """Add another operator's, shard's or batch's counts."""
        for name in _COUNTED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.current_choice.update(other.current_choice)


_COUNTED = tuple(part.name for part in fields(Counts) if part.name != "current_choice")
