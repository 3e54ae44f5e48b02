from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sash
from sash.errors import (
    BadRowError,
    CatalogError,
    CheckpointError,
    OptionError,
    StatisticsError,
    StrategyError,
    UnknownNameError,
    UnsupportedSqlError,
)
from sash.testing import replay
from tests.spark.files import (
    SQL,
    TWO_STAGES,
    FolderSink,
    batches_of,
    expected,
    file_engine,
    made_up_rows,
    write_batch,
)

pytestmark = pytest.mark.spark


def rate(spark: SparkSession) -> Any:
    return spark.readStream.format("rate").load()


def test_streams_and_relations_are_checked_when_registered(spark: SparkSession) -> None:
    engine = sash.Engine(spark)
    with pytest.raises(CatalogError, match="not a streaming DataFrame"):
        engine.stream("s", spark.range(3))
    with pytest.raises(CatalogError, match="no column 'ts'"):
        engine.stream("s", rate(spark))
    with pytest.raises(CatalogError, match="is STRING"):
        engine.stream("s", rate(spark).selectExpr("'x' AS ts"))
    with pytest.raises(OptionError, match="length of time"):
        engine.stream("s", rate(spark), time="timestamp", slack="a while")
    with pytest.raises(CatalogError, match="cannot be written in SQL"):
        engine.stream("my stream", rate(spark), time="timestamp")
    engine.stream("s", rate(spark), time="TIMESTAMP", slack="1.5 seconds")
    with pytest.raises(CatalogError, match="already registered"):
        engine.relation("S", spark.range(3))
    with pytest.raises(CatalogError, match="no column 'x' to be its key"):
        engine.relation("r", spark.range(3), key="x")
    with pytest.raises(BadRowError, match="2 rows of key"):
        engine.relation("r", spark.range(4).selectExpr("id % 3 AS k"), key=["k"])
    with pytest.raises(CatalogError, match="pass changes=True"):
        engine.relation("r", rate(spark))
    with pytest.raises(CatalogError, match="no column 'ts'"):
        engine.relation("r", rate(spark), changes=True)
    with pytest.raises(CatalogError, match="no column _op"):
        engine.relation("r", rate(spark), changes=True, time="timestamp")
    with pytest.raises(CatalogError, match="pass a refresh period"):
        engine.relation("r", spark.range(3), key="id", changes=True)
    with pytest.raises(CatalogError, match="found by key"):
        engine.relation("r", spark.range(3), refresh="1 second")
    with pytest.raises(CatalogError, match="pass a refresh period"):
        engine.relation("r", lambda: spark.range(3), key="id")
    with pytest.raises(CatalogError, match="leave out heartbeat"):
        engine.relation("r", spark.range(3), key="id", heartbeat="1 second", refresh="1 second")
    with pytest.raises(CatalogError, match="leave out refresh"):
        engine.relation("r", rate(spark), key="value", time="timestamp", refresh="1 second")
    with pytest.raises(CatalogError, match="r must be a DataFrame of Spark's, not 3"):
        engine.relation("r", lambda: 3, key="id", refresh="1 second")  # type: ignore[arg-type,return-value]
    engine.relation("r", spark.range(3), key="ID", retroactive=False)
    with pytest.raises(StrategyError, match="there is no strategy"):
        engine.sql("SELECT value FROM s [NOW]", strategy="wild")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"only in sash\.testing\.replay"):
        engine.sql("SELECT value FROM s [NOW]", strategy="clock-triggered")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no bad_rows 'keep'"):
        engine.stream("t", rate(spark), time="timestamp", bad_rows="keep")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="shards must be at least 1"):
        sash.Engine(spark, shards=0)


def test_sources_are_replaced_together_or_not_at_all(spark: SparkSession) -> None:
    engine = sash.Engine(spark)
    rate = spark.readStream.format("rate").load()
    engine.stream("s", rate, time="timestamp", rate=5)
    engine.relation("t", spark.range(3))
    with pytest.raises(CatalogError, match="no column 'ts'"), engine.replacing_sources():
        engine.stream("u", rate, time="ts")
    assert (set(engine.catalog.streams), set(engine.catalog.relations)) == ({"s"}, {"t"})
    engine.sql("SELECT COUNT(*) AS n FROM s [RANGE 1 SECOND] JOIN t ON value = id")
    with engine.replacing_sources():
        engine.stream(
            "s", spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load(), time="timestamp"
        )
    assert (set(engine.catalog.streams), set(engine.catalog.relations)) == ({"s"}, set())
    assert engine.catalog.streams["s"].statistics.rate is None


def test_declared_statistics_reach_the_plan(spark: SparkSession) -> None:
    engine = sash.Engine(spark)
    with pytest.raises(StatisticsError, match="no column 'colour'"):
        engine.stream("s", rate(spark), time="timestamp", rate=20, distinct={"colour": 3})
    with pytest.raises(StatisticsError, match="rows must be"):
        engine.relation("r", spark.range(3), rows=-1)
    engine.stream("s", rate(spark), time="timestamp", rate=20, distinct={"value": 7})
    engine.relation("r", spark.range(3), rows=3, distinct={"id": 3})
    query = engine.sql("SELECT DISTINCT value FROM s [RANGE 1 MINUTE] JOIN r ON s.value = r.id")
    assert "-> WKS; 20/s" in query.explain()
    assert "Alternatives that cost more" in query.explain(all=True)


def test_columns_that_are_not_carried_are_refused_by_name(spark: SparkSession) -> None:
    engine = sash.Engine(spark)
    columns = (
        "timestamp AS ts",
        "value",
        "array('a') AS tags",
        "named_struct('City', 'x') AS info",
        "make_interval(1) AS j",
    )
    engine.stream("s", rate(spark).selectExpr(*columns))
    assert [str(field) for field in engine.sql("SELECT tags, info.City FROM s [NOW]").schema] == [
        "tags ARRAY<STRING>",
        "City STRING",
    ]
    for sql in ("SELECT * FROM s [NOW]", "SELECT j FROM s [NOW]", "SELECT s.j FROM s [NOW]"):
        with pytest.raises(UnsupportedSqlError, match="the column j interval is not carried"):
            engine.sql(sql)
    with pytest.raises(UnknownNameError):
        engine.sql("SELECT nothing FROM s [NOW]")
    engine.drop("s")
    engine.stream("s", rate(spark).selectExpr("timestamp AS ts", "value"))
    assert len(engine.sql("SELECT * FROM s [NOW]").schema) == 2


def test_settings_are_put_back_after_a_start(spark: SparkSession, tmp_path: Path) -> None:
    partitions = "spark.sql.shuffle.partitions"
    spark.conf.set(partitions, "7")
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    try:
        running = file_engine(spark, tmp_path / "in").sql(SQL).start("noop", trigger="available_now")
        assert not running.query.status["message"].startswith("Initializing"), (
            "its sources were made under its settings"
        )
        running.await_termination()
        assert spark.conf.get(partitions) == "7"
        progress = running.progress()
        assert (progress["rows_in"], progress["late"], progress["batch"]) == (40, 0, 0)
        assert progress["watermark"] == max(row["ts"] for row in made_up_rows(1))
        assert progress["state_bytes"] > 0
        running.stop()
    finally:
        spark.conf.set(partitions, "2")


def test_differential_restarted_after_every_batch(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink = made_up_rows(4), FolderSink(tmp_path / "out")
    query = file_engine(spark, tmp_path / "in").sql(TWO_STAGES)
    rebuilt = []
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
        running = query.start(sink, trigger="available_now", checkpoint=str(tmp_path / "checkpoint"))
        running.await_termination()
        rebuilt.append(running.progress()["total_rebuilt"])
        running.stop()
    assert rebuilt[0] == 0
    assert all(count > 0 for count in rebuilt[1:])
    assert sink.read() == expected(TWO_STAGES, rows)


def test_upsert_and_net_fold_to_the_same_answer(spark: SparkSession, tmp_path: Path) -> None:
    rows = made_up_rows(3)
    for number, batch in enumerate(batches_of(rows)):
        write_batch(tmp_path / "in", number, batch)
    engine = file_engine(spark, tmp_path / "in")
    answers = []
    for mode in ("net", "upsert"):
        table: dict[Any, Any] = {}
        bag: Counter[Any] = Counter()

        def fold(batch: Any, number: int, table: Any = table, bag: Any = bag) -> None:
            for row in batch.collect():
                bag[tuple(row)[2:]] += 1 if row["_op"] == "+" else -1
                table[row["k"]] = tuple(row)[2:] if row["_op"] == "+" else None

        running = engine.sql(SQL).start(fold, mode=mode, trigger="available_now")  # type: ignore[arg-type]
        running.await_termination()
        running.stop()
        answers.append(set(+bag) if mode == "net" else {row for row in table.values() if row})
    last = max(row["ts"] for row in rows)
    final = replay(SQL, {"s": rows}, unit="us", until=last - 1)
    assert answers[0] == answers[1] == {tuple(row.values()) for row in final.at(last - 1)}


def test_upsert_needs_a_key(spark: SparkSession, tmp_path: Path) -> None:
    query = file_engine(spark, tmp_path / "in").sql("SELECT k, v FROM s [RANGE 1 SECOND]")
    with pytest.raises(CatalogError, match="upsert needs rows with a key"):
        query.start("noop", mode="upsert")
    with pytest.raises(CatalogError, match="'z' is not in the answer"):
        query.start("noop", mode="upsert", key=["z"])
    with pytest.raises(OptionError, match="no output mode 'append'"):
        query.start("noop", mode="append")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no output mode 'append'"):
        query.changes(mode="append")  # type: ignore[arg-type]


def test_the_engine_closes_its_queries_at_the_end_of_a_block(spark: SparkSession, tmp_path: Path) -> None:
    with file_engine(spark, tmp_path / "in") as engine:
        running = engine.sql(SQL).start("noop", name="totals")
        assert engine.running == {"totals": running}
        assert (running.name, running.active, running.exception()) == ("totals", True, None)
    assert not running.active
    assert engine.running == {}


def test_spark_words_for_triggers_and_waiting(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    query = file_engine(spark, tmp_path / "in").sql(SQL)
    seen: list[int] = []
    running = query.start(lambda _, number: seen.append(number), processingTime="10 milliseconds")
    running.process_all_available()
    running.stop()
    assert seen[:1] == [0]
    ended = query.start("noop", availableNow=True)
    assert ended.await_termination()
    assert ended.progress()["total_rows_in"] == 40


def test_a_checkpoint_of_another_query_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    engine, place = file_engine(spark, tmp_path / "in"), str(tmp_path / "checkpoint")
    running = engine.sql(SQL).start("noop", trigger="available_now", checkpoint=place)
    running.await_termination()
    with pytest.raises(CheckpointError, match="belongs to another query"):
        engine.sql(TWO_STAGES).start("noop", checkpoint=place)


def test_a_query_that_was_stopped_in_its_first_moments_starts_again(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    offsets = tmp_path / "checkpoint" / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.4f1c.tmp", "..0.4f1c.tmp.crc"):
        (offsets / name).write_text("v1")
    (tmp_path / "checkpoint" / "metadata").write_text('{"id":"0b0c1f0e-7c2f-4c43-9c5b-2a3d1cf5a001"}')
    query = file_engine(spark, tmp_path / "in").sql(SQL)
    (tmp_path / "checkpoint" / "sash-fingerprint.json").write_text(
        json.dumps({**query._fingerprint(), "identity": "one"})
    )
    running = query.start("noop", trigger="available_now", checkpoint=str(tmp_path / "checkpoint"))
    running.await_termination()
    assert running.progress()["total_rows_in"] == 40


def test_rows_without_a_time_stop_the_query_and_its_checkpoint_stays_good(spark: SparkSession, tmp_path: Path) -> None:
    rows, sink, place = made_up_rows(2), FolderSink(tmp_path / "out"), str(tmp_path / "checkpoint")
    first, second = batches_of(rows)
    write_batch(tmp_path / "in", 0, [*first, {"ts": None, "k": "x", "v": 9}])
    write_batch(tmp_path / "in", 1, second)
    running = file_engine(spark, tmp_path / "in").sql(SQL).start(sink, trigger="available_now", checkpoint=place)
    with pytest.raises(BadRowError, match="stream s has a row whose time column ts is NULL"):
        running.await_termination()
    assert isinstance(running.exception(), BadRowError)
    engine = file_engine(spark, tmp_path / "in", bad_rows="drop")
    running = engine.sql(SQL).start(sink, trigger="available_now", checkpoint=place)
    running.await_termination()
    assert running.progress()["total_bad"] == 1
    assert sink.read() == expected(SQL, rows)


def test_a_heartbeat_moves_an_idle_stream(spark: SparkSession, tmp_path: Path) -> None:
    write_batch(tmp_path / "in", 0, made_up_rows(1))
    sink = FolderSink(tmp_path / "out")
    engine = file_engine(spark, tmp_path / "in", heartbeat="1 second")
    query = engine.sql(SQL)
    with pytest.raises(OptionError, match="has a heartbeat"):
        query.start(sink, trigger="available_now")
    with pytest.raises(OptionError, match="has a heartbeat"):
        query.start(sink, availableNow=True)
    running = query.start(sink, trigger="200 milliseconds")
    try:
        bag: Counter[Any] = Counter()
        for _ in range(600):
            bag.clear()
            for (op, _ts, *row), count in sink.read().items():
                bag[tuple(row)] += count if op == "+" else -count
            if sink.read() and not +bag:
                break
            running.await_termination(1)
        assert sink.read()
        assert not +bag, "every group expires although no row comes any more"
    finally:
        running.stop()


def test_changes_are_an_ordinary_streaming_frame(spark: SparkSession, tmp_path: Path) -> None:
    changes = file_engine(spark, tmp_path / "in").sql(SQL).changes()
    assert changes.isStreaming
    assert changes.columns == ["_op", "_ts", "k", "n", "total"]
