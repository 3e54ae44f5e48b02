"""Records of one Avro schema as columns of Arrow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.avro.kernel import gather, run
from sash.avro.program import Node, compile_program
from sash.avro.schema import Avro
from sash.plan.types import BINARY, BOOLEAN, STRING, Schema
from sash.state.memory import Ints


class Decoder:
    """Decodes records of a schema into columns."""

    def __init__(self, writer: Avro, columns: Schema) -> None:
        self._program = compile_program(writer, columns)

    def decode(self, data: npt.NDArray[np.uint8], starts: Ints, ends: Ints) -> list[pa.Array]:
        """The columns of the records between these places; one that begins before 0, or is no such record, is NULL."""
        program = self._program
        slots = np.full(len(program.nodes), len(starts), np.int64)
        if program.has_lists:
            slots = np.zeros_like(slots)
            nothing = np.zeros(0, np.int64)
            self._run(data, starts, ends, slots, slots, nothing, nothing, np.zeros(0, np.uint8), write=False)
        base = np.cumsum([0, *slots], dtype=np.int64)
        first, second = np.zeros(base[-1], np.int64), np.zeros(base[-1], np.int64)
        valid, cursors = np.zeros(base[-1], np.uint8), np.zeros(len(slots), np.int64)
        self._run(data, starts, ends, base, cursors, first, second, valid, write=True)
        made = _Assembly(program.nodes, base, first, second, valid, data, program.pool)
        return [made.array(int(node)) for node in program.columns]

    def _run(
        self,
        data: npt.NDArray[np.uint8],
        starts: Ints,
        ends: Ints,
        base: Ints,
        cursors: Ints,
        first: Ints,
        second: Ints,
        valid: npt.NDArray[np.uint8],
        *,
        write: bool,
    ) -> None:
        program = self._program
        run(
            data, starts, ends, program.code, program.targets, program.symbols, program.nulls, program.nulls_from,
            program.columns, base, cursors, first, second, valid, write,
        )  # fmt: skip


class _Assembly:
    """Arrays made of the slots of nodes."""

    def __init__(
        self,
        nodes: list[Node],
        base: Ints,
        first: Ints,
        second: Ints,
        valid: npt.NDArray[np.uint8],
        data: npt.NDArray[np.uint8],
        pool: npt.NDArray[np.uint8],
    ) -> None:
        self._nodes, self._base = nodes, base
        self._first, self._second, self._valid = first, second, valid
        self._data, self._pool = data, pool

    def array(self, number: int) -> pa.Array:
        """The values of a node."""
        node = self._nodes[number]
        mine = slice(self._base[number], self._base[number + 1])
        first, second, valid = self._first[mine], self._second[mine], self._valid[mine]
        bits = pa.py_buffer(np.packbits(valid, bitorder="little"))
        dtype, size = node.dtype, len(valid)
        children = [self.array(child) for child in node.children]
        if pa.types.is_struct(dtype):
            return pa.Array.from_buffers(dtype, size, [bits], children=children)
        if children:
            inside = children[0]
            if pa.types.is_map(dtype):
                entries = pa.struct([dtype.key_field, dtype.item_field])
                inside = pa.Array.from_buffers(entries, len(children[0]), [None], children=children)
            return pa.Array.from_buffers(dtype, size, [bits, _offsets(first)], children=[inside])
        if dtype in (STRING, BINARY):
            lengths = np.where(valid != 0, second, 0)
            offsets = np.cumsum(np.concatenate([[0], lengths]), dtype=np.int64)
            texts = pa.py_buffer(gather(self._data, self._pool, first, offsets))
            found = pa.Array.from_buffers(BINARY, size, [bits, pa.py_buffer(offsets.astype(np.int32)), texts])
            return _text(found) if dtype == STRING else found
        if pa.types.is_decimal(dtype):
            words = pa.py_buffer(np.stack([first, second], axis=1).copy())
            return pa.Array.from_buffers(pa.decimal128(38, node.scale or 0), size, [bits, words]).cast(dtype)
        if pa.types.is_floating(dtype):
            return pa.array(first.view(np.float64), mask=valid == 0).cast(dtype)
        if dtype == BOOLEAN:
            return pa.array(first != 0, mask=valid == 0)
        narrow = first.astype(f"int{dtype.bit_width}")
        return pa.Array.from_buffers(dtype, size, [bits, pa.py_buffer(narrow)])


def _offsets(counts: Ints) -> pa.Buffer:
    return pa.py_buffer(np.cumsum(np.concatenate([[0], counts]), dtype=np.int64).astype(np.int32))


def _text(found: pa.Array) -> pa.Array:
    """Bytes as text; what is not UTF-8 is replaced, as Spark does it."""
    try:
        return found.cast(STRING)
    except pa.ArrowInvalid:
        return pa.array([None if one is None else one.decode(errors="replace") for one in found.to_pylist()], STRING)
