"""Values with the numbers of their schemas in a registry, which is a server of its own."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sash.avro.framed import FramedRecords
from sash.avro.registry import Login, Registry
from sash.errors import CatalogError
from sash.rows import parse_schema
from tests.avro.written import encoded, framed, record
from tests.registry import SchemaRegistry, schema_registry

OLD = record(("k", "string"), ("n", "int"))
NEW = record(("n", "long"), ("added", ["null", "string"]), ("k", ["null", "string"]))


def decoded(
    registry: SchemaRegistry, columns: str, values: list[bytes | None], login: Login | None = None
) -> list[Any]:
    made = parse_schema(columns)
    arrays = FramedRecords(Registry(registry.url, login), made).decode(pa.array(values, pa.binary()))
    return [tuple(row.values()) for row in pa.Table.from_arrays(arrays, [c.name for c in made]).to_pylist()]


def test_every_value_is_read_by_its_own_schema() -> None:
    with schema_registry() as registry:
        old, new = (registry.add("t-value", schema) for schema in (OLD, NEW))
        first = framed(old, OLD, [{"k": "a", "n": 1}, {"k": "b", "n": 2}])
        later = framed(new, NEW, [{"k": "c", "n": 2**40, "added": "x"}, {"k": None, "n": 4, "added": None}])
        mixed = [
            first[0],
            later[0],
            None,
            first[1],
            b"",
            b"\x00\x00\x00\x00\x63abc",
            b"{}",
            later[1],
            b"\x01" + first[0][1:],
        ]
        columns = "k STRING, n BIGINT, added STRING"
        nothing = (None, None, None)
        assert decoded(registry, columns, mixed) == [
            ("a", 1, None), ("c", 2**40, "x"), nothing, ("b", 2, None), nothing, nothing, nothing, (None, 4, None), nothing
        ]  # fmt: skip
        assert decoded(registry, columns, [later[0]]) == [("c", 2**40, "x")]
        asked = [path for path in registry.requests if path != "/schemas/ids/99"]
        assert sorted(asked) == [f"/schemas/ids/{old}", f"/schemas/ids/{new}"], "a schema is asked for once"
        assert decoded(registry, columns, []) == []


def test_schemas_refer_to_others() -> None:
    inner = record(("x", "int"), name="shop.inner")
    outer = record(("one", "shop.inner"), ("k", "string"), name="shop.outer")
    with schema_registry() as registry:
        registry.add("inner", inner)
        number = registry.add("t-value", outer, references=[{"name": "shop.inner", "subject": "inner", "version": 1}])
        whole = {**outer, "fields": [{"name": "one", "type": inner}, outer["fields"][1]]}
        values = framed(number, whole, [{"one": {"x": 7}, "k": "a"}])
        assert decoded(registry, "k STRING, one STRUCT<x: INT>", list(values)) == [("a", {"x": 7})]


def test_a_registry_with_a_login() -> None:
    with schema_registry("me:secret") as registry:
        number = registry.add("t-value", OLD)
        values: list[bytes | None] = [*framed(number, OLD, [{"k": "a", "n": 1}])]
        assert decoded(registry, "k STRING", values, Login("me", "secret")) == [("a",)]
        assert "secret" not in repr(Login("me", "secret"))
        with pytest.raises(
            CatalogError, match=r"answers 401 to /schemas/ids/1: give registry.user and registry.password"
        ):
            decoded(registry, "n INT", values)


def test_a_schema_that_does_not_fit_and_one_that_is_not_avro() -> None:
    with schema_registry() as registry:
        number = registry.add("t-value", OLD)
        other = registry.add("json-value", {"type": "object"}, schemaType="JSON")
        with pytest.raises(CatalogError, match="the Avro field k is string, which a column BIGINT cannot hold"):
            decoded(registry, "k BIGINT", [*framed(number, OLD, [{"k": "a", "n": 1}])])
        assert decoded(registry, "k STRING", [*framed(other, OLD, [{"k": "a", "n": 1}])]) == [(None,)]
        found = Registry(registry.url)
        assert found.versions("t-value") == [1]
        assert found.versions("nobody") == []
        assert str(found.version("t-value")) == "r"


def test_a_registry_with_a_failure_is_asked_again() -> None:
    with schema_registry() as registry:
        registry.add("t-value", OLD)
        found = Registry(registry.url, waits=(0.0, 0.0))
        registry.failures = 2
        assert found.versions("t-value") == [1]
        registry.failures = 3
        with pytest.raises(CatalogError, match="answers 503 to /subjects/t-value/versions"):
            found.versions("t-value")
    with pytest.raises(CatalogError, match="cannot be reached"):
        found.versions("t-value")


def test_values_without_a_frame_are_no_values_of_a_registry() -> None:
    with schema_registry() as registry:
        registry.add("t-value", OLD)
        assert decoded(registry, "k STRING", [*encoded(OLD, [{"k": "a", "n": 1}])]) == [(None,)]
