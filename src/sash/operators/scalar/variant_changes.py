"""VARIANT_INSERT, VARIANT_SET, VARIANT_DELETE, VARIANT_ARRAY_APPEND and VARIANT_STRIP_NULLS."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from sash.errors import EvaluationError
from sash.operators.scalar.function import MANY, Function, by_value
from sash.plan.json_reader import JsonObject
from sash.plan.variants import read_stored, sort_key, variant_path, write_stored

Step = str | int
_ABSENT = object()


def _steps(path: str) -> tuple[Step, ...]:
    steps = variant_path(path)
    assert steps is not None
    return steps


def _mismatch(name: str, path: str) -> EvaluationError:
    return EvaluationError(
        f"{name}: the path {path} goes through a value that is neither the object nor the list it needs; use "
        f"try_{name} to get NULL instead"
    )


def _part(value: Any, step: Step, name: str, path: str) -> Any:
    """What is at a step of a value, which must be of the kind that the step goes into."""
    if isinstance(value, JsonObject) and isinstance(step, str):
        return next((each for key, each in value.pairs if key == step), _ABSENT)
    if isinstance(value, list) and isinstance(step, int):
        return value[step] if step < len(value) else _ABSENT
    raise _mismatch(name, path)


def _put(value: Any, step: Step, part: Any) -> Any:
    """The value with a part at a step, in the place of the one that is there; NULLs fill a list up to it."""
    if isinstance(value, JsonObject):
        pairs = [(key, each) for key, each in value.pairs if key != step] + [(str(step), part)]
        return JsonObject(sorted(pairs, key=lambda pair: sort_key(pair[0])))
    assert isinstance(step, int)
    filled = value + [None] * (step + 1 - len(value))
    return [*filled[:step], part, *filled[step + 1 :]]


def _changed(
    value: Any, steps: tuple[Step, ...], path: str, name: str, change: Callable[[Any, Step, Any], Any], create: bool
) -> Any:
    """The value with what is at the last step changed; `create` makes objects and lists that are missing on the way."""
    step, following = steps[0], steps[1:]
    part = _part(value, step, name, path)
    if not following:
        return change(value, step, part)
    if part is _ABSENT:
        if not create:
            return value
        part = JsonObject([]) if isinstance(following[0], str) else []
    return _put(value, step, _changed(part, following, path, name, change, create))


def _insert(stored: str, path: str, new: str) -> str:
    made = read_stored(new)

    def change(value: Any, step: Step, part: Any) -> Any:
        if isinstance(value, list) and part is not _ABSENT:
            assert isinstance(step, int)
            return [*value[:step], made, *value[step:]]
        if part is not _ABSENT:
            raise EvaluationError(
                f"variant_insert: the object has a field {step!r} already; use variant_set to replace it, or "
                "try_variant_insert to get NULL"
            )
        return _put(value, step, made)

    return write_stored(_changed(read_stored(stored), _steps(path), path, "variant_insert", change, create=True))


def _set(stored: str, path: str, new: str, create: bool = True) -> str:
    made = read_stored(new)

    def change(value: Any, step: Step, part: Any) -> Any:
        return value if part is _ABSENT and not create else _put(value, step, made)

    return write_stored(_changed(read_stored(stored), _steps(path), path, "variant_set", change, create))


def _delete(stored: str, *paths: str) -> str:
    """Without what is on the paths; a path that leads nowhere changes nothing."""
    value = read_stored(stored)

    def change(value: Any, step: Step, part: Any) -> Any:
        if part is _ABSENT:
            return value
        if isinstance(value, list):
            assert isinstance(step, int)
            return [*value[:step], *value[step + 1 :]]
        return JsonObject([pair for pair in value.pairs if pair[0] != step])

    for path in paths:
        with suppress(EvaluationError):
            value = _changed(value, _steps(path), path, "variant_delete", change, create=False)
    return write_stored(value)


def _append(stored: str, path: str, new: str) -> str:
    steps, made, name = _steps(path), read_stored(new), "variant_array_append"

    def appended(part: Any) -> Any:
        if not isinstance(part, list):
            raise _mismatch(name, path)
        return [*part, made]

    def change(value: Any, step: Step, part: Any) -> Any:
        return value if part is _ABSENT else _put(value, step, appended(part))

    value = read_stored(stored)
    return write_stored(_changed(value, steps, path, name, change, create=False) if steps else appended(value))


def _strip_nulls(stored: str, lists: bool = True) -> str:
    return write_stored(_stripped(read_stored(stored), lists))


def _stripped(value: Any, lists: bool) -> Any:
    if isinstance(value, JsonObject):
        return JsonObject([(name, _stripped(each, lists)) for name, each in value.pairs if each is not None])
    if isinstance(value, list):
        return [_stripped(each, lists) for each in value if not lists or each is not None]
    return value


def _or_null(function: Callable[..., str]) -> Callable[..., str | None]:
    def tried(*arguments: Any) -> str | None:
        try:
            return function(*arguments)
        except EvaluationError:
            return None

    return tried


FUNCTIONS: dict[str, Function] = {
    "variant_insert": by_value(_insert, 3, fails=True),
    "variant_set": by_value(_set, 3, 4, fails=True),
    "variant_delete": by_value(_delete, 2, MANY),
    "variant_array_append": by_value(_append, 3, fails=True),
    "variant_strip_nulls": by_value(_strip_nulls, 1, 2),
    "try_variant_insert": by_value(_or_null(_insert), 3),
    "try_variant_set": by_value(_or_null(_set), 3, 4),
    "try_variant_array_append": by_value(_or_null(_append), 3),
}
