from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

from sash.errors import CatalogError, OptionError, SinkError
from sash.plan.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    Field,
    Schema,
)
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.postgres import PostgresTable
from tests.postgres import server

Row = tuple[Any, ...]
GROUPS: Schema = (Field("k", STRING), Field("j", INT), Field("n", BIGINT))


class Batch:
    """A batch of changes as a sink reads it, without Spark."""

    def __init__(self, rows: list[Row], schema: Schema) -> None:
        types = [pa.string(), pa.int64(), *(field.dtype for field in schema)]
        names = ["_op", "_ts", *(field.name for field in schema)]
        columns = [[row[place] for row in rows] for place in range(len(types))]
        self.table = pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=names)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server() as where:
        yield where


@pytest.fixture
def table(url: str, request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "_", request.node.name)[:60]


def rows_of(url: str, table: str, columns: str = "*") -> list[Row]:
    with psycopg.connect(url) as connection:
        connection.execute("SET TimeZone TO 'UTC'")
        return connection.execute(f'SELECT {columns} FROM "{table}"').fetchall()  # type: ignore[call-overload, no-any-return]


def opened(url: str, table: str, output: OutputSpec, **options: Any) -> Any:
    write = PostgresTable({"url": url, "table": table, **options}).open(output)
    return lambda rows, number: write(Batch(rows, output.schema), number)  # type: ignore[arg-type]


def upsert(key: tuple[int, ...] = (0, 1), schema: Schema = GROUPS, identity: str = "one") -> OutputSpec:
    return OutputSpec(schema, BIGINT, "upsert", key, identity)


def net(schema: Schema = GROUPS) -> OutputSpec:
    return OutputSpec(schema, BIGINT, "net", None, "one")


def test_a_keyed_answer_is_upserted_and_deleted(url: str, table: str) -> None:
    write = opened(url, table, upsert())
    write([("+", 1, "a", 1, 1), ("+", 1, "b", None, 1), ("+", 1, None, None, 7)], 0)
    write([("+", 2, "a", 1, 2), ("-", 2, "b", None, 1), ("+", 3, None, None, 8), ("+", 3, "a", None, 5)], 1)
    assert Counter(rows_of(url, table)) == Counter([("a", 1, 2), (None, None, 8), ("a", None, 5)])
    write([("-", 4, None, None, 8), ("-", 4, "a", None, 5)], 2)
    assert rows_of(url, table) == [("a", 1, 2)]


def test_the_last_change_of_a_key_counts_whichever_shard_it_is_from(url: str, table: str) -> None:
    write = opened(url, table, upsert((0,), (Field("k", STRING), Field("n", INT))))
    write(
        [("+", 3, "a", 3), ("-", 3, "a", 1), ("-", 5, "b", 2), ("+", 4, "b", 2), ("+", 5, "c", 1), ("-", 4, "c", 9)], 0
    )
    assert sorted(rows_of(url, table)) == [("a", 3), ("c", 1)]


def test_an_answer_of_one_row_has_the_empty_key(url: str, table: str) -> None:
    write = opened(url, table, upsert((), (Field("total", DOUBLE),)))
    write([("+", 1, None)], 0)
    assert rows_of(url, table) == [(None,)]
    write([("+", 2, 2.5)], 1)
    assert rows_of(url, table) == [(2.5,)]
    write([("-", 2, 2.5)], 2)
    assert rows_of(url, table) == []


def test_a_batch_that_comes_again_counts_once(url: str, table: str) -> None:
    write = opened(url, table, net())
    write([("+", 1, "a", 1, 1)], 0)
    write([("+", 1, "a", 1, 1)], 0)
    again = opened(url, table, net())
    again([("+", 1, "a", 1, 1)], 0)
    assert rows_of(url, table, "k, j, n") == [("a", 1, 1)]
    again([("-", 2, "a", 1, 1)], 1)
    again([], 2)
    assert rows_of(url, table) == []


def test_a_batch_that_fails_changes_nothing(url: str, table: str) -> None:
    schema = (Field("k", STRING), Field("n", INT))
    write = opened(url, table, upsert((0,), schema))
    write([("+", 1, "a", 1)], 0)
    with pytest.raises(SinkError, match="0x00"):
        write([("+", 2, "b", 2), ("+", 2, "nul \0", 3)], 1)
    assert rows_of(url, table) == [("a", 1)]
    write([("+", 2, "b", 2)], 1)
    assert sorted(rows_of(url, table)) == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("seed", range(3))
def test_differential_a_bag_keeps_its_duplicates(url: str, seed: int) -> None:
    rnd, table = random.Random(seed), f"bag{seed}"
    write, bag = opened(url, table, net()), Counter[Row]()
    for number in range(8):
        rows: list[Row] = []
        for _ in range(40):
            row = (rnd.choice(["x", None, ""]), rnd.choice([1, None]), rnd.randint(0, 2))
            op = "-" if bag[row] and rnd.random() < 0.5 else "+"
            bag[row] += 1 if op == "+" else -1
            rows.append((op, number, *row))
        rnd.shuffle(rows)  # shards come in any order
        write(rows, number)
        assert Counter(rows_of(url, table, "k, j, n")) == +bag


@pytest.mark.parametrize("mode", ["upsert", "net", "changes"])
def test_nested_values_are_jsonb(url: str, mode: Any) -> None:
    pair = pa.struct([("a", INT), ("b b", pa.list_(STRING))])
    schema = (
        Field("key", pa.list_(INT)),
        Field("pair", pair),
        Field("amounts", pa.map_(STRING, pa.decimal128(10, 2))),
        Field("days", pa.list_(DATE)),
    )
    rows: list[Row] = [
        ([1, None], {"a": 1, "b b": ['it\'s "odd"', None]}, [("x", Decimal("1.50")), ("y", None)], [date(2026, 1, 2)]),
        ([], {"a": None, "b b": []}, [], []),
        (None, None, None, None),
    ]
    shown = Counter(
        map(
            repr,
            [
                ([1, None], {"a": 1, "b b": ['it\'s "odd"', None]}, {"x": 1.5, "y": None}, ["2026-01-02"]),
                ([], {"b b": []}, {}, []),
                (None, None, None, None),
            ],
        )
    )
    output = OutputSpec(schema, BIGINT, mode, (0,) if mode == "upsert" else None, "one")
    write = opened(url, f"nested_{mode}", output)
    write([("+", 1, *row) for row in rows], 0)
    names = "key, pair, amounts, days"
    assert Counter(map(repr, rows_of(url, f"nested_{mode}", names))) == shown
    with psycopg.connect(url) as connection:
        found = connection.execute(f"SELECT pair->>'a' FROM nested_{mode} WHERE key = '[1, null]'").fetchall()  # type: ignore[call-overload]
    assert found == [("1",)]
    if mode != "changes":
        write([("-", 2, *row) for row in rows[1:]], 1)
        write([("+", 3, [1, None], {"a": 2, "b b": None}, [], None), ("-", 3, *rows[0])], 2)
        assert rows_of(url, f"nested_{mode}", names) == [([1, None], {"a": 2}, {}, None)]


@pytest.mark.parametrize("mode", ["upsert", "net", "changes"])
def test_every_type_and_null_comes_back_as_it_went(url: str, mode: Any) -> None:
    values = {
        "bo": (BOOLEAN, True), "ti": (TINYINT, -128), "si": (SMALLINT, 32767), "i": (INT, -(2**31)),
        "bi": (BIGINT, 2**63 - 1), "f": (FLOAT, 0.375), "d": (DOUBLE, 0.1 + 0.2),
        "inf": (DOUBLE, float("-inf")), "zero": (DOUBLE, -0.0), "s": (STRING, "it's \"odd\",\n\\N é\t"),
        "empty": (STRING, ""), "b": (BINARY, b"\x00\xff\\"), "da": (DATE, date(1969, 12, 31)),
        "ts": (TIMESTAMP, datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
        "tn": (TIMESTAMP_NTZ, datetime(1900, 1, 2, 3, 4, 5, 1)),
        "de": (pa.decimal128(38, 10), Decimal("-1234567890123456789012345678.0123456789")),
        'na"me %s': (STRING, "x"),
    }  # fmt: skip
    schema = (Field("id", INT), *(Field(name, dtype) for name, (dtype, _) in values.items()))
    full, empty = (1, *(value for _, value in values.values())), (2, *([None] * len(values)))
    output = OutputSpec(schema, BIGINT, mode, (0,) if mode == "upsert" else None, "one")
    write = opened(url, f"types_{mode}", output)
    write([("+", 1, *full), ("+", 1, *empty)], 0)
    names = ", ".join('"' + field.name.replace('"', '""') + '"' for field in schema)
    assert sorted(rows_of(url, f"types_{mode}", names), key=lambda row: row[0]) == [full, empty]
    if mode == "changes":
        assert rows_of(url, f"types_{mode}", "_batch, _op, _ts") == [(0, "+", 1)] * 2
        return
    write([("-", 2, *full), ("-", 2, *empty)], 1)
    assert rows_of(url, f"types_{mode}", names) == []


class TestWhoseTable:
    def test_foreign_rows_are_deleted_only_with_replace(self, url: str, table: str) -> None:
        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE TABLE {table} (k text, j int, n bigint)")  # type: ignore[call-overload]
            connection.execute(f"INSERT INTO {table} VALUES ('mine', 1, 1)")  # type: ignore[call-overload]
        with pytest.raises(CatalogError, match="rows that no query of Sash wrote"):
            opened(url, table, upsert())
        assert len(rows_of(url, table)) == 1
        opened(url, table, upsert(), replace=True)
        assert rows_of(url, table) == []

    def test_a_new_checkpoint_does_not_go_on_with_an_old_answer(self, url: str, table: str) -> None:
        first = opened(url, table, upsert())
        first([("+", 1, "a", 1, 1)], 0)
        with pytest.raises(CatalogError, match="the answer of another checkpoint"):
            opened(url, table, upsert(identity="two"))
        second = opened(url, table, upsert(identity="two"), replace="true")
        with pytest.raises(SinkError, match="belongs to another query"):
            first([("+", 2, "b", 1, 1)], 1)
        second([("+", 1, "c", 1, 1)], 0)
        assert rows_of(url, table) == [("c", 1, 1)]

    def test_a_table_that_was_created_again_is_refused(self, url: str, table: str) -> None:
        opened(url, table, upsert())([("+", 1, "a", 1, 1)], 0)
        with psycopg.connect(url) as connection:
            connection.execute(f"DROP TABLE {table}")  # type: ignore[call-overload]
        with pytest.raises(CatalogError, match="created again"):
            opened(url, table, upsert())

    def test_errors_name_the_missing_part(self, url: str, table: str) -> None:
        with pytest.raises(CatalogError, match="there is no table"):
            opened(url, table, upsert(), create="false")
        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE TABLE {table} (k text, n bigint)")  # type: ignore[call-overload]
        with pytest.raises(CatalogError, match="has no column j"):
            opened(url, table, upsert())
        with pytest.raises(SinkError, match="PostgreSQL, table t"):
            opened("postgresql://nobody@/x?host=/nowhere", "t", upsert())
        with pytest.raises(OptionError, match="not the name of a table"):
            opened(url, "a.b.c", upsert())


@pytest.mark.parametrize(
    ("options", "message"),
    [({"url": "x"}, "needs the option table"), ({"url": "x", "table": "t", "tabel": 1}, "did you mean table")],
)
def test_options_are_checked_when_the_query_is_made(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        PostgresTable(options)


def test_the_mode_follows_the_answer() -> None:
    sink = PostgresTable({"url": "x", "table": "t"})
    assert [sink.mode(None, keyed=True), sink.mode(None, keyed=False), sink.mode("changes", keyed=True)] == [
        "upsert",
        "net",
        "changes",
    ]
