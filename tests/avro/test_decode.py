"""Avro records become columns: what another library has written, in every type, is read as that library reads it."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from sash.avro.framed import PlainRecords
from sash.errors import CatalogError
from sash.rows import parse_schema
from tests.avro.written import encoded, record


def decoded(schema: Any, columns: str, values: list[bytes | None]) -> list[dict[str, Any]]:
    made = parse_schema(columns)
    arrays = PlainRecords(json.dumps(schema), made).decode(pa.array(values, pa.binary()))
    for array, column in zip(arrays, made, strict=True):
        array.validate(full=True)
        assert array.type == column.dtype
    return pa.Table.from_arrays(arrays, [column.name for column in made]).to_pylist()


TIMES = datetime(2026, 1, 31, 12, 0, 0, 123_000, UTC)


@pytest.mark.parametrize(
    ("avro", "column", "values"),
    [
        ("boolean", "BOOLEAN", [True, False]),
        ("int", "INT", [0, -1, 2**31 - 1, -(2**31)]),
        ("int", "BIGINT", [5]),
        ("int", "DOUBLE", [5, -3]),
        ("long", "BIGINT", [0, 2**63 - 1, -(2**63), 300]),
        ("long", "FLOAT", [2]),
        ("long", "TINYINT", [127, -128]),
        ("float", "FLOAT", [0.5, -1.25, float("inf")]),
        ("float", "DOUBLE", [0.5]),
        ("double", "DOUBLE", [0.1, -0.0, 1e300]),
        ("string", "STRING", ["", "a", "äöü€"]),
        ("bytes", "BINARY", [b"", b"\x00\xff"]),
        ({"type": "enum", "name": "e", "symbols": ["RED", "GREEN"]}, "STRING", ["GREEN", "RED"]),
        ({"type": "fixed", "name": "f", "size": 3}, "BINARY", [b"abc"]),
        ({"type": "int", "logicalType": "date"}, "DATE", [date(2026, 1, 31), date(1969, 12, 31)]),
        ({"type": "long", "logicalType": "timestamp-millis"}, "TIMESTAMP", [TIMES]),
        ({"type": "long", "logicalType": "timestamp-micros"}, "TIMESTAMP", [TIMES]),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, "TIMESTAMP_NTZ", [TIMES.replace(tzinfo=None)]),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2},
            "DECIMAL(32, 4)",
            [Decimal(0), Decimal("-1.00"), Decimal("12345678901234567890123456.78"), Decimal("-99999999999999999999.99")],
        ),
        (
            {"type": "fixed", "name": "d", "size": 20, "logicalType": "decimal", "precision": 20, "scale": 3},
            "DECIMAL(20, 3)",
            [Decimal("-0.001"), Decimal("99999999999999999.999")],
        ),
        ({"type": "array", "items": "int"}, "ARRAY<INT>", [[], [1, 2, 3]]),
        ({"type": "array", "items": {"type": "array", "items": ["null", "string"]}}, "ARRAY<ARRAY<STRING>>", [[["a", None], []]]),
        (record(("b", "string"), ("c", "long"), name="inner"), "STRUCT<c: BIGINT, x: STRING, b: STRING>", [{"b": "x", "c": 1}]),
    ],
)  # fmt: skip
def test_types(avro: Any, column: str, values: list[Any]) -> None:
    schema = record(("before", ["null", "string"]), ("v", ["null", avro]), ("after", "long"))
    rows = [{"before": "b", "v": value, "after": 7} for value in (*values, None)]
    expected = [{"c": 1, "x": None, "b": "x"}] if column.startswith("STRUCT") else values
    found = decoded(schema, f"v {column}, after BIGINT", encoded(schema, rows))
    assert found == [{"v": value, "after": 7} for value in (*expected, None)]
    skipped = decoded(schema, "after BIGINT", encoded(schema, rows))
    assert skipped == [{"after": 7}] * len(rows), "what is not declared is skipped"


def test_maps() -> None:
    schema = record(("m", ["null", {"type": "map", "values": ["null", "double"]}]), ("n", "int"))
    rows = [{"m": {"a": 1.0, "b": None}, "n": 1}, {"m": {}, "n": 2}, {"m": None, "n": 3}]
    found = decoded(schema, "m MAP<STRING, DOUBLE>, n INT", encoded(schema, rows))
    assert [(row["m"] if row["m"] is None else dict(row["m"]), row["n"]) for row in found] == [
        ({"a": 1.0, "b": None}, 1),
        ({}, 2),
        (None, 3),
    ]


def test_values_that_do_not_fit_are_null_in_all_columns() -> None:
    schema = record(("k", "string"), ("n", "long"), ("l", {"type": "array", "items": "string"}))
    good, large = encoded(schema, [{"k": "a", "n": 1, "l": ["x", "y"]}, {"k": "b", "n": 2**40, "l": []}])
    nothing = {"k": None, "n": None, "l": None}
    bad = [b"", good[:-1], good + b"\x00", b'{"k": 1}', None, large, b"\xff" * 30, b"\x02a\x02\x01\x03\x02x"]
    found = decoded(schema, "k STRING, n INT, l ARRAY<STRING>", [good, *bad, good])
    row = {"k": "a", "n": 1, "l": ["x", "y"]}
    assert found == [row, *([nothing] * len(bad)), row]


def test_a_record_that_is_a_part_of_itself_is_skipped() -> None:
    tree = {
        "type": "record", "name": "tree", "namespace": "n",
        "fields": [{"name": "left", "type": ["null", "tree"]}, {"name": "right", "type": ["null", "n.tree"]}],
    }  # fmt: skip
    schema = record(("t", tree), ("after", "string"))
    inner: dict[str, Any] = {"left": None, "right": None}
    for _ in range(30):
        inner = {"left": inner, "right": {"left": None, "right": None}}
    assert decoded(schema, "after STRING, missing INT", encoded(schema, [{"t": inner, "after": "here"}])) == [
        {"after": "here", "missing": None}
    ]


def test_what_a_column_cannot_hold_is_refused() -> None:
    schema = record(("ts", "long"), ("k", ["null", "string"]))
    with pytest.raises(CatalogError, match=r"field ts is long, which a column TIMESTAMP cannot hold"):
        decoded(schema, "ts TIMESTAMP", [])
    with pytest.raises(CatalogError, match=r"field k is \[null, string\], which a column INT cannot hold"):
        decoded(schema, "k INT", [])
    with pytest.raises(CatalogError, match="an Avro schema of rows is a record, not string"):
        decoded("string", "k STRING", [])
    with pytest.raises(CatalogError, match="has no type other"):
        decoded(record(("k", "other")), "k STRING", [])


def test_a_union_of_several_types_is_read_where_it_fits() -> None:
    schema = record(("v", ["null", "string", "long", {"type": "map", "values": "int"}]), ("n", "int"))
    rows = [{"v": 5, "n": 1}, {"v": "text", "n": 2}, {"v": None, "n": 3}, {"v": {"a": 1}, "n": 4}]
    assert decoded(schema, "v BIGINT, n INT", encoded(schema, rows)) == [
        {"v": 5, "n": 1}, {"v": None, "n": None}, {"v": None, "n": 3}, {"v": None, "n": None}
    ]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_random_schemas(seed: int) -> None:
    """Random records are read as they were written, whichever fields are declared."""
    rnd = random.Random(seed)
    names = [0]

    def made(depth: int) -> tuple[Any, str, Any]:
        """An Avro type, a column's type, and a function that makes a value."""
        simple = [
            ("long", "BIGINT", lambda: rnd.randint(-(2**63), 2**63 - 1)),
            ("int", "INT", lambda: rnd.randint(-(2**31), 2**31 - 1)),
            ("string", "STRING", lambda: "".join(rnd.choices("aäx€", k=rnd.randint(0, 80)))),
            ("double", "DOUBLE", rnd.random),
            ("boolean", "BOOLEAN", lambda: rnd.random() < 0.5),
            ("bytes", "BINARY", lambda: rnd.randbytes(rnd.randint(0, 5))),
        ]
        choice = rnd.randint(0, 9) if depth else 9
        if choice == 0:
            avro, column, value = made(depth - 1)
            return (
                {"type": "array", "items": avro},
                f"ARRAY<{column}>",
                lambda: [value() for _ in range(rnd.randint(0, 4))],
            )
        if choice == 1:
            parts = [made(depth - 1) for _ in range(rnd.randint(1, 3))]
            names[0] += 1
            fields = [{"name": f"f{n}", "type": avro} for n, (avro, _, _) in enumerate(parts)]
            return (
                {"type": "record", "name": f"n{names[0]}", "fields": fields},
                f"STRUCT<{', '.join(f'f{n}: {column}' for n, (_, column, _) in enumerate(parts))}>",
                lambda: {f"f{n}": value() for n, (_, _, value) in enumerate(parts)},
            )
        if choice <= 4:
            avro, column, value = made(0 if choice > 2 else depth - 1)
            if isinstance(avro, list):
                return avro, column, value
            return ["null", avro], column, lambda: None if rnd.random() < 0.3 else value()
        return rnd.choice(simple)

    parts = [made(3) for _ in range(rnd.randint(1, 6))]
    schema = record(*((f"c{n}", avro) for n, (avro, _, _) in enumerate(parts)))
    rows = [{f"c{n}": value() for n, (_, _, value) in enumerate(parts)} for _ in range(50)]
    chosen = [n for n in range(len(parts)) if rnd.random() < 0.7] or [0]
    rnd.shuffle(chosen)
    found = decoded(schema, ", ".join(f"C{n} {parts[n][1]}" for n in chosen), encoded(schema, rows))
    assert found == [{f"C{n}": row[f"c{n}"] for n in chosen} for row in rows]
