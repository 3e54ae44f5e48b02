"""Functions and aggregates that users write in Python: their names, types and versions, and their code."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from sash.errors import CatalogError


@dataclass(frozen=True)
class UserCode:
    """A Python function of Arrow arrays, or a class of aggregates. Two of one name and version are the same.

    `packed` is the code as bytes that `pickle` reads, for other processes; without it, it stays in this one.
    """

    name: str
    version: str
    dtype: pa.DataType
    packed: bytes = field(default=b"", compare=False, repr=False)
    _loaded: Any = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, name: str, version: str, dtype: pa.DataType, code: Any, packed: bytes = b"") -> UserCode:
        """The code with what is to be executed in this process."""
        made = cls(name, version, dtype, packed)
        object.__setattr__(made, "_loaded", code)
        return made

    @property
    def code(self) -> Any:
        """The function or class."""
        if self._loaded is None:
            object.__setattr__(self, "_loaded", pickle.loads(self.packed))  # noqa: S301  (packed by the engine)
        return self._loaded

    def __getstate__(self) -> dict[str, Any]:
        if not self.packed:
            raise CatalogError(f"{self.name} is only known to this process: register it with an engine")
        return {"name": self.name, "version": self.version, "dtype": self.dtype, "packed": self.packed, "_loaded": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


Way = Literal["remove", "merge", "recompute"]
"""How an aggregate of a user's is maintained: by taking rows back, by two stacks of merged states, or anew from all rows."""


def way_of(code: UserCode, expiry: str, *, distinct: bool = False) -> Way:
    """How the aggregate is maintained over rows that end in this way; that of distinct values is computed anew."""
    if distinct:
        return "recompute"
    if callable(getattr(code.code, "remove", None)):
        return "remove"
    return "merge" if expiry == "fifo" and callable(getattr(code.code, "merge", None)) else "recompute"
