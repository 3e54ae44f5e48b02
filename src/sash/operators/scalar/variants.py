"""Functions of VARIANT, which is stored as text."""

from __future__ import annotations

from sash.errors import EvaluationError
from sash.operators.scalar import variant_casts, variant_changes
from sash.operators.scalar.function import Function, by_value
from sash.plan.json_reader import JsonError
from sash.plan.variants import stored_variant, variant_at, variant_json, variant_path, variant_schema


def _parse(text: str) -> str:
    try:
        return stored_variant(text)
    except JsonError:
        raise EvaluationError(f"parse_json: {text[:40]!r} is no JSON; use try_parse_json to get NULL instead") from None


def _try_parse(text: str) -> str | None:
    try:
        return stored_variant(text)
    except JsonError:
        return None


def _get(stored: str, path: str) -> str | None:
    steps = variant_path(path)
    assert steps is not None
    return variant_at(stored, steps)


FUNCTIONS: dict[str, Function] = {
    "variant_parse": by_value(_parse, 1, fails=True),
    "variant_try_parse": by_value(_try_parse, 1),
    "variant_at": by_value(_get, 2),
    "variant_json": by_value(variant_json, 1),
    "variant_is_null": by_value(lambda stored: stored == "null", 1),
    "variant_schema": by_value(variant_schema, 1),
    "variant_is_valid": by_value(lambda _: True, 1),
    **variant_casts.FUNCTIONS,
    **variant_changes.FUNCTIONS,
}
