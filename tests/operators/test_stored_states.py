"""States of user-defined aggregates are read from checkpoints: whoever writes there must not be able to execute code."""

from __future__ import annotations

import os
import pickle
from collections import Counter, OrderedDict, defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from subprocess import Popen
from typing import Any

import numpy as np
import pytest

from sash.errors import EvaluationError
from sash.operators.aggregates.stored_states import load_state, store_state
from sash.testing import replay


@dataclass
class Own:
    parts: list[Any]


VALUES = [
    None, 7, 2.5, "text", b"bytes", (1, [2, {"k": {3}}]), frozenset({4}), bytearray(b"b"), 1j, range(3), Counter("aab"),
    deque([1, 2], maxlen=3), OrderedDict(a=1), Decimal("1.50"), date(2026, 1, 31), timedelta(seconds=1),
    datetime(2026, 1, 31, tzinfo=UTC), np.float64(1.5), Own([Own([1]), np.int32(2)]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_plain_values_and_own_classes_are_read(value: Any) -> None:
    assert load_state(store_state(value), __name__) == value


def test_arrays_and_defaults_are_read() -> None:
    state = defaultdict(list, a=[np.arange(3)], b=[np.array(["x"], object)])
    again = load_state(store_state(state), __name__)
    assert again["c"] == []
    assert [part.tolist() for part in (again["a"][0], again["b"][0])] == [[0, 1, 2], ["x"]]


class Executing:
    """An object that pickle makes by calling a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize(
    ("function", "arguments"),
    [(os.system, ("true",)), (Popen, ("true",)), (eval, ("1",)), (load_state, (b"", "os")), (np.load, ("x",))],
)
def test_nothing_else_is_called(function: Any, arguments: tuple[Any, ...]) -> None:
    stored = pickle.dumps([Executing(function, *arguments)])
    with pytest.raises(pickle.UnpicklingError, match="a state may consist of"):
        load_state(stored, __name__)


class Opening:
    """An aggregate whose states cannot be read again."""

    def init(self) -> Any:
        return []

    def add(self, state: Any, values: Any) -> Any:
        return [*state, Path("elsewhere")]

    def remove(self, state: Any, values: Any) -> Any:
        return state[1:]

    def result(self, state: Any) -> int:
        return len(state)


def test_a_state_that_could_not_be_read_is_refused_when_it_is_stored() -> None:
    with pytest.raises(
        EvaluationError, match=r"opening \(version 1\) failed: .* a state may consist of .* not of pathlib"
    ):
        replay(
            "SELECT opening(v) AS n FROM s [RANGE 5 SECONDS]",
            {"s": [{"ts": 1, "v": 1}, {"ts": 2, "v": 1}]},
            unit="s",
            batch=1,
            aggregates={"opening": (Opening, "INT")},
        )
