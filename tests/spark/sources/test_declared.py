from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import CatalogError, QueryFailedError
from sash.script.reader import read_script
from sash.script.sources import STREAMS
from sash.script.statements import CreateRelation, CreateStream, Declaration
from sash.spark.sources import static_frame, stream_frame, stream_rereading
from sash.spark.sources.declared import _spark_errors
from sash.spark.sources.history import kafka_options
from tests.kafka import fetched

pytestmark = pytest.mark.spark


def given(text: str) -> Declaration:
    (statement,) = read_script(text)
    assert isinstance(statement, CreateStream | CreateRelation)
    return statement.declaration


def collected(spark: SparkSession, text: str, name: str) -> list[tuple[object, ...]]:
    """The current rows of a stream."""
    query = stream_frame(spark, given(text)).writeStream.format("memory").queryName(name).start()
    try:
        query.processAllAvailable()
        return [tuple(row) for row in spark.table(name).collect()]
    finally:
        query.stop()


def test_files_of_any_age_are_read_with_the_declared_columns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,item\n1,7\n2,\n")
    sql = f"CREATE STREAM s (ts BIGINT, item INT) USING csv OPTIONS (path '{tmp_path}', header true)"
    assert sorted(collected(spark, sql, "csv_rows"), key=str) == [(1, 7), (2, None)]
    static = f"CREATE RELATION r USING csv OPTIONS (path '{tmp_path}', header true, inferSchema true)"
    assert static_frame(spark, given(static)).columns == ["ts", "item"]


def test_a_header_that_differs_from_the_schema_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("item,ts\n7,1\n")
    sql = f"CREATE STREAM s (ts BIGINT, item INT) USING csv OPTIONS (path '{tmp_path}', header true)"
    engine = Engine(spark)
    engine.stream("s", stream_frame(spark, given(sql)))
    running = engine.sql("SELECT item FROM s [NOW]").start("noop")
    with pytest.raises(
        QueryFailedError, match=r"has the columns \(item, ts\), but the stream is declared with \(ts, item\)"
    ):
        running.process_all()
    running.stop()


def test_lines_get_their_arrival_time_or_are_parsed(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text('{"ts": 1, "k": "a"}\n')
    path = f"OPTIONS (path '{tmp_path}'"
    ((ts, value),) = collected(spark, f"CREATE STREAM s USING text {path})", "lines")
    assert ts is not None
    assert value == '{"ts": 1, "k": "a"}'
    sql = f"CREATE STREAM s (ts BIGINT, k STRING) USING text {path}, format 'json')"
    assert collected(spark, sql, "parsed") == [(1, "a")]


def test_a_socket_is_read(spark: SparkSession) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            connection.sendall(b"1,a\n2,b\n")
            closed.wait(600)
            connection.close()

        closed = threading.Event()
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        options = f"host '127.0.0.1', port {server.getsockname()[1]}, format 'csv'"
        frame = stream_frame(spark, given(f"CREATE STREAM s (ts BIGINT, k STRING) USING socket OPTIONS ({options})"))
        query = frame.writeStream.format("memory").queryName("socket_rows").start()
        try:
            for _ in range(6_000):
                query.processAllAvailable()
                if spark.table("socket_rows").count() == 2:
                    break
                closed.wait(0.1)
            assert {tuple(row) for row in spark.table("socket_rows").collect()} == {(1, "a"), (2, "b")}
        finally:
            query.stop()
            closed.set()
            thread.join()


def test_the_generator_makes_sales_and_items(spark: SparkSession) -> None:
    sales = stream_frame(spark, given("CREATE STREAM s USING generator OPTIONS (rate 500, items 5)"))
    assert sales.isStreaming
    assert sales.columns == ["ts", "store_id", "item_id", "price", "quantity"]
    items = static_frame(spark, given("CREATE RELATION i USING generator OPTIONS (items 20)"))
    assert [row["item_id"] for row in items.where("favourite = 1").collect()] == [0, 10]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE STREAM s (ts BIGINT) USING csv OPTIONS (path '/nowhere/at/all')", "there is no /nowhere/at/all"),
        ("CREATE STREAM s (ts BIGINT) USING cvs OPTIONS (path '/tmp')", "did you mean csv"),
        ("CREATE STREAM s USING generator OPTIONS (rat 5)", "did you mean rate"),
        ("CREATE STREAM s USING generator OPTIONS (rate 0)", "a whole number from 1"),
    ],
)
def test_errors_name_the_source_and_the_remedy(spark: SparkSession, text: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message):
        stream_frame(spark, given(text))


@pytest.mark.skipif(fetched(), reason="Spark's Kafka package is loaded")
def test_kafka_without_its_package_says_which_one(spark: SparkSession) -> None:
    sql = "CREATE STREAM s USING kafka OPTIONS (kafka.bootstrap.servers 'x:1', subscribe 't')"
    with pytest.raises(CatalogError, match=r'"spark\.jars\.packages", "org\.apache\.spark:spark-sql-kafka'):
        stream_frame(spark, given(sql))


def test_spark_s_word_for_a_missing_package_is_recognized() -> None:
    declaration = given("CREATE STREAM s USING kafka OPTIONS (kafka.bootstrap.servers 'x:1', subscribe 't')")
    with (
        pytest.raises(CatalogError, match=r"sash run --with kafka job\.sql"),
        _spark_errors("stream", declaration, STREAMS),
    ):
        raise AnalysisException("[DATA_SOURCE_NOT_FOUND] Failed to find the data source: kafka.")


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        ("USING csv OPTIONS (path '{}', header true, maxFilesPerTrigger 1)", "ts,k\n1,a\n2,\n"),
        ("USING json OPTIONS (path '{}', maxFileAge '7d', cleanSource 'off')", '{"ts": 1, "k": "a"}\n{"ts": 2}\n'),
        ("USING text OPTIONS (path '{}', format 'json')", '{"ts": 1, "k": "a"}\n{"ts": 2}\n'),
    ],
)
def test_files_are_read_again_one_by_one(spark: SparkSession, tmp_path: Path, declared: str, text: str) -> None:
    (tmp_path / "a [1].x").write_text(text)
    (tmp_path / "b.x").write_text(text)
    again = stream_rereading(spark, given(f"CREATE STREAM s (ts BIGINT, k STRING) {declared.format(tmp_path)}"))
    assert again.read is not None
    rows = again.read([f"file://{tmp_path}/a [1].x"])
    assert sorted(map(tuple, rows.collect()), key=str) == [(1, "a"), (2, None)]
    assert again.whole


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("CREATE STREAM s USING generator", "not generator"),
        ("CREATE STREAM s USING text OPTIONS (path '/tmp')", "the times at which they were read"),
        ("CREATE STREAM s (ts BIGINT) USING delta OPTIONS (path '/tmp')", "not delta"),
    ],
)
def test_other_sources_are_not_read_again(spark: SparkSession, text: str, reason: str) -> None:
    again = stream_rereading(spark, given(text))
    assert again.read is None
    assert reason in again.refused


def test_kafka_is_read_again_up_to_its_offsets(spark: SparkSession) -> None:
    options = "OPTIONS ('kafka.bootstrap.servers' 'localhost:1', subscribe 't', format 'json')"
    parsed = stream_rereading(spark, given(f"CREATE STREAM s (ts BIGINT) USING kafka {options}"))
    assert (parsed.refused, parsed.whole, parsed.read_from) == ("", False, None)
    assert stream_rereading(spark, given(f"CREATE STREAM s USING kafka {options}")).read_from is not None
    found = kafka_options({"kafka.bootstrap.servers": "b", "subscribe": "t"}, '{"t":{"0":12}}', 7_000_001)
    assert found == {
        "kafka.bootstrap.servers": "b", "assign": '{"t": [0]}', "endingOffsets": '{"t":{"0":12}}',
        "startingTimestamp": "7000", "startingOffsetsByTimestampStrategy": "latest",
    }  # fmt: skip
