"""GET_JSON_OBJECT, JSON_TUPLE, JSON_ARRAY_LENGTH and JSON_OBJECT_KEYS: parts of a JSON text, as text.

Paths are evaluated as Spark does, whose rules for `[*]` come from Hive: a single match is not in an array, and of two
wildcards in a row the arrays are flattened.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Literal

from sash.operators.scalar.function import Function, by_value, by_value_or_null
from sash.plan.java_numbers import double_text
from sash.plan.json_reader import JsonError, JsonObject, read_json, write_json

Style = Literal["raw", "quoted", "flatten"]
Step = tuple[str, str | int]
"""A step of a path: the field of an object by name, an element of an array by number, or all elements (`all`)."""

_STEP = re.compile(r"\.\*|\['\*'\]|\.([^.\[]+)|\['([^']+)'\]|\[(\*|[0-9]+)\]")


def json_text(value: Any) -> str:
    """A value as JSON, with numbers as Spark writes them."""
    return write_json(value, double_text)


@lru_cache(maxsize=1024)
def _path(text: str) -> tuple[Step, ...] | None:
    """The steps of a path, None if it is no path."""
    if not text.startswith("$"):
        return None
    steps: list[Step] = []
    at = 1
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None:
            return None
        at = found.end()
        name = found[1] or found[2]
        if name is not None:
            steps.append(("field", name))
        elif found[3] is None:
            steps.append(("none", ""))  # a wildcard of fields, which matches none
        else:
            steps.append(("all", "") if found[3] == "*" else ("item", int(found[3])))
    return tuple(steps)


def _get_json_object(text: str, written: str) -> str | None:
    path = _path(written)
    if path is None:
        return None
    try:
        value = read_json(text)
    except JsonError:
        return None
    out: list[str] = []
    return out[0] if _evaluate(value, path, "raw", out) else None


def _evaluate(value: Any, path: tuple[Step, ...], style: Style, out: list[str]) -> bool:
    """Write the values on the path to `out`; whether there is any."""
    if not path:
        if isinstance(value, list) and style == "flatten":
            return _count(value, path, style, out) > 0
        out.append(value if isinstance(value, str) and style == "raw" else json_text(value))
        return True
    (kind, key), rest = path[0], path[1:]
    if isinstance(value, JsonObject) and kind == "field":
        named = (each for name, each in value.pairs if name == key and each is not None)
        return any(_evaluate(each, rest, style, out) for each in named)
    if not isinstance(value, list):
        return False
    if kind == "item":
        if not isinstance(key, int) or key >= len(value):
            return False
        return _evaluate(value[key], rest, "quoted" if rest and rest[0][0] == "all" else style, out)
    return _all(value, rest, style, out) if kind == "all" else False


def _count(values: list[Any], path: tuple[Step, ...], style: Style, out: list[str]) -> int:
    """Write what is on the path in each of the values; in how many there is any."""
    return sum(_evaluate(each, path, style, out) for each in values)


def _all(values: list[Any], rest: tuple[Step, ...], style: Style, out: list[str]) -> bool:
    """The elements of an array, for `[*]`."""
    inner: list[str] = []
    if rest and rest[0][0] == "all":
        found = _count(values, rest[1:], "flatten", inner)
        out.append(f"[{','.join(inner)}]")
        return found > 0
    if style == "quoted":
        found = _count(values, rest, "quoted", inner)
        out.append(f"[{','.join(inner)}]")
        return found > 0
    below: Style = "quoted" if style == "raw" else "flatten"
    count = _count(values, rest, below, inner)
    if count:
        joined = ",".join(inner)
        out.append(f"[{joined}]" if count > 1 else joined)
    return count > 0


def _json_tuple(text: str | None, *names: str | None) -> dict[str, str | None]:
    """The fields of an object; the last of a name counts."""
    found: dict[str, str | None] = {}
    try:
        value = None if text is None else read_json(text)
    except JsonError:
        value = None
    if isinstance(value, JsonObject):
        for name, each in value.pairs:
            if each is not None:
                found[name] = each if isinstance(each, str) else json_text(each)
    return {f"c{place}": None if name is None else found.get(name) for place, name in enumerate(names)}


def _json_array_length(text: str) -> int | None:
    try:
        value = read_json(text)
    except JsonError:
        return None
    return len(value) if isinstance(value, list) else None


def _json_object_keys(text: str) -> list[str] | None:
    try:
        value = read_json(text)
    except JsonError:
        return None
    return [name for name, _ in value.pairs] if isinstance(value, JsonObject) else None


FUNCTIONS: dict[str, Function] = {
    "get_json_object": by_value(_get_json_object, 2),
    "json_tuple": by_value_or_null(_json_tuple, 2, 1 << 30),
    "json_array_length": by_value(_json_array_length, 1),
    "json_object_keys": by_value(_json_object_keys, 1),
}
