"""TO_CSV."""

from __future__ import annotations

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression
from sash.plan.types import STRING
from sash.sql.function_rules import Arguments
from sash.sql.signatures.base import OnlySparkError, Signature


def _to_csv(name: str, arguments: Arguments) -> Expression:
    value, *options = arguments
    if not types.is_struct(value.dtype):
        raise TypeMismatchError(f"{name} takes a struct, not {types.type_name(value.dtype)}")
    if options:
        raise OnlySparkError(f"Sash does not run {name} with options")
    for field in value.dtype:
        if types.is_nested(field.type) or types.is_sql_type(field.type) or field.type == types.BINARY:
            raise OnlySparkError(f"Sash does not run {name} of {types.type_name(value.dtype)}")
    return Call(name, (value,), STRING)


SIGNATURES: dict[str, Signature] = {"to_csv": Signature(1, 2, _to_csv)}
