"""The program that turns records of an Avro schema into columns: fields by name, in the types of the columns.

What a column cannot hold is refused when the program is made. Fields that no column has are skipped, and a column without a
field is NULL.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sash.avro import kernel
from sash.avro.schema import Avro
from sash.errors import CatalogError
from sash.plan.types import BINARY, BOOLEAN, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ, Schema, is_integer, type_name
from sash.state.memory import Ints

_MICROS = {"millis": 1_000, "micros": 1, "nanos": -1_000}
_TEXTS = (STRING, BINARY)
_FORWARD = -1
"""An address that is not known yet."""


@dataclass
class Node:
    """A column of the output, or a part of one; `scale` is that of a decimal."""

    dtype: pa.DataType
    children: list[int] = field(default_factory=list)
    scale: int | None = None


@dataclass(frozen=True)
class Program:
    """Instructions of the kernel, and the nodes that they write to."""

    nodes: list[Node]
    columns: Ints
    code: Ints
    targets: Ints
    symbols: Ints
    pool: npt.NDArray[np.uint8]
    nulls: Ints
    nulls_from: Ints

    @property
    def has_lists(self) -> bool:
        """Whether some nodes get another number of slots than there are records."""
        return any(_is_list(node.dtype) for node in self.nodes)


def compile_program(writer: Avro, columns: Schema) -> Program:
    """The program for records of a schema, whose type is a record, and these columns."""
    if writer.kind != "record":
        raise CatalogError(f"an Avro schema of rows is a record, not {writer}")
    made = _Compiler()
    tops = [made.node(one.dtype) for one in columns]
    made.record(writer, {one.name: top for one, top in zip(columns, tops, strict=True)})
    made.emit(kernel.END)
    made.subroutines()
    return made.program(tops)


class _Compiler:
    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.code: list[list[int]] = []
        self.targets: list[int] = []
        self.symbols: list[int] = []
        self.pool = b""
        self.skipped: dict[int, int] = {}
        self.pending: list[tuple[int, Avro]] = []

    def node(self, dtype: pa.DataType) -> int:
        """Add a node and those of its parts."""
        number = len(self.nodes)
        self.nodes.append(Node(dtype))
        if pa.types.is_struct(dtype):
            self.nodes[number].children = [self.node(part.type) for part in dtype]
        elif pa.types.is_map(dtype):
            self.nodes[number].children = [self.node(dtype.key_type), self.node(dtype.item_type)]
        elif pa.types.is_list(dtype):
            self.nodes[number].children = [self.node(dtype.value_type)]
        return number

    def emit(self, operation: int, node: int = -1, x: int = 0, y: int = 0) -> int:
        self.code.append([operation, node, x, y])
        return len(self.code) - 1

    def record(self, given: Avro, wanted: dict[str, int]) -> None:
        """The fields of a record in order, into nodes by name; a node without a field is NULL."""
        left = dict(wanted)
        for name, part in zip(given.fields, given.parts, strict=True):
            into = next((one for one in left if given.part(one) is part), None)
            if into is None:
                self.skip(part)
            else:
                node = left.pop(into)
                if not self.value(part, node):
                    raise CatalogError(
                        f"the Avro field {name} is {part}, which a column {type_name(self.nodes[node].dtype)} cannot hold"
                    )
        for node in left.values():
            self.emit(kernel.NULL, node)

    def value(self, given: Avro, node: int) -> bool:
        """A value into a node; False if the node cannot hold it."""
        dtype = self.nodes[node].dtype
        kind = given.kind
        if kind == "null":
            self.emit(kernel.NULL, node)
        elif kind == "union":
            return self._union(given, node)
        elif kind == "record" and pa.types.is_struct(dtype):
            self.emit(kernel.STRUCT, node)
            names = [part.name for part in dtype]
            self.record(given, dict(zip(names, self.nodes[node].children, strict=True)))
        elif kind == "array" and pa.types.is_list(dtype):
            return self._list(node, lambda: self.value(given.parts[0], self.nodes[node].children[0]))
        elif kind == "map" and pa.types.is_map(dtype) and dtype.key_type == STRING:
            key, value = self.nodes[node].children

            def entry() -> bool:
                self.emit(kernel.TEXT, key)
                return self.value(given.parts[0], value)

            return self._list(node, entry)
        else:
            return self._single(given, node, dtype)
        return True

    def _single(self, given: Avro, node: int, dtype: pa.DataType) -> bool:
        """A value that is not made of others."""
        kind, logical = given.kind, given.logical
        if kind in ("int", "long"):
            return self._number(given, node, dtype)
        if kind == "boolean" and dtype == BOOLEAN:
            self.emit(kernel.BOOLEAN, node)
        elif kind in ("float", "double") and pa.types.is_floating(dtype):
            self.emit(kernel.FLOAT if kind == "float" else kernel.DOUBLE, node)
        elif logical == "decimal" and pa.types.is_decimal(dtype):
            known = self.nodes[node]
            digits = given.precision - given.scale
            if dtype.scale < given.scale or dtype.precision - dtype.scale < digits:
                return False
            if known.scale not in (None, given.scale):
                return False
            known.scale = given.scale
            self.emit(*((kernel.DECIMAL, node) if kind == "bytes" else (kernel.FIXED_DECIMAL, node, given.size)))
        elif kind in ("string", "bytes") and dtype in _TEXTS:
            self.emit(kernel.TEXT, node)
        elif kind == "enum" and dtype == STRING:
            self._enum(given, node)
        elif kind == "fixed" and dtype == BINARY:
            self.emit(kernel.FIXED, node, given.size)
        else:
            return False
        return True

    def _number(self, given: Avro, node: int, dtype: pa.DataType) -> bool:
        logical = given.logical
        local, _, unit = logical.removeprefix("local-").partition("-")
        of_time = TIMESTAMP_NTZ if logical.startswith("local-") else TIMESTAMP
        if local == "timestamp" and dtype == of_time:
            self.emit(kernel.LONG, node, _MICROS[unit], 64)
        elif logical == "date" and dtype == DATE:
            self.emit(kernel.LONG, node, 1, 32)
        elif is_integer(dtype):
            self.emit(kernel.LONG, node, 1, dtype.bit_width)
        elif pa.types.is_floating(dtype):
            self.emit(kernel.LONG_AS_DOUBLE, node)
        else:
            return False
        return True

    def _enum(self, given: Avro, node: int) -> None:
        """The places of the symbols in the pool, and where the last one ends."""
        first = len(self.symbols)
        for symbol in given.symbols:
            self.symbols.append(len(self.pool))
            self.pool += symbol.encode()
        self.symbols.append(len(self.pool))
        self.emit(kernel.ENUM, node, first, len(given.symbols))

    def _union(self, given: Avro, node: int) -> bool:
        """Every branch ends with a jump behind the union; a value of one that the node cannot hold makes the record bad."""
        fits = False

        def branch(part: Avro) -> None:
            nonlocal fits
            before = len(self.code)
            if self.value(part, node):
                fits = fits or part.kind != "null"
            else:
                del self.code[before:]
                self.pending = [call for call in self.pending if call[0] < before]
                self.emit(kernel.BAD)

        self._branches(given, branch)
        return fits or all(part.kind == "null" for part in given.parts)

    def _branches(self, given: Avro, branch: Callable[[Avro], None]) -> None:
        first = len(self.targets)
        self.targets += [_FORWARD] * len(given.parts)
        self.emit(kernel.UNION, -1, first, len(given.parts))
        jumps = []
        for number, part in enumerate(given.parts):
            self.targets[first + number] = len(self.code)
            branch(part)
            jumps.append(self.emit(kernel.JUMP))
        for jump in jumps:
            self.code[jump][2] = len(self.code)

    def _list(self, node: int, element: Callable[[], bool]) -> bool:
        begin = self.emit(kernel.LIST, node)
        fits = element()
        self.emit(kernel.NEXT, -1, begin)
        self.code[begin][2] = len(self.code)
        return fits

    def skip(self, given: Avro) -> None:
        """Read a value into nothing."""
        kind = given.kind
        if kind == "union":
            self._branches(given, self.skip)
        elif kind in ("array", "map"):

            def element() -> bool:
                if kind == "map":
                    self.emit(kernel.TEXT)
                self.skip(given.parts[0])
                return True

            self._list(-1, element)
        elif kind == "record":
            # By a call: the record may be a part of itself.
            self.pending.append((self.emit(kernel.CALL), given))
        elif kind == "fixed":
            self.emit(kernel.FIXED, -1, given.size)
        elif kind != "null":
            self.emit(_SKIPPED[kind], -1, 1, 64)

    def subroutines(self) -> None:
        """Those that skip records, one for each type."""
        while self.pending:
            call, given = self.pending.pop()
            if id(given) not in self.skipped:
                self.skipped[id(given)] = len(self.code)
                for part in given.parts:
                    self.skip(part)
                self.emit(kernel.RETURN)
            self.code[call][2] = self.skipped[id(given)]

    def program(self, tops: list[int]) -> Program:
        nulls = [self._with_null(node) for node in range(len(self.nodes))]
        return Program(
            self.nodes,
            np.array(tops, np.int64),
            np.array(self.code, np.int64),
            np.array(self.targets, np.int64),
            np.array(self.symbols, np.int64),
            np.frombuffer(self.pool, np.uint8),
            np.array([one for some in nulls for one in some], np.int64),
            np.cumsum([0, *map(len, nulls)], dtype=np.int64),
        )

    def _with_null(self, node: int) -> list[int]:
        """The nodes that get a slot if this one is NULL: with a struct, its fields."""
        found = [node]
        if pa.types.is_struct(self.nodes[node].dtype):
            for child in self.nodes[node].children:
                found += self._with_null(child)
        return found


def _is_list(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_list(dtype) or pa.types.is_map(dtype))


_SKIPPED = {
    "boolean": kernel.BOOLEAN,
    "int": kernel.LONG,
    "long": kernel.LONG,
    "float": kernel.FLOAT,
    "double": kernel.DOUBLE,
    "bytes": kernel.TEXT,
    "string": kernel.TEXT,
    "enum": kernel.LONG,
}
