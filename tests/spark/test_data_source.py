from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from sash.changelog import Compaction
from sash.errors import CatalogError, OptionError, SashError
from sash.plan.types import TIMESTAMP
from sash.spark.data_source import SashSource, answer
from tests.changelog.test_compaction import batch, fold, made_up, sink
from tests.window_store.feeding import Fed, counted

COUNTED = "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 20 MICROSECONDS] GROUP BY k"


def write(log: Path, mode: Any = "changes", time: Any = TIMESTAMP, **options: Any) -> list[tuple[Any, ...]]:
    writer = sink(log, mode, time, **options)
    batches = made_up(40)
    for number, changes in enumerate(batches):
        writer(batch(changes, time), number)
    return [change for changes in batches for change in changes]


@pytest.mark.parametrize("mode", ["changes", "upsert"])
def test_oracle_the_answer_at_an_instant_is_the_changes_up_to_it(tmp_path: Path, mode: str) -> None:
    changes = write(tmp_path / "log", mode, compact=7)
    for instant in (-1, 0, 95, 200, 1_000):
        found = Counter(tuple(row.values()) for row in answer(tmp_path / "log", instant).to_pylist())
        assert found == fold(changes, instant)


def test_an_answer_before_the_retention_is_refused(tmp_path: Path) -> None:
    changes = write(tmp_path / "log", compact=5, retain="100 microseconds")
    with pytest.raises(CatalogError, match="has the answers from"):
        answer(tmp_path / "log", 10)
    found = Counter(tuple(row.values()) for row in answer(tmp_path / "log", 380).to_pylist())
    assert found == fold(changes, 380)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Fed]:
    """A kept window."""
    found = Fed(tmp_path / "window")
    found.feed(43, 30)
    yield found
    found.close()


def test_differential_a_query_over_a_kept_window_is_the_standing_query_at_its_last_update(kept: Fed) -> None:
    source = SashSource({"path": str(kept.root), "query": COUNTED})
    assert source.schema().simpleString() == "struct<k:string,n:bigint,total:bigint>"

    def read() -> Counter[tuple[Any, ...]]:
        batches = source.reader(source.schema()).read(None)  # type: ignore[arg-type]
        return counted(pa.Table.from_batches(batches).to_pylist())  # type: ignore[arg-type]

    first = read()
    assert first == kept.truth(COUNTED, 40)
    kept.feed(71, 20)
    assert read() == kept.truth(COUNTED, 70) != first
    with pytest.raises(OptionError, match="asOf is of changelogs"):
        SashSource({"path": str(kept.root), "query": COUNTED, "asOf": "latest"})
    with pytest.raises(OptionError, match="leave out query and asOf"):
        source.streamReader(None)  # type: ignore[arg-type]
    with pytest.raises(SashError, match="colour"):
        SashSource({"path": str(kept.root), "query": "SELECT colour FROM s"}).schema()


def test_options_are_checked(tmp_path: Path) -> None:
    path = str(tmp_path)
    with pytest.raises(OptionError, match="no option as_of"):
        SashSource({"path": path, "as_of": "latest"})
    with pytest.raises(OptionError, match="needs the path of a local folder"):
        SashSource({"path": "s3://bucket/log"})
    with pytest.raises(OptionError, match="asOf is an instant such as"):
        SashSource({"path": path, "asOf": "yesterday"})
    with pytest.raises(OptionError, match="leave out query and asOf"):
        SashSource({"path": path, "asOf": "latest"}).streamReader(None)  # type: ignore[arg-type]
    with pytest.raises(CatalogError, match="has no changes yet"):
        SashSource({"path": path}).schema()


@pytest.mark.spark
def test_spark_reads_a_changelog_as_changes_as_an_answer_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    changes = write(log, compact=0)
    found = spark.read.format("sash").load(str(log))
    assert found.dtypes == [("_op", "string"), ("_ts", "timestamp"), ("k", "string"), ("n", "bigint")]
    assert Counter(map(tuple, found.select("_op", "k", "n").collect())) == Counter(
        (op, k, n) for op, _, k, n in changes
    )
    answers = spark.read.format("sash").option("asOf", "1970-01-01T00:00:00.000095Z").load(str(log))
    assert Counter(map(tuple, answers.collect())) == fold(changes, 95)

    def run() -> None:
        stream = spark.readStream.format("sash").load(str(log)).writeStream.option("path", str(tmp_path / "copy"))
        stream.option("checkpointLocation", str(tmp_path / "state")).trigger(
            availableNow=True
        ).start().awaitTermination()

    run()
    Compaction(log, 1, None, lambda table: table).run(39)
    sink(log, time=TIMESTAMP)(batch([("+", 400, "z", 1)], TIMESTAMP), 40)
    run()
    copied = spark.read.parquet(str(tmp_path / "copy")).select("_op", "k", "n").collect()
    assert Counter(map(tuple, copied)) == Counter([*((op, k, n) for op, _, k, n in changes), ("+", "z", 1)])


@pytest.mark.spark
def test_spark_reads_the_answer_of_a_query_over_a_kept_window(spark: SparkSession, kept: Fed) -> None:
    found = spark.read.format("sash").option("query", COUNTED).load(str(kept.root))
    assert found.columns == ["k", "n", "total"]
    expected = kept.truth(COUNTED, 40)
    assert Counter(map(tuple, found.collect())) == expected
    kept_only = Counter(map(tuple, found.where("n > 2").select("k").collect()))
    assert kept_only == Counter((k,) for k, n, _ in expected if n > 2)
