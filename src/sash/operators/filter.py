"""Selection: the rows for which the predicate is true; a negative row is tested like its positive one (paper 1, 4.5)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.base import Edge, Operator
from sash.operators.scalar import evaluate
from sash.plan.expressions import Call, Column, Expression, Literal
from sash.state.changes import ChangeBatch
from sash.state.hashing import byte_buffers
from sash.state.jit import kernel
from sash.state.memory import Ints, Memory


class Filter(Operator):
    """Stateless; the output edge is of the input's kind."""

    def __init__(self, memory: Memory, inputs: tuple[Edge], predicate: Expression) -> None:
        self._predicate = predicate
        self._wanted = _wanted_text(predicate)

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        (batch,) = inputs
        keep = self.positions(batch)
        return batch if len(keep) == len(batch) else batch.take(keep)

    def positions(self, batch: ChangeBatch) -> Ints:
        """The positions of the rows that pass, in order."""
        if self._wanted is not None:
            index, text = self._wanted
            if not batch.columns[index].null_count:
                return _places_of(text, *byte_buffers(batch.columns[index]))
        passed = evaluate(self._predicate, batch.columns, len(batch))
        positions: Ints = pc.indices_nonzero(passed).to_numpy().view(np.int64)
        return positions


def _wanted_text(predicate: Expression) -> tuple[int, npt.NDArray[np.uint8]] | None:
    """The column and the text, if the predicate is an equality between them."""
    match predicate:
        case (
            Call(function="eq", arguments=(Column(index=index, dtype=dtype), Literal() as literal))
            | Call(function="eq", arguments=(Literal() as literal, Column(index=index, dtype=dtype)))
        ) if pa.types.is_string(dtype) and literal.dtype == dtype and literal.value is not None:
            return index, np.frombuffer(literal.value.encode(), np.uint8)
    return None


@kernel
def _places_of(text: npt.NDArray[np.uint8], offsets: Ints, data: npt.NDArray[np.uint8]) -> Ints:
    """The positions, in order, at which a text column without NULLs equals the text: the most common selection."""
    places = np.empty(len(offsets) - 1, np.int64)
    size, found = len(text), 0
    for row in range(len(offsets) - 1):
        start = offsets[row]
        if offsets[row + 1] - start != size:
            continue
        same = True
        for index in range(size):
            if data[start + index] != text[index]:
                same = False
                break
        if same:
            places[found] = row
            found += 1
    return places[:found]
