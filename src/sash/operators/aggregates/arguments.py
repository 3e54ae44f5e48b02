"""The arguments of aggregates at every event: values are kept by slot until their rows expire; NULLs are skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
import pyarrow as pa

from sash.operators.aggregates.base import NO_MASK, Work, as_doubles
from sash.operators.base import Edge
from sash.operators.kernels.touches import Mask, count_references
from sash.state.hashing import any_null, hash_rows, null_mask
from sash.state.interner import Interner
from sash.state.memory import Arrays, Ints, Memory
from sash.state.rows import RowStore

Kind = Literal["value", "double", "null"]


class Argument:
    """The values of one column, unchanged or as doubles, or only the NULLs of some columns."""

    def __init__(self, memory: Memory, edge: Edge, columns: tuple[int, ...], kind: Kind) -> None:
        self._columns = columns
        self._kind = kind
        dtype = {"value": edge.dtypes[columns[0]], "double": pa.float64(), "null": pa.bool_()}[kind]
        self._store = RowStore(memory, (dtype,)) if edge.stamped else None

    def load(self, work: Work) -> tuple[pa.Array, Mask]:
        """The value at every position, and the mask of NULLs."""
        if self not in work.memo:
            column = self._added(work)
            if self._store is not None:
                self._store.put(work.added_slots, [column])
                (gone,) = self._store.take(work.removed_slots)
                column = pa.concat_arrays([gone, column])
            mask = null_mask(column)
            work.memo[self] = column, NO_MASK if mask is None else np.array(mask)
        return cast(tuple[pa.Array, Mask], work.memo[self])

    def _added(self, work: Work) -> pa.Array:
        if self._kind == "null":
            mask = any_null([work.batch.columns[index] for index in self._columns])
            return pa.array(np.ones(len(work.batch), np.bool_), mask=mask)
        column = work.batch.columns[self._columns[0]]
        return as_doubles(column) if self._kind == "double" else column

    def finish(self, work: Work) -> None:
        """Free the values of the removed rows."""
        if self._store is not None:
            self._store.free(work.removed_slots)


class ValueCodes:
    """A code for each value of a group, the same for equal values, as long as one occurs; NULLs have none."""

    def __init__(self, memory: Memory, edge: Edge, columns: tuple[int, ...]) -> None:
        self._columns = columns
        self._pairs = Interner(memory.scope("pairs"))
        self._by_slot = Arrays(memory, {"slot.pair": np.int64}) if edge.stamped else None

    @property
    def capacity(self) -> int:
        """Every code is below this."""
        return self._pairs.capacity

    def load(self, work: Work) -> tuple[Ints, Ints, Ints]:
        """The code + 1 at every position (0: NULL); and new codes, with the rows of the batch that introduce them."""
        columns = [work.batch.columns[index] for index in self._columns]
        rows = len(work.batch)
        low, high = hash_rows(columns, rows)
        group = work.events.group[work.removed :].astype(np.uint64)
        high = high ^ (group * np.uint64(0x9E3779B97F4A7C15))
        mask = any_null(columns)
        pairs = np.zeros(rows, np.int64)
        kept = np.arange(rows) if mask is None else np.flatnonzero(~mask)
        codes, fresh = self._pairs.intern(np.array(low[kept]), high[kept])
        pairs[kept] = codes + 1
        if self._by_slot is not None:
            if len(work.slots):
                self._by_slot.reserve(int(work.slots.max()) + 1)
            self._by_slot["slot.pair"][work.added_slots] = pairs
            pairs = np.concatenate((self._by_slot["slot.pair"][work.removed_slots], pairs))
        return pairs, codes[fresh], kept[fresh]

    def forget(self, codes: Ints) -> None:
        """Free the codes of values that no longer occur."""
        self._pairs.forget(codes)


class Repeats:
    """DISTINCT: counts equal values per group, and passes only the first arrival and the last removal."""

    def __init__(self, memory: Memory, edge: Edge, columns: tuple[int, ...]) -> None:
        self._codes = ValueCodes(memory, edge, columns)
        self._references = Arrays(memory, {"pair.references": np.int64})

    def load(self, work: Work) -> Mask:
        """The mask of positions to skip."""
        if self not in work.memo:
            pairs, _, _ = self._codes.load(work)
            self._references.reserve(self._codes.capacity)
            skip, gone = count_references(work.events, pairs, self._references["pair.references"])
            self._codes.forget(gone)
            work.memo[self] = skip
        return cast(Mask, work.memo[self])


class ArgumentColumns:
    """All arguments of one operator; aggregates with the same argument share it."""

    def __init__(self, memory: Memory, edge: Edge) -> None:
        self._memory = memory
        self.edge = edge
        self._arguments: dict[str, Argument] = {}
        self._repeats: dict[str, Repeats] = {}

    def argument(self, columns: Sequence[int], kind: Kind = "value") -> Argument:
        """The argument for this column, or, for kind `null`, for the NULLs in these columns."""
        name = ".".join((kind, *map(str, columns)))
        if name not in self._arguments:
            self._arguments[name] = Argument(self._memory.scope(name), self.edge, tuple(columns), kind)
        return self._arguments[name]

    def repeats(self, columns: Sequence[int]) -> Repeats:
        """The counts of equal values in these columns."""
        name = "distinct." + ".".join(map(str, columns))
        if name not in self._repeats:
            self._repeats[name] = Repeats(self._memory.scope(name), self.edge, tuple(columns))
        return self._repeats[name]

    def finish(self, work: Work) -> None:
        """Free the values of the removed rows."""
        for argument in self._arguments.values():
            argument.finish(work)


class Values:
    """The argument of one accumulator: its values, and the mask of NULLs and, if DISTINCT, of repeated values."""

    def __init__(self, arguments: ArgumentColumns, column: int, distinct: bool, kind: Kind = "value") -> None:
        self._argument = arguments.argument((column,), kind)
        self._repeats = arguments.repeats((column,)) if distinct else None

    def load(self, work: Work) -> tuple[pa.Array, Mask]:
        column, mask = self._argument.load(work)
        return column, mask if self._repeats is None else self._repeats.load(work)


class Pairs:
    """The two arguments of one accumulator, as doubles, and the mask of pairs with a NULL and, if DISTINCT, of repeats."""

    def __init__(self, arguments: ArgumentColumns, columns: Sequence[int], distinct: bool) -> None:
        self._arguments = [arguments.argument((column,), "double") for column in columns]
        self._repeats = arguments.repeats(columns) if distinct else None

    def load(self, work: Work) -> tuple[list[pa.Array], Mask]:
        loaded = [argument.load(work) for argument in self._arguments]
        columns = [column for column, _ in loaded]
        if self._repeats is not None:
            return columns, self._repeats.load(work)
        masks = [mask for _, mask in loaded if len(mask)]
        return columns, np.logical_or.reduce(masks) if masks else NO_MASK
