"""The layout of a window store: the facts about it that never change, kept in `layout.json`."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from sash.arguments import check_count, shown
from sash.durations import microseconds
from sash.errors import OptionError, StoreError, UnsupportedSqlError
from sash.plan.types import Field, Schema, holds, is_sql_type, type_name
from sash.window_store.store.files import write_bytes

FORMAT = 2
TIME = "_ts"
SIGN = "_sign"
ENDS = "_ends"
LAYOUT_FILE = "layout.json"

Kind = Literal["time", "rows", "result"]


@dataclass(frozen=True)
class StoreLayout:
    """Which rows a store holds and how they are split into sub-windows.

    A store of kind `time` or `rows` holds the window of a stream, `count` sub-windows of `length` microseconds or rows.
    A `result` holds the answer of a query, refreshed every `length` microseconds: its files have signed rows and, with
    `ends`, the expiration time of each row. `retain` is the number of replaced sub-windows kept for running readers.
    `not_carried` has the columns of the stream that are not kept because of their types, with the names of these.
    """

    name: str
    schema: Schema
    time: str
    kind: Kind
    length: int
    count: int
    retain: int = 0
    ends: bool = False
    not_carried: tuple[tuple[str, str], ...] = ()

    @property
    def arrow(self) -> pa.Schema:
        """The columns of a file: the time in microseconds, in a result the sign and the expiration time, then the row."""
        signs = [pa.field(SIGN, pa.int8())] if self.kind == "result" else []
        ends = [pa.field(ENDS, pa.int64())] if self.ends else []
        return pa.schema([pa.field(TIME, pa.int64()), *signs, *ends, *((f.name, f.dtype) for f in self.schema)])

    @property
    def unit(self) -> str:
        """The length of a sub-window as text."""
        return f"{self.length} rows" if self.kind == "rows" else f"{self.length / 1e6:g} s"

    def save(self, root: Path) -> None:
        """Write the layout of a new store."""
        written: dict[str, Any] = {**asdict(self), "format": FORMAT}
        if not self.not_carried:
            del written["not_carried"]
        written["schema"] = base64.b64encode(self.arrow.serialize().to_pybytes()).decode()
        write_bytes(root / LAYOUT_FILE, json.dumps(written).encode())

    @staticmethod
    def load(root: Path) -> StoreLayout:
        """Read the layout of an existing store."""
        try:
            found = json.loads((root / LAYOUT_FILE).read_bytes())
        except FileNotFoundError:
            raise StoreError(
                f"there is no window store in {root}: keep a stream there first, with engine.keep(name, path=...)"
            ) from None
        except OSError as problem:
            raise StoreError(f"the window store in {shown(str(root))} cannot be read: {problem.strerror}") from None
        if found.pop("format") != FORMAT:
            raise StoreError(
                f"the window store in {root} was written by another version: remove it, then keep the window again"
            )
        arrow = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(found["schema"])))
        found["schema"] = tuple(Field(f.name, f.type) for f in arrow if f.name not in (TIME, SIGN, ENDS))
        found["not_carried"] = tuple((name, dtype) for name, dtype in found.get("not_carried", ()))
        return StoreLayout(**found)


def keeps_ends(root: Path) -> bool:
    """Whether a result that is kept there has expiration times: if it is new, or if it had them when it was new."""
    return StoreLayout.load(root).ends if (root / LAYOUT_FILE).exists() else True


def layout_of(
    name: str,
    schema: Schema,
    time: str,
    window: str | int,
    every: str | int,
    retain: int,
    *,
    result: bool = False,
    ends: bool = False,
    not_carried: Mapping[str, str] | None = None,
) -> StoreLayout:
    """The layout of a window of length `window` that advances by `every`: two durations, or two numbers of rows."""
    kind: Kind = "result" if result else "time"
    if isinstance(window, int) and isinstance(every, int) and not result:
        kind, long, short = "rows", check_count("window", window, most=2**62), check_count("every", every, most=2**62)
    elif isinstance(window, str) and isinstance(every, str):
        long, short = microseconds(window, "window"), microseconds(every, "every")
    else:
        raise OptionError(
            'window and every must both be durations, such as "60 seconds" and "1 second", or (for a stream) both '
            "numbers of rows"
        )
    if short < 1 or long < short or long % short:
        raise OptionError(f"window must be a whole multiple of every, and {window!r} is not one of {every!r}")
    check_count("retain, the number of replaced sub-windows to keep,", retain, least=0)
    for column in schema:
        if holds(column.dtype, is_sql_type):
            raise UnsupportedSqlError(
                f"a kept window does not hold {type_name(column.dtype)}, as {column.name} is: keep the answer of a query that "
                "casts it to STRING"
            )
    unkept = tuple((not_carried or {}).items())
    return StoreLayout(name, schema, time, kind, short, long // short, retain, ends, unkept)
