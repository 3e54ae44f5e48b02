"""Values in Avro, as another library writes them."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest


def record(*fields: tuple[str, Any], name: str = "r") -> dict[str, Any]:
    """The schema of a record."""
    return {"type": "record", "name": name, "fields": [{"name": field, "type": dtype} for field, dtype in fields]}


def encoded(schema: Any, rows: list[Any]) -> list[bytes]:
    """Records of a schema."""
    fastavro = pytest.importorskip("fastavro")
    parsed, found = fastavro.parse_schema(schema), []
    for row in rows:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, parsed, row)
        found.append(buffer.getvalue())
    return found


def framed(number: int, schema: Any, rows: list[Any]) -> list[bytes]:
    """Records with the number of their schema."""
    return [b"\x00" + struct.pack(">I", number) + value for value in encoded(schema, rows)]
