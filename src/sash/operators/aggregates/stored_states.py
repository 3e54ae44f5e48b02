"""States of user-defined aggregates as bytes, and back.

The bytes may come from a checkpoint, which others may have written to. So reading them makes values of known types only, and
instances of classes of the module that defines the aggregate; anything else that `pickle` could call is refused.
"""

from __future__ import annotations

import io
import pickle
from typing import Any

_KNOWN = {
    "builtins": {
        "bool", "bytearray", "bytes", "complex", "dict", "float", "frozenset", "int", "list", "range", "set", "slice", "str",
        "tuple",
    },
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "numpy": {"dtype", "ndarray"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "numpy.core.multiarray": {"_reconstruct", "scalar"},
    "numpy.core.numeric": {"_frombuffer"},
    "uuid": {"UUID"},
}  # fmt: skip
"""What a state may consist of, besides the classes of its aggregate's module; the names of numpy are those it pickles."""


def store_state(state: Any) -> bytes:
    """The state as bytes."""
    return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)


def load_state(stored: bytes, module: str) -> Any:
    """The state that was stored by an aggregate of a module."""
    return _StateReader(stored, module).load()


class _StateReader(pickle.Unpickler):
    def __init__(self, stored: bytes, module: str) -> None:
        super().__init__(io.BytesIO(stored))
        self._module = module

    def find_class(self, module: str, name: str) -> Any:
        if name in _KNOWN.get(module, ()):
            return super().find_class(module, name)
        if module == self._module:
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:  # not what the module has imported
                return found
        raise pickle.UnpicklingError(
            f"a state may consist of plain values, collections, numpy arrays and instances of classes of the module {self._module}, "
            f"not of {module}.{name}"
        )
