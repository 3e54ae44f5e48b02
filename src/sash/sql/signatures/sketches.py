"""Functions of sketches."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DOUBLE, FLOAT, INT, NULL, type_name
from sash.sql.coercion import coerce, implicit
from sash.sql.function_rules import Arguments, Rule
from sash.sql.signatures.base import Signature


def _sketch(name: str, argument: Expression) -> Expression:
    if argument.dtype not in (BINARY, NULL):
        raise TypeMismatchError(f"{name} takes BINARY, not {type_name(argument.dtype)}")
    return coerce(argument, BINARY)


def _estimate(name: str, arguments: Arguments) -> Expression:
    return Call(name, (_sketch(name, arguments[0]),), BIGINT)


def _two(name: str, arguments: Arguments) -> Expression:
    """Two sketches, and for unions a BOOLEAN or the size of the result, which is a constant."""
    sketches = tuple(_sketch(name, argument) for argument in arguments[:2])
    rest = tuple(arguments[2:])
    if rest and name == "hll_union" and not (isinstance(rest[0], Literal) and rest[0].dtype == BOOLEAN):
        raise TypeMismatchError("the third argument of hll_union is TRUE or FALSE")
    if rest and name == "theta_union":
        size = rest[0]
        if not (isinstance(size, Literal) and size.dtype == INT and 5 <= (size.value or 0) <= 26):
            raise TypeMismatchError("the third argument of theta_union is a whole number from 5 to 26")
    return Call(name, (*sketches, *rest), BINARY)


_KLL: dict[str, pa.DataType] = {"bigint": BIGINT, "double": DOUBLE, "float": FLOAT}


def _kll_part(parameter: pa.DataType, result: pa.DataType) -> Rule:
    """A sketch, and one value or an array of values, which makes an array of results."""

    def rule(name: str, arguments: Arguments) -> Expression:
        sketch, value = _sketch(name, arguments[0]), arguments[1]
        if pa.types.is_list(value.dtype):
            return Call(name, (sketch, implicit(value, pa.list_(parameter), name)), pa.list_(result))
        return Call(name, (sketch, implicit(value, parameter, name)), result)

    return rule


SIGNATURES: dict[str, Signature] = {
    **{name: Signature(1, 1, _estimate) for name in ("hll_sketch_estimate", "theta_sketch_estimate")},
    **{name: Signature(2, 3, _two) for name in ("hll_union", "theta_union")},
    **{f"kll_sketch_get_n_{kind}": Signature(1, 1, _estimate) for kind in _KLL},
    **{f"kll_sketch_get_quantile_{kind}": Signature(2, 2, _kll_part(DOUBLE, dtype)) for kind, dtype in _KLL.items()},
    **{f"kll_sketch_get_rank_{kind}": Signature(2, 2, _kll_part(dtype, DOUBLE)) for kind, dtype in _KLL.items()},
    **{f"kll_sketch_merge_{kind}": Signature(2, 2, _two) for kind in _KLL},
    **{name: Signature(2, 2, _two) for name in ("theta_difference", "theta_intersection")},
}
