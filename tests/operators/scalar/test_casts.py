"""What CAST refuses and TRY_CAST makes NULL, and what Spark cannot show in one query."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from sash.errors import EvaluationError
from sash.operators.scalar.casts import cast
from sash.operators.scalar.formatting import java_number
from sash.plan.types import BIGINT, BINARY, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, TINYINT

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("value", "source", "target"),
    [
        (300, INT, TINYINT),
        (NAN, DOUBLE, INT),
        (INF, DOUBLE, BIGINT),
        (128.0, DOUBLE, TINYINT),
        (1e30, DOUBLE, pa.decimal128(10, 2)),
        (NAN, DOUBLE, TIMESTAMP),
        (Decimal("300.5"), pa.decimal128(4, 1), TINYINT),
        (Decimal("9.995"), pa.decimal128(4, 3), pa.decimal128(3, 2)),
        ("1.5", STRING, INT),
        ("", STRING, INT),
        ("9223372036854775808", STRING, BIGINT),
        ("0x1F", STRING, INT),
        ("-nan", STRING, DOUBLE),
        ("1e39", STRING, pa.decimal128(38, 0)),
        ("123456", STRING, pa.decimal128(5, 0)),
        ("on", STRING, BOOLEAN),
        ("2020-02-30", STRING, DATE),
        ("2020-01-05 24:00:00", STRING, TIMESTAMP),
        ("2020-01-05 10:00:00 Nowhere/City", STRING, TIMESTAMP),
        (True, BOOLEAN, pa.decimal128(1, 1)),
    ],
)
def test_cast_fails_and_try_cast_is_null(value: object, source: pa.DataType, target: pa.DataType) -> None:
    values = pa.array([None, value], source)
    with pytest.raises(EvaluationError, match="TRY_CAST"):
        cast(values, target)
    assert cast(values, target, lenient=True).to_pylist() == [None, None]


def test_nan_as_decimal_is_null_even_without_try() -> None:
    assert cast(pa.array([NAN, INF, 1.5]), pa.decimal128(3, 1)).to_pylist() == [None, None, Decimal("1.5")]


def test_doubles_become_the_decimals_they_print_as() -> None:
    values = pa.array([1.005, 2.675, -0.285, 0.1, 1e15 + 0.5, 123456789012345680.0])
    assert cast(values, pa.decimal128(38, 2)).to_pylist() == [
        Decimal(text) for text in ("1.01", "2.68", "-0.29", "0.10", "1000000000000000.50", "123456789012345680.00")
    ]


def test_largest_double_below_two_to_the_63() -> None:
    assert cast(pa.array([9.223372036854775807e18, -9.223372036854775808e18]), BIGINT).to_pylist() == [
        2**63 - 1,
        -(2**63),
    ]


def test_bytes_that_are_no_text_show_as_replacement_characters() -> None:
    assert cast(pa.array([b"ok", b"\xff", None], BINARY), STRING).to_pylist() == ["ok", "\ufffd", None]


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (1.0, "1.0"),
        (1e7, "1.0E7"),
        (1e6, "1000000.0"),
        (1234567.5, "1234567.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (-0.0, "-0.0"),
        (1.1e-5, "1.1E-5"),
        (123456789012.345, "1.23456789012345E11"),
        (-INF, "-Infinity"),
        (NAN, "NaN"),
    ],
)
def test_doubles_print_as_in_java(value: float, printed: str) -> None:
    assert java_number(value, repr(value)) == printed
    assert cast(pa.array([value]), STRING).to_pylist() == [printed]


def test_floats_print_their_own_digits() -> None:
    assert cast(pa.array([0.1, 16777216.0, 3.4e38], FLOAT), STRING).to_pylist() == ["0.1", "1.6777216E7", "3.4E38"]


def test_small_decimals_print_without_exponent() -> None:
    values = pa.array([Decimal("0.000000001"), None, Decimal("-12.5")], pa.decimal128(20, 9))
    assert cast(values, STRING).to_pylist() == ["0.000000001", None, "-12.500000000"]


def test_years_of_five_digits_have_a_sign() -> None:
    assert cast(pa.array([10_000_000], pa.int32()).view(DATE), STRING).to_pylist() == ["+29349-01-26"]
    assert cast(pa.array(["+29349-01-26"]), DATE).view(pa.int32()).to_pylist() == [10_000_000]


def test_refused_casts_name_both_types() -> None:
    with pytest.raises(EvaluationError, match="DATE to INT"):
        cast(pa.array([1], pa.int32()).view(DATE), INT)
