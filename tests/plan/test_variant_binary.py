"""Variants in Spark's encoding, with bytes that Spark 4.3 wrote."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from sash.plan.json_reader import JsonNumber, JsonObject, TypedScalar
from sash.plan.variant_binary import VariantError, decode_variant, encode_variant
from sash.plan.variant_numbers import decimal, double
from sash.plan.variants import from_binary, read_stored, sort_key, to_binary, variant_json, variant_schema, write_stored

LIST = (
    b"\x02\x02\x00\x01\x00\x02\x19\x0c\x01\x03\x03\x00\x06\x0f\x11 \x01\x0f\x00\x00\x00\x1c\x00\x00\x00\x00\x00@\x9f@\x05x",
    b"\x01\x02\x00\x01\x02ab",
)
TYPES = (
    (
        b"\x02\x07\x04\x00\x05\x03\x06\x02\x01\x1c\x00#\x17)\x0e\x05+,\x0cM\x00\x000\x80\xb5O\xc0\xed\r\x06\x004@\xd3M\xc0\xed\r"
        b"\x06\x008\x00\x00\xc0?<\x02\x00\x00\x00\x01\x02 \x02x\x00\x00\x00\x0c\x03"
    ),
    b"\x01\x07\x00\x01\x02\x03\x04\x07\n\x0bdtnfbindeci",
)


def test_spark_variants_are_read() -> None:
    assert variant_json(from_binary(*LIST)) == '{"a":1,"b":[1.5,2000.0,"x"]}'
    stored = from_binary(*TYPES)
    assert variant_json(stored) == (
        '{"bin":"AQI=","d":"2024-01-02","dec":1.2,"f":1.5,"i":3,"n":"2024-01-02 03:04:05",'
        '"t":"2024-01-02 03:04:05.123456+00:00"}'
    )
    assert variant_schema(stored) == (
        "OBJECT<bin: BINARY, d: DATE, dec: DECIMAL(2,1), f: FLOAT, i: BIGINT, n: TIMESTAMP_NTZ, t: TIMESTAMP>"
    )


def test_a_variant_is_written_as_spark_writes_it() -> None:
    assert to_binary(from_binary(*LIST)) == LIST


def made(choice: random.Random, depth: int) -> Any:
    """A random value of a variant."""
    kind = choice.randrange(11 if depth else 9)
    match kind:
        case 0:
            return None
        case 1:
            return choice.random() < 0.5
        case 2:
            return "é" * choice.choice([0, 1, 31, 32, 63, 64, 300])
        case 3:
            edge = 1 << choice.choice([0, 7, 8, 15, 16, 31, 32, 63])
            return JsonNumber(str(choice.choice([-edge, edge - 1])), whole=True)
        case 4:
            return double(choice.choice([0.5, -0.0, 1e300, float("inf"), float("-inf")]))
        case 5:
            digits = choice.choice([1, 9, 10, 18, 19, 38])
            return JsonNumber(f"-0.{'7' * digits}", whole=False)
        case 6:
            return TypedScalar(choice.choice("dtn"), str(choice.randrange(-(10**6), 10**6)))
        case 7:
            return TypedScalar("b", choice.choice(["", "AA==", "AQI="]))
        case 8:
            return choice.choice([TypedScalar("f", "0.5"), TypedScalar("u", "12345678123456781234567812345678")])
        case 9:
            return [made(choice, depth - 1) for _ in range(choice.choice([0, 1, 3, 300]))]
    names = sorted({f"{choice.randrange(10**6)}" for _ in range(choice.choice([0, 1, 4, 300]))}, key=sort_key)
    return JsonObject([(name, made(choice, depth - 1)) for name in names])


@pytest.mark.parametrize("digits", [1, 18, 19, 37, 38])
def test_whole_decimals_stay_exact(digits: int) -> None:
    number = decimal(Decimal("7" * digits))
    assert decode_variant(*encode_variant(number)) == number
    stored = from_binary(*to_binary(write_stored(number)))
    assert (variant_json(stored), variant_schema(stored)) == ("7" * digits, f"DECIMAL({digits},0)")


def test_differential_encoding_and_decoding_random_variants() -> None:
    choice = random.Random(4)
    for _ in range(300):
        value = made(choice, 2)
        assert decode_variant(*encode_variant(value)) == value
        stored = write_stored(value)
        assert write_stored(read_stored(stored)) == stored
        assert from_binary(*to_binary(stored)) == stored


@pytest.mark.parametrize(
    ("value", "metadata"),
    [(b"", b"\x01\x00\x00"), (b"\x0c", b"\x02\x00\x00"), (b"\x02\x01\x00\x00", b"\x01\x00\x00"), (b"\xfc", b"\x01\x00\x00"), (b"\x15ab", b"\x01\x00\x00")],
)  # fmt: skip
def test_what_is_no_variant_is_refused(value: bytes, metadata: bytes) -> None:
    with pytest.raises(VariantError):
        decode_variant(value, metadata)
