"""AES_ENCRYPT and AES_DECRYPT."""

from __future__ import annotations

from sash.errors import TypeMismatchError
from sash.plan.expressions import Expression, Literal
from sash.plan.types import BINARY, STRING
from sash.sql.function_rules import Arguments, of_types
from sash.sql.signatures.base import Signature

_PLACE_OF_VECTOR = 4


def _encrypt(name: str, arguments: Arguments) -> Expression:
    """Only with an initialization vector, or in a mode that has none: Spark would take a random one."""
    mode, vector = arguments[2:3], arguments[_PLACE_OF_VECTOR : _PLACE_OF_VECTOR + 1]
    without = any(isinstance(each, Literal) and str(each.value).upper() == "ECB" for each in mode)
    if not without and (not vector or (isinstance(vector[0], Literal) and not vector[0].value)):
        raise TypeMismatchError(
            f"{name} without a vector takes a random one, so a repeated batch would have other values: pass the mode, the padding "
            "and a vector, as in aes_encrypt(x, key, 'GCM', 'DEFAULT', vector)"
        )
    return of_types((BINARY, BINARY, STRING, STRING, BINARY, BINARY), BINARY)(name, arguments)


SIGNATURES: dict[str, Signature] = {
    "aes_encrypt": Signature(2, 6, _encrypt),
    **{
        name: Signature(2, 5, of_types((BINARY, BINARY, STRING, STRING, BINARY), BINARY))
        for name in ("aes_decrypt", "try_aes_decrypt")
    },
}
