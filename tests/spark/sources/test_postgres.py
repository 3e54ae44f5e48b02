"""A PostgreSQL table as a relation: types, whole readings and readings of changes, and a server that goes and comes back."""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sash.cli.check import check
from sash.cli.preflight import check_table
from sash.errors import BadRowError, CatalogError, OptionError, SourceError
from sash.plan.types import BIGINT, BINARY, DATE, STRING, TIMESTAMP, TIMESTAMP_NTZ
from sash.rows import parse_schema
from sash.script.dry_run import DryRunBackend
from sash.script.live import LiveBackend
from sash.script.reader import read_script
from sash.script.sources import PostgresOptions
from sash.script.statements import CreateRelation, Declaration
from sash.spark.sources.postgres import PostgresRelation
from sash.spark.sources.reading import Reading
from sash.spark.sources.refresh import RefreshedTable, TableRefresh
from sash.time import HOUR, SECOND
from tests.postgres import Server, restartable_server
from tests.spark.files import FolderSink, file_engine, write_batch


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with restartable_server() as running:
        yield running


@pytest.fixture
def run(server: Server) -> Callable[[str], None]:
    def execute(statements: str) -> None:
        with psycopg.connect(server.url) as connection:
            connection.execute("SET TimeZone TO 'UTC'")
            connection.execute(statements)  # type: ignore[call-overload]

    return execute


def options(**given: Any) -> PostgresOptions:
    return PostgresOptions.of(Declaration("r", None, "postgres", given))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_values_of_every_type_are_read(server: Server, run: Callable[[str], None]) -> None:
    run("""
        CREATE TYPE mood AS ENUM ('sad', 'happy');
        CREATE DOMAIN short AS varchar(9);
        CREATE TABLE "every Type" (
          b boolean, i2 smallint, i4 integer, i8 bigint, f4 real, f8 double precision, n numeric(12, 3), free numeric,
          t text, v short, c char(3), raw bytea, d date, at timestamp, tz timestamptz, j jsonb, u uuid, m mood, a integer[]);
        INSERT INTO "every Type" VALUES
          (true, -1, 2, 9007199254740993, 1.5, 0.1, -123.456, 1.25, E'a,"b"\n\\\\.\u00e9', '', 'x', '\\x00ff2c', '0001-02-03',
           '1969-12-31 23:59:59.999999', '2026-01-31 12:00:00.000001+02', '{"k": [1]}',
           'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'happy', '{1,2}'),
          (false, NULL, NULL, NULL, 'NaN', '-Infinity', NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL),
          (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
    """)
    reader = PostgresRelation("r", options(url=server.url, table="every Type"))
    rows = reader.read().rows
    types = {field.name: field.type for field in rows.schema}
    assert {field.name: field.dtype for field in reader.columns()} == types
    assert [types[name] for name in ("i8", "n", "free", "raw", "d", "at", "tz", "j", "m", "v")] == [
        BIGINT, pa.decimal128(12, 3), pa.decimal128(38, 18), BINARY, DATE, TIMESTAMP_NTZ, TIMESTAMP, STRING, STRING, STRING,
    ]  # fmt: skip
    first, second, third = rows.to_pylist()
    assert first == {
        "b": True, "i2": -1, "i4": 2, "i8": 9007199254740993, "f4": 1.5, "f8": 0.1, "n": Decimal("-123.456"),
        "free": Decimal("1.25"), "t": 'a,"b"\n\\.é', "v": "", "c": "x", "raw": b"\x00\xff,", "d": date(1, 2, 3),
        "at": datetime(1969, 12, 31, 23, 59, 59, 999999), "tz": datetime(2026, 1, 31, 10, 0, 0, 1, UTC), "j": '{"k": [1]}',
        "u": "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "m": "happy", "a": "{1,2}",
    }  # fmt: skip
    assert str(second["f4"]) == "nan"
    assert (second["b"], second["f8"], second["raw"]) == (False, float("-inf"), b"")
    assert {value for name, value in second.items() if name not in ("b", "f4", "f8", "raw")} == {None}
    assert {name: value for name, value in third.items() if value is not None} == {"t": ""}


def test_declared_columns_choose_and_cast(server: Server, run: Callable[[str], None]) -> None:
    run(
        "CREATE TABLE prices (id integer, price numeric, secret text); INSERT INTO prices VALUES (1, 2.50, 's'), (2, NULL, 't')"
    )
    declared = parse_schema("Price DOUBLE, id STRING")
    query = "SELECT id, price FROM prices WHERE id < 3;"
    rows = PostgresRelation("r", options(url=server.url, query=query), declared).read().rows
    assert rows.to_pylist() == [{"Price": 2.5, "id": "1"}, {"Price": None, "id": "2"}]
    one = PostgresRelation("r", options(url=server.url, query="SELECT price FROM prices ORDER BY id"))
    assert one.read().rows.column("price").to_pylist() == [Decimal("2.5"), None]
    none = PostgresRelation("r", options(url=server.url, query="SELECT price FROM prices WHERE false"))
    assert none.read().rows.num_rows == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "one of the options table and query"),
        ({"table": "t", "query": "SELECT 1"}, "one of the options table and query"),
        ({"table": "a.b.c"}, "write table or schema.table"),
        ({"table": "t", "tabel": "u"}, "no option tabel; it has .*; did you mean table"),
        ({"table": "t", "deleted_by": "gone"}, "add that option"),
        ({"table": "t", "changes_by": "at", "full_every": "soon"}, "full_every"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        options(url="postgresql://sash@/postgres", **given)


def test_what_does_not_fit_is_refused(server: Server, run: Callable[[str], None]) -> None:
    run("CREATE TABLE fits (id integer, name text, at timestamp); INSERT INTO fits VALUES (1, 'x', 'infinity')")

    def read(declared: str | None = None, url: str = server.url, **given: Any) -> None:
        schema = None if declared is None else parse_schema(declared)
        PostgresRelation("r", options(url=url, **{"table": "fits", **given}), schema).read()

    with pytest.raises(SourceError, match=r"relation r: PostgreSQL, table fitz: relation .* does not exist") as absent:
        read(table="fitz")
    assert not absent.value.transient
    with pytest.raises(CatalogError, match=r"no column nam; it has .*; did you mean name"):
        read("nam STRING")
    with pytest.raises(CatalogError, match="declare it as STRING"):
        read("name ARRAY<INT>")
    with pytest.raises(CatalogError, match="changes_by names a column of times or numbers, and name is neither"):
        read(changes_by="name")
    run("ALTER TABLE fits ADD COLUMN n numeric")
    for by, overlap in (("at", "5"), ("n", "1 minute")):
        with pytest.raises(CatalogError, match="and so is overlap"):
            read(changes_by=by, overlap=overlap)
    with pytest.raises(SourceError, match="invalid input syntax for type integer"):
        read("name INT")
    with pytest.raises(SourceError, match="infinit"):
        read()
    with pytest.raises(SourceError, match="start the server") as gone:
        read(url="postgresql://sash@/postgres?host=/nowhere")
    assert gone.value.transient


def test_declared_columns_are_known_while_the_server_is_away() -> None:
    away = options(url="postgresql://sash@/postgres?host=/nowhere", table="t")
    declared = parse_schema("id INT")
    assert PostgresRelation("r", away, declared).columns() == declared
    with pytest.raises(SourceError, match="start the server"):
        PostgresRelation("r", away).columns()


def test_rows_that_have_changed_are_found_by_a_column(server: Server, run: Callable[[str], None]) -> None:
    run("""
        CREATE TABLE changed (id integer PRIMARY KEY, name text, at timestamptz, deleted_at timestamp);
        INSERT INTO changed VALUES (1, 'one', '2026-01-01 12:00:00'), (2, 'two', '2026-01-01 12:05:00'),
          (3, 'three', '2026-01-01 11:00:00'), (4, 'four', NULL);
        INSERT INTO changed VALUES (9, 'gone', '2026-01-01 12:05:00', '2026-01-01 12:05:00')
    """)
    clock = Clock()
    given = options(url=server.url, table="changed", changes_by="at", deleted_by="deleted_at")
    table = PostgresRelation("r", given, None, clock)
    assert [field.name for field in table.columns()] == ["id", "name", "at"]

    def ids(rows: pa.Table | None) -> list[int]:
        assert rows is not None
        return sorted(rows.column("id").to_pylist())

    whole = table.read()
    assert whole.gone is None
    assert ids(whole.rows) == [1, 2, 3, 4]
    # Rows within the overlap, and those without a time, are read again; 5 was committed after 2, with an earlier time.
    run("""
        INSERT INTO changed VALUES (5, 'five', '2026-01-01 12:04:30'), (6, 'too late', '2026-01-01 12:03:00');
        UPDATE changed SET name = 'uno', at = '2026-01-01 12:10:00' WHERE id = 1;
        UPDATE changed SET deleted_at = '2026-01-01 12:10:00', at = '2026-01-01 12:10:00' WHERE id = 3;
        DELETE FROM changed WHERE id = 4
    """)
    some = table.read(whole.seen)
    assert (ids(some.rows), ids(some.gone)) == ([1, 2, 5], [3, 9])
    none = table.read(some.seen)
    assert (ids(none.rows), ids(none.gone)) == ([1], [3])
    clock.now = HOUR / SECOND
    everything = table.read(none.seen)
    assert everything.gone is None
    assert ids(everything.rows) == [1, 2, 5, 6]
    assert table.read(everything.seen).gone is not None


def test_changes_are_found_by_a_number(server: Server, run: Callable[[str], None]) -> None:
    run("CREATE TABLE counted (id integer, n bigint, hidden boolean)")
    given = options(url=server.url, table="counted", changes_by="n", deleted_by="hidden", overlap=2)
    table = PostgresRelation("r", given)
    assert table.read(table.read().seen).gone is None, "of an empty table nothing was seen"
    run("INSERT INTO counted SELECT i, i, i = 7 FROM generate_series(1, 7) AS i")
    seen = table.read().seen
    run("INSERT INTO counted VALUES (8, 8, NULL)")
    some = table.read(seen)
    assert some.gone is not None
    assert (some.rows.column("id").to_pylist(), some.gone.column("id").to_pylist()) == ([5, 6, 8], [7])


@contextmanager
def refreshed(spark: SparkSession, server: Server, folder: Path, **given: Any) -> Iterator[TableRefresh]:
    reader = PostgresRelation("items", options(url=server.url, **given))
    schema = parse_schema("id INT, name STRING")
    yield TableRefresh(spark, RefreshedTable("items", reader.read, schema, (0,), HOUR), str(folder))


@pytest.mark.spark
def test_a_refreshed_table_goes_on_while_the_server_is_away(
    spark: SparkSession, server: Server, run: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run("""
        CREATE TABLE items (id integer, name text, version bigint, gone boolean);
        INSERT INTO items VALUES (1, 'one', 1), (2, 'two', 2), (3, 'three', 3)
    """)
    given = {"table": "items", "changes_by": "version", "deleted_by": "gone", "overlap": 0}

    def updates() -> list[tuple[Any, ...]]:
        rows = spark.read.parquet(str(tmp_path)).collect()
        return sorted((row["_reading"], row["_op"], row["id"], row["name"]) for row in rows)

    with refreshed(spark, server, tmp_path, **given) as table:
        table.read_at_start()
        run("""
            UPDATE items SET name = 'uno', version = 4 WHERE id = 1;
            UPDATE items SET gone = true, version = 5 WHERE id = 2;
            DELETE FROM items WHERE id = 3
        """)
        assert table.refresh() == 2, "a row that is deleted without a flag is not seen"
        assert table.refresh() == 0
    assert updates() == [
        (0, "+", 1, "one"),
        (0, "+", 2, "two"),
        (0, "+", 3, "three"),
        (1, "+", 1, "uno"),
        (1, "-", 2, "two"),
    ]
    server.stop(signal.SIGINT)
    try:
        with refreshed(spark, server, tmp_path, **given) as table, caplog.at_level("WARNING", "sash"):
            table.read_at_start()
            with pytest.raises(SourceError):
                table.refresh()
        assert "relation items could not be refreshed and keeps its contents" in caplog.text
    finally:
        server.start()
    with refreshed(spark, server, tmp_path, **given) as table:
        assert table.refresh() == 1, "the first reading of a run is whole"
    assert updates()[-1] == (2, "-", 3, "three")
    run("INSERT INTO items VALUES (1, 'twice', 9)")
    with refreshed(spark, server, tmp_path, **given) as table, pytest.raises(BadRowError, match="duplicates"):
        table.read_at_start()


@pytest.mark.spark
def test_statements_join_a_stream_with_tables_of_a_server(
    spark: SparkSession, server: Server, run: Callable[[str], None], tmp_path: Path
) -> None:
    run("""
        CREATE TABLE groups (k text, title varchar(20)); INSERT INTO groups VALUES ('k1', 'one'), ('k2', 'two');
        CREATE TABLE sizes (v integer, size numeric(4, 1)); INSERT INTO sizes VALUES (1, 1.5), (2, 2.5), (4, 4.5)
    """)
    engine, sink = file_engine(spark, tmp_path / "in"), FolderSink(tmp_path / "out")
    backend = LiveBackend(engine)
    for statement in read_script(f"""
        CREATE RELATION groups USING postgres OPTIONS (url '{server.url}', table 'public.groups') KEY (k) REFRESH '1 day';
        CREATE RELATION sizes (v BIGINT, size DOUBLE) USING postgres OPTIONS (url '{server.url}', query 'SELECT * FROM sizes;')
    """):
        assert isinstance(statement, CreateRelation)
        check_table(statement)
        backend.add_relation(statement)
    query = engine.sql(
        "SELECT s.v, g.title, z.size FROM s [RANGE 1 SECOND] JOIN groups g ON s.k = g.k JOIN sizes z ON s.v = z.v"
    )
    rows: list[dict[str, Any]] = [{"ts": 1_000 * n, "k": f"k{n % 3}", "v": n} for n in range(6)]
    write_batch(tmp_path / "in", 0, rows)
    running = query.start(sink, trigger="100 milliseconds", checkpoint=str(tmp_path / "c"))
    try:
        running.process_all()
        run("UPDATE groups SET title = 'uno' WHERE k = 'k1'")
        assert running.refresh() == 1
        running.process_all()
    finally:
        running.stop()
    server.stop(signal.SIGINT)
    try:  # started again while the server is away, the query goes on with the contents
        write_batch(tmp_path / "in", 1, [{"ts": 9_000, "k": "k0", "v": 0}])
        again = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "c"))
        again.await_termination()
        again.stop()
    finally:
        server.start()
    answer: Counter[Any] = Counter()
    for (op, _, *row), count in sink.read().items():
        answer[tuple(row)] += count if op == "+" else -count
    assert +answer == Counter({(1, "uno", 1.5): 1, (2, "two", 2.5): 1, (4, "uno", 4.5): 1})


def test_a_reading_that_fails_is_tried_again_with_growing_pauses(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    waits: list[float] = []
    found = iter([SourceError("away"), SourceError("still away"), BadRowError("twice"), 0, SourceError("away"), 1])

    class Stopped:
        """An event that is set after six readings."""

        def wait(self, timeout: float) -> bool:
            waits.append(timeout)
            return len(waits) > 6

        def is_set(self) -> bool:
            return False

    def refresh(_: TableRefresh) -> int:
        result = next(found)
        if isinstance(result, Exception):
            raise result
        return result

    monkeypatch.setattr(TableRefresh, "refresh", refresh)
    table = TableRefresh.__new__(TableRefresh)
    table._table = RefreshedTable("items", lambda _: Reading(pa.table({})), (), (), 7 * SECOND)
    table._stopped = Stopped()  # type: ignore[assignment]
    with caplog.at_level("WARNING", "sash"):
        table._run()
    assert waits == [7, 2, 4, 7, 7, 2, 7]
    assert "relation items was read again, after 3 failed tries" in caplog.messages
    assert "relation items could not be refreshed and keeps its contents: still away" in caplog.messages


def test_statements_are_checked_without_a_server() -> None:
    def errors(clauses: str, options: str = "table 't'") -> list[str]:
        source = f"USING postgres OPTIONS (url 'postgresql:///nowhere', {options})"
        found = check(f"CREATE RELATION r (k INT, v STRING) {source} {clauses}", DryRunBackend())
        return [str(error) for error in found if "starts no query" not in str(error)]

    assert errors("KEY (k) REFRESH '1 minute'") == []
    assert errors("KEY (k) REFRESH '1 minute'", "table 't', changes_by 'v'") == []
    assert "add REFRESH '1 minute'" in errors("KEY (k)", "table 't', changes_by 'v'")[0]
    assert "REFRESH compares rows by key: add KEY" in errors("REFRESH '1 minute'")[0]
    assert "needs one of the options table and query" in errors("KEY (k)", "deleted_by 'v'")[0]
    assert "needs the option url" in str(
        check("CREATE RELATION r USING postgres OPTIONS (table 't')", DryRunBackend())[0]
    )
    (statement,) = read_script(
        "CREATE RELATION r USING postgres OPTIONS (url 'postgresql://x@/d?host=/nowhere', table 't')"
    )
    assert isinstance(statement, CreateRelation)
    with pytest.raises(SourceError, match="start the server"):
        check_table(statement)
