"""Physical plans as JSON text, so that a checkpoint can hold the plan of the job that wrote it.

The text is a list of objects, each after those it refers to: `[class, {field: value}]`, where a value is a plain one or
`{kind: ...}`, and `{"object": n}` stands for the n-th object. An object that two others share is written once: nodes of a plan
are compared by identity. Fields that a later version adds have defaults there, so that it can read what an earlier one wrote.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from importlib import import_module
from typing import Any

import pyarrow as pa

from sash.errors import CheckpointError
from sash.physical.nodes import PhysicalPlan
from sash.plan.patterns import Pattern
from sash.plan.user_code import UserCode

_MODULES = frozenset(
    {
        "operators.base",
        "operators.expiration_choice",
        "operators.join_program",
        "operators.reordering",
        "physical.join_plan",
        "physical.nodes",
        "plan.expressions",
        "plan.nodes",
        "plan.statistics",
        "plan.time_bounds",
        "plan.types",
        "plan.user_code",
        "plan.window_calls",
    }
)
"""The modules whose classes plans consist of; a text that names any other is refused."""

_CODE = "packed"
"""The field of user code that is not stored: it would be executed."""


def encode_plan(plan: PhysicalPlan) -> str:
    """The plan as text."""
    writer = _Writer()
    root = writer.write(plan)
    return json.dumps({"objects": writer.objects, "root": root}, separators=(",", ":"))


def decode_plan(text: str) -> PhysicalPlan:
    """The plan that was written as this text."""
    try:
        stored = json.loads(text)
        objects: list[Any] = []
        for name, given in stored["objects"]:
            objects.append(_made(_class(name), {key: _decode(value, objects) for key, value in given.items()}))
        plan = _decode(stored["root"], objects)
    except CheckpointError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
        raise CheckpointError(f"the plan in the checkpoint cannot be read by this version of Sash: {error}") from error
    assert isinstance(plan, PhysicalPlan)
    return plan


def _class(name: str) -> Callable[..., Any]:
    module, _, kind = name.rpartition(".")
    if module not in _MODULES:
        raise CheckpointError(f"the plan in the checkpoint has a part of unknown kind: {name}")
    found = getattr(import_module(f"sash.{module}"), kind, None)
    if not (isinstance(found, type) and is_dataclass(found)):
        raise CheckpointError(f"the plan in the checkpoint has a part of unknown kind: {name}")
    return found


def _made(kind: Callable[..., Any], given: dict[str, Any]) -> Any:
    if kind is not UserCode:
        return kind(**given)
    given.pop(_CODE, None)  # in the plans of earlier versions
    return UserCode(**given).known()


class _Writer:
    """Writes objects after those that they refer to, without recursion over deep trees."""

    def __init__(self) -> None:
        self.objects: list[list[Any]] = []
        self._places: dict[int, int] = {}

    def write(self, root: Any) -> Any:
        pending = [(root, False)]
        while pending:
            value, parts_are_written = pending.pop()
            if id(value) in self._places:
                continue
            parts = _fields(value)
            if not parts_are_written:
                pending.append((value, True))
                pending.extend((part, False) for part in reversed(list(_objects(parts.values()))))
                continue
            self._places[id(value)] = len(self.objects)
            name = f"{type(value).__module__.removeprefix('sash.')}.{type(value).__qualname__}"
            assert name.rpartition(".")[0] in _MODULES, name
            self.objects.append([name, {key: self._encode(part) for key, part in parts.items()}])
        return self._encode(root)

    def _encode(self, value: Any) -> Any:
        if is_dataclass(value):
            return {"object": self._places[id(value)]}
        if isinstance(value, tuple | list | frozenset):
            kind = "tuple" if isinstance(value, tuple) else "list" if isinstance(value, list) else "set"
            items = sorted(value, key=repr) if kind == "set" else value
            return {kind: [self._encode(part) for part in items]}
        if isinstance(value, Mapping):
            return {"map": [[self._encode(key), self._encode(part)] for key, part in value.items()]}
        return _plain(value)


def _fields(value: Any) -> dict[str, Any]:
    return {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.init and not (isinstance(value, UserCode) and field.name == _CODE)
    }


def _objects(values: Iterable[Any]) -> Iterable[Any]:
    """The dataclass instances in values, in order, also those inside containers."""
    for value in values:
        if is_dataclass(value):
            yield value
        elif isinstance(value, tuple | list | frozenset):
            yield from _objects(value)
        elif isinstance(value, Mapping):
            yield from _objects(value.keys())
            yield from _objects(value.values())


def _plain(value: Any) -> Any:
    """A value without parts: as it is, or with its kind."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"float": value.hex()}
        case Pattern():
            return {"pattern": value.name}
        case pa.DataType():
            schema = pa.schema([pa.field("type", value)]).serialize()
            return {"type": base64.b64encode(schema.to_pybytes()).decode()}
        case bytes():
            return {"bytes": base64.b64encode(value).decode()}
        case Decimal():
            return {"decimal": str(value)}
        case datetime():
            return {"timestamp": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
        case clock_time():
            return {"time": value.isoformat()}
        case timedelta():
            return {"duration": [value.days, value.seconds, value.microseconds]}
    raise TypeError(f"a plan cannot be stored with a value of type {type(value).__name__}")


_PLAIN: dict[str, Callable[[Any], Any]] = {
    "float": float.fromhex,
    "pattern": Pattern.__getitem__,
    "type": lambda text: pa.ipc.read_schema(pa.BufferReader(base64.b64decode(text))).field(0).type,
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "timestamp": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": clock_time.fromisoformat,
    "duration": lambda parts: timedelta(*parts),
}


def _decode(value: Any, objects: list[Any]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, inner),) = value.items()
    match kind:
        case "object":
            return objects[inner]
        case "tuple" | "list" | "set":
            parts = [_decode(part, objects) for part in inner]
            return tuple(parts) if kind == "tuple" else parts if kind == "list" else frozenset(parts)
        case "map":
            return {_decode(key, objects): _decode(part, objects) for key, part in inner}
    return _PLAIN[kind](inner)
