"""Functions and aggregates that are Python code: their names, types and versions, and their code.

Most are written by users. Some aggregates of Sash's own have the same methods as those of users.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, fields
from functools import partial
from importlib import import_module
from typing import Any, Literal

import pyarrow as pa

from sash.errors import CatalogError

_registered: dict[tuple[str, str], UserCode] = {}
"""What has been registered in this process, by name and version, the last of each."""


@dataclass(frozen=True)
class UserCode:
    """A Python function of Arrow arrays, or a class of aggregates. Two of one name and version are the same.

    `packed` is the code as bytes that `pickle` reads, for other processes; without it, it stays in this one. Of an aggregate
    of Sash's own, `library` is the module and the class, made with `settings`.
    """

    name: str
    version: str
    dtype: pa.DataType
    packed: bytes = field(default=b"", compare=False, repr=False)
    library: str = ""
    settings: tuple[int | float, ...] = ()
    _loaded: Any = field(default=None, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, name: str, version: str, dtype: pa.DataType, code: Any, packed: bytes = b"") -> UserCode:
        """The code with what is to be executed in this process."""
        made = cls(name, version, dtype, packed)
        object.__setattr__(made, "_loaded", code)
        _registered[name.lower(), version] = made
        return made

    def known(self) -> UserCode:
        """The code of this name, version and type that this process has registered; itself if there is none.

        A checkpoint names code and does not hold it, because whoever can write to a checkpoint could then execute any.
        """
        return self if self.library or (found := _registered.get((self.name.lower(), self.version))) != self else found

    @property
    def code(self) -> Any:
        """The function or class."""
        if self._loaded is None:
            object.__setattr__(self, "_loaded", self._load())
        return self._loaded

    def _load(self) -> Any:
        if not self.packed and not self.library:
            raise self._missing()
        if not self.library:
            return pickle.loads(self.packed)  # noqa: S301  (packed by the engine)
        module, _, name = self.library.partition(":")
        return partial(getattr(import_module(f"sash.operators.aggregates.{module}"), name), *self.settings)

    def __getstate__(self) -> dict[str, Any]:
        if not self.packed and not self.library:
            raise self._missing()
        return {**{each.name: getattr(self, each.name) for each in fields(self)}, "_loaded": None}

    def _missing(self) -> CatalogError:
        if self._loaded is not None:
            return CatalogError(f"{self.name} is only known to this process: register it with an engine")
        return CatalogError(
            f"the checkpoint needs version {self.version} of {self.name}: register it, too, before the later version, until the "
            "job has changed"
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)

    @property
    def forgets(self) -> bool:
        """Whether values can be taken back; a sketch only merges."""
        return self.library.partition(":")[0] not in ("kll", "sketches")

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"


Way = Literal["remove", "merge", "recompute"]
"""How such an aggregate is maintained: by taking rows back, by two stacks of merged states, or anew from all rows."""


def way_of(code: UserCode, expiry: str, *, distinct: bool = False) -> Way:
    """How the aggregate is maintained over rows that end in this way; that of distinct values is computed anew."""
    if distinct:
        return "recompute"
    made = code.code.func if code.library else code.code
    if callable(getattr(made, "remove", None)):
        return "remove"
    return "merge" if expiry == "fifo" and callable(getattr(made, "merge", None)) else "recompute"
