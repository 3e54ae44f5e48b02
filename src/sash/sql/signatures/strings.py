"""Functions of text and bytes."""

from __future__ import annotations

import pyarrow as pa

from sash.errors import TypeMismatchError
from sash.plan import types
from sash.plan.expressions import Call, Expression, Literal
from sash.plan.types import BIGINT, BINARY, BOOLEAN, INT, STRING
from sash.sql.coercion import implicit, unify
from sash.sql.function_rules import Arguments, Rule, digest, of_types
from sash.sql.signatures.base import Signature

_FORMATTED = (types.BOOLEAN, types.STRING, types.NULL)


def text_or_bytes(arguments: Arguments, name: str) -> list[Expression]:
    """Arguments that are all BINARY, or all STRING."""
    if all(argument.dtype in (types.BINARY, types.NULL) for argument in arguments) and any(
        argument.dtype == types.BINARY for argument in arguments
    ):
        return unify(arguments, f"the arguments of {name}")
    return [implicit(argument, types.STRING, name) for argument in arguments]


def same_kind(texts: int, *parameters: pa.DataType) -> Rule:
    """The first `texts` arguments are all text or all bytes, which is the type of the result; then these types."""

    def rule(name: str, arguments: Arguments) -> Expression:
        data = text_or_bytes(arguments[:texts], name)
        rest = [implicit(argument, want, name) for argument, want in zip(arguments[texts:], parameters, strict=False)]
        return Call(name, (*data, *rest), data[0].dtype)

    return rule


def _elt(name: str, arguments: Arguments) -> Expression:
    values = text_or_bytes(arguments[1:], name)
    return Call(name, (implicit(arguments[0], INT, name), *values), values[0].dtype)


def _pad(name: str, arguments: Arguments) -> Expression:
    """LPAD and RPAD of text, or of bytes."""
    if arguments[0].dtype == BINARY:
        raise TypeMismatchError(f"{name} takes STRING; cast BINARY to STRING")
    return of_types((STRING, INT, STRING), STRING)(name, arguments)


def _mask(name: str, arguments: Arguments) -> Expression:
    """The replacements are constants of one character, or NULL."""
    for argument in arguments[1:]:
        constant = argument.value if isinstance(argument, Literal) else ""
        if not (constant is None or (isinstance(constant, str) and len(constant) == 1)):
            raise TypeMismatchError("the replacements of mask are constants of one character, or NULL")
    return of_types((STRING,), STRING)(name, arguments)


def _format_string(name: str, arguments: Arguments) -> Expression:
    pattern, *values = arguments
    for value in values:
        if not (value.dtype in _FORMATTED or types.is_numeric(value.dtype)):
            raise TypeMismatchError(
                f"{name} takes text, numbers and BOOLEAN, not {types.type_name(value.dtype)}: cast it to STRING"
            )
    return Call("format_string", (implicit(pattern, STRING, name), *values), STRING)


def _locate(name: str, arguments: Arguments) -> Expression:
    """LOCATE(part, text, start)."""
    if len(arguments) == 2:
        return of_types((STRING,), INT)("instr", (arguments[1], arguments[0]))
    return of_types((STRING, STRING, INT), INT)("locate", arguments)


SIGNATURES: dict[str, Signature] = {
    "length": Signature(1, 1, digest((), INT)),
    "octet_length": Signature(1, 1, digest((), INT)),
    "bit_length": Signature(1, 1, digest((), INT)),
    "substring": Signature(2, 3, same_kind(1, INT, INT)),
    "left": Signature(2, 2, same_kind(1, INT)),
    "right": Signature(2, 2, of_types((STRING, INT), STRING)),
    **{name: Signature(2, 3, _pad) for name in ("lpad", "rpad")},
    "overlay": Signature(3, 4, same_kind(2, INT, INT)),
    "elt": Signature(2, None, _elt),
    "base64": Signature(1, 1, digest((), STRING)),
    "unbase64": Signature(1, 1, of_types((STRING,), BINARY)),
    "to_base32": Signature(1, 1, digest((), STRING)),
    "from_base32": Signature(1, 1, of_types((STRING,), BINARY)),
    "unhex": Signature(1, 1, of_types((STRING,), BINARY)),
    **{name: Signature(1, 2, of_types((STRING,), BINARY)) for name in ("to_binary", "try_to_binary")},
    "encode": Signature(2, 2, of_types((STRING,), BINARY)),
    **{name: Signature(1, 1, of_types((STRING,), STRING)) for name in ("url_encode", "url_decode", "try_url_decode")},
    "is_valid_utf8": Signature(1, 1, digest((), BOOLEAN)),
    **{name: Signature(1, 1, digest((), STRING)) for name in ("make_valid_utf8", "validate_utf8", "try_validate_utf8")},
    "bin": Signature(1, 1, of_types((BIGINT,), STRING)),
    "chr": Signature(1, 1, of_types((BIGINT,), STRING)),
    "locate": Signature(2, 3, _locate),
    "substring_index": Signature(3, 3, of_types((STRING, STRING, INT), STRING)),
    "find_in_set": Signature(2, 2, of_types((STRING,), INT)),
    "levenshtein": Signature(2, 3, of_types((STRING, STRING, INT), INT)),
    "soundex": Signature(1, 1, of_types((STRING,), STRING)),
    "mask": Signature(1, 5, _mask),
    "space": Signature(1, 1, of_types((INT,), STRING)),
    "quote": Signature(1, 1, of_types((STRING,), STRING)),
    "format_string": Signature(1, None, _format_string),
    **{name: Signature(2, 3, of_types((STRING,), STRING)) for name in ("parse_url", "try_parse_url")},
    "regexp_extract": Signature(2, 3, of_types((STRING, STRING, INT), STRING)),
    "regexp_extract_all": Signature(2, 3, of_types((STRING, STRING, INT), pa.list_(STRING))),
    "regexp_count": Signature(2, 2, of_types((STRING,), INT)),
    "regexp_instr": Signature(2, 3, of_types((STRING, STRING, INT), INT)),
    "regexp_substr": Signature(2, 2, of_types((STRING,), STRING)),
    "regexp_replace": Signature(3, 4, of_types((STRING, STRING, STRING, INT), STRING)),
    "str_to_map": Signature(1, 3, of_types((STRING,), types.map_of(STRING, STRING))),
    "split": Signature(2, 3, of_types((STRING, STRING, INT), pa.list_(STRING))),
    "sha1": Signature(1, 1, digest((), STRING)),
}
ALIASES = {
    "btrim": "trim",
    "char": "chr",
    "position": "locate",
    "printf": "format_string",
    "sha": "sha1",
}
