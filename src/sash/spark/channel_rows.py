"""The rows of a channel that a shard keeps for stages with windows of several lengths (`physical/common_rows.py`).

They are a cache of the channel's log, from which they are rebuilt if the arena is lost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sash.physical.channels import MASK_BITS, Reader
from sash.physical.common_rows import CommonRows
from sash.spark.channel_batch import pick
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory
from sash.state.row_blocks import RowBlocks


class ChannelRows:
    """The rows of one channel in one batch of one shard."""

    def __init__(self, common: CommonRows, memory: Memory) -> None:
        self._common = common
        self._blocks = RowBlocks(memory, common.dtypes)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._blocks.rows

    def append(self, rows: ChangeBatch, clock: int) -> None:
        """Keep those of the channel's rows that a reader needs."""
        needed = self._needed(rows)
        kept = rows if needed is None else rows.take(needed)
        self._blocks.append(kept.with_columns([kept.columns[column] for column in self._common.columns]), clock)

    def _needed(self, rows: ChangeBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]] | None:
        """The positions of the rows that some reader's filter accepts; None: all of them."""
        if self._common.filters is None:
            return None
        width = len(self._common.channel.columns)
        accepted = np.zeros(len(rows), np.bool_)
        for number in self._common.filters:
            mask = rows.columns[width + number // MASK_BITS].to_numpy(zero_copy_only=False)
            accepted |= (mask & (1 << number % MASK_BITS)) != 0
        return None if accepted.all() else np.flatnonzero(accepted)

    def drop_ended(self, floor: int) -> None:
        """Drop rows that ended before an instant which every reader has reached."""
        self._blocks.drop_before(floor - self._common.horizon)

    def holder(self, stage: int, since: int | None) -> ReaderRows:
        """The rows of the reader that is this stage; if it began again at some time, only those since then."""
        return ReaderRows(
            self._blocks, self._common.reader(stage), len(self._common.columns) - self._common.channel.masks, since
        )


@dataclass(frozen=True)
class ReaderRows:
    """The rows of one reader; mask columns follow the first `width` columns."""

    blocks: RowBlocks
    reader: Reader
    width: int
    since: int | None

    def between(self, start: int, end: int) -> ChangeBatch:
        """The rows with start <= ts < end, in order."""
        first = start if self.since is None else max(start, self.since)
        return pick(self.reader, self.blocks.between(first, end), self.width)
