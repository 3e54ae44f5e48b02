"""Functions of VARIANT."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import ParseError

from sash.errors import SashError, TypeMismatchError, UnsupportedSqlError
from sash.plan import types
from sash.plan.expressions import Call, Cast, Expression, Literal
from sash.plan.sql_types import VARIANT
from sash.plan.types import BOOLEAN, STRING, type_name
from sash.plan.variants import variant_path
from sash.sql.coercion import becomes_variant, castable, implicit
from sash.sql.function_rules import Arguments, Rule
from sash.sql.signatures.base import Signature
from sash.sql.source import SqlText
from sash.sql.type_names import type_of


def _variant(name: str, argument: Expression) -> Expression:
    if argument.dtype != VARIANT:
        raise TypeMismatchError(f"{name} takes a VARIANT, not {type_name(argument.dtype)}: use parse_json")
    return argument


def _parse(canonical: str) -> Rule:
    return lambda name, arguments: Call(canonical, (implicit(arguments[0], STRING, name),), VARIANT)


def _of_variant(canonical: str, result: pa.DataType) -> Rule:
    return lambda name, arguments: Call(canonical, (_variant(name, arguments[0]),), result)


def _is_null(name: str, arguments: Arguments) -> Expression:
    """IS_VARIANT_NULL is false for NULL."""
    found = Call("variant_is_null", (_variant(name, arguments[0]),), BOOLEAN)
    return Call("coalesce", (found, Literal(False, BOOLEAN)), BOOLEAN)


def _get(name: str, arguments: Arguments) -> Expression:
    """VARIANT_GET(v, path [, type])."""
    value, path, *kind = arguments
    if not isinstance(path, Literal) or not isinstance(path.value, str):
        raise TypeMismatchError(f"the second argument of {name} is a constant path, such as '$.a[0]'")
    found = extracted(name, value, path.value)
    if not kind:
        return found
    if not isinstance(kind[0], Literal) or not isinstance(kind[0].value, str):
        raise TypeMismatchError(f"the third argument of {name} is the name of a type, such as 'int'")
    try:
        dtype = type_of(SqlText(kind[0].value), exp.DataType.build(kind[0].value, dialect="spark"))
    except (ParseError, SashError, ValueError):
        raise TypeMismatchError(f"{name}: there is no type {kind[0].value}") from None
    if dtype == VARIANT:
        return found
    if not castable(VARIANT, dtype):
        raise UnsupportedSqlError(f"Sash does not run {name} to {type_name(dtype)}: get its parts")
    return Cast(found, dtype, name.startswith("try"))


def extracted(name: str, value: Expression, path: str) -> Expression:
    """What is on a path of a VARIANT."""
    if variant_path(path) is None:
        raise TypeMismatchError(f"{path} is no path of a VARIANT: write it as $.a[0]['b c']")
    return Call("variant_at", (_variant(name, value), Literal(path, STRING)), VARIANT)


def _to_object(name: str, arguments: Arguments) -> Expression:
    """TO_VARIANT_OBJECT(struct, array or map)."""
    (value,) = arguments
    if not types.is_nested(value.dtype) or not becomes_variant(value.dtype, structs=True):
        raise TypeMismatchError(
            f"{name} takes a struct, an array, or a map by texts, of plain values, not {type_name(value.dtype)}"
        )
    return Call("variant_of", (value,), VARIANT)


def _changed(*kinds: str) -> Rule:
    """A function of a variant, and of paths, values and flags."""

    def bind(name: str, arguments: Arguments) -> Expression:
        given: list[Expression] = [_variant(name, arguments[0])]
        for kind, argument in zip(kinds or ("path",) * len(arguments), arguments[1:], strict=False):
            if kind == "path":
                given.append(_path(name, argument))
            elif kind == "value":
                given.append(argument if argument.dtype == VARIANT else _as_variant(name, argument))
            else:
                given.append(implicit(argument, BOOLEAN, name))
        return Call(name, tuple(given), VARIANT)

    return bind


def _path(name: str, argument: Expression) -> Expression:
    if not isinstance(argument, Literal) or not isinstance(argument.value, str):
        raise TypeMismatchError(f"{name} takes constant paths, such as '$.a[0]'")
    steps = variant_path(argument.value)
    if steps is None or (not steps and not name.endswith("array_append")):
        raise TypeMismatchError(f"{argument.value} is no path that {name} takes: write it as $.a[0]['b c']")
    return argument


def _as_variant(name: str, argument: Expression) -> Expression:
    if not castable(argument.dtype, VARIANT):
        raise TypeMismatchError(f"{name} takes a VARIANT, not {type_name(argument.dtype)}")
    return Cast(argument, VARIANT)


SIGNATURES: dict[str, Signature] = {
    "to_variant_object": Signature(1, 1, _to_object),
    "is_valid_variant": Signature(1, 1, _of_variant("variant_is_valid", BOOLEAN)),
    "variant_insert": Signature(3, 3, _changed("path", "value")),
    "try_variant_insert": Signature(3, 3, _changed("path", "value")),
    "variant_set": Signature(3, 4, _changed("path", "value", "flag")),
    "try_variant_set": Signature(3, 4, _changed("path", "value", "flag")),
    "variant_array_append": Signature(3, 3, _changed("path", "value")),
    "try_variant_array_append": Signature(3, 3, _changed("path", "value")),
    "variant_delete": Signature(2, None, _changed()),
    "variant_strip_nulls": Signature(1, 2, _changed("flag")),
    "parse_json": Signature(1, 1, _parse("variant_parse")),
    "try_parse_json": Signature(1, 1, _parse("variant_try_parse")),
    "is_variant_null": Signature(1, 1, _is_null),
    "schema_of_variant": Signature(1, 1, _of_variant("variant_schema", STRING)),
    **{name: Signature(2, 3, _get) for name in ("variant_get", "try_variant_get")},
}
