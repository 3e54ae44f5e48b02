"""A query that is added to a job with BACKFILL has the answer of one that was there from the start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sash.engine import Engine
from sash.errors import CheckpointError, OptionError
from sash.spark.folders import Folder
from sash.spark.sources.history import read_files
from tests.spark.files import FolderSink, batches_of, expected, file_engine, made_up_rows, write_batch
from tests.spark.test_job_changes import BY_KEY, LONGER, TOTAL, answer, job_of, netted, run

pytestmark = pytest.mark.spark

LATE = [{"ts": 1_500, "k": "k1", "v": 100_000}, {"ts": 25_000, "k": "k2", "v": 100_000}]
"""Rows that come with the third batch, when the clock is at 39 ms."""
BATCHES = batches_of(made_up_rows(6))
ROWS = [row for batch in BATCHES for row in batch]
EVENTS = "SELECT v % 3 AS third, COUNT(*) AS n, MAX(v) AS m FROM s [RANGE 50 MILLISECONDS] WHERE v > 1 GROUP BY v % 3"
COUNTED = "SELECT v, COUNT(*) AS n FROM s [ROWS 70] GROUP BY v"
STAGES = "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 70 MILLISECONDS] GROUP BY k) GROUP BY n"
LATEST = "SELECT k, SUM(v) AS total FROM s [PARTITION BY k ROWS 3] GROUP BY k"
NAMED = "SELECT r.g, COUNT(*) AS n FROM s [RANGE 70 MILLISECONDS] JOIN r ON s.k = r.k GROUP BY r.g"
NEW = {"longer": LONGER, "events": EVENTS, "counted": COUNTED, "latest": LATEST, "stages": STAGES}


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> Iterator[Engine]:
    with file_engine(spark, tmp_path / "in") as made:
        yield made


def put(folder: Path, numbers: range) -> None:
    for number in numbers:
        write_batch(folder / "in", number, [*BATCHES[number], *(LATE if number == 2 else ())])


def at(sql: str, last: int) -> Counter[tuple[Any, ...]]:
    """The answer after this many batches."""
    folded: Counter[tuple[Any, ...]] = Counter()
    for (op, _, *row), count in expected(sql, [row for batch in BATCHES[:last] for row in batch]).items():
        folded[tuple(row)] += count if op == "+" else -count
    return +folded


def test_new_queries_are_complete_at_once(engine: Engine, tmp_path: Path) -> None:
    engine.relation("r", engine.spark.createDataFrame([(f"k{n}", f"g{n}") for n in range(10)], "k string, g string"))
    put(tmp_path, range(4))
    run(job_of(engine, tmp_path, {"a": BY_KEY}))
    job = job_of(engine, tmp_path, {"a": BY_KEY})
    for name, sql in NEW.items():
        job.add(name, sql, FolderSink(tmp_path / name), mode="changes", backfill=True)
    job.add("named", NAMED, FolderSink(tmp_path / "named"), mode="changes", backfill=True)
    assert "longer   new      complete at once by backfill from 4 files of stream s" in job.diff().render()
    progress = run(job, "apply")
    for name, sql in NEW.items():
        assert "complete_from" not in progress[name]
        assert answer(tmp_path, name) == at(sql, 4), name
    assert answer(tmp_path, "named") == {(k.replace("k", "g"), n): 1 for k, n in at(LONGER, 4)}
    put(tmp_path, range(4, 6))
    run(job)
    for name, sql in NEW.items():
        assert answer(tmp_path, name) == at(sql, 6), name
    assert FolderSink(tmp_path / "a").read() == expected(BY_KEY, ROWS), "no change is repeated, or of a late row"


def test_without_backfill_a_new_query_is_incomplete(engine: Engine, tmp_path: Path) -> None:
    put(tmp_path, range(4))
    run(job_of(engine, tmp_path, {"a": BY_KEY}))
    progress = run(job_of(engine, tmp_path, {"a": BY_KEY, "longer": LONGER}), "apply")
    assert progress["longer"]["complete_from"] > max(row["ts"] for row in BATCHES[3])
    assert answer(tmp_path, "longer") != at(LONGER, 4)


def test_rows_ahead_of_the_clock_are_read_once_and_later_files_not(spark: SparkSession, tmp_path: Path) -> None:
    with file_engine(spark, tmp_path / "in", slack="15 milliseconds") as engine:
        put(tmp_path, range(2))
        run(job_of(engine, tmp_path, {"a": TOTAL}))
        put(tmp_path, range(2, 4))
        job = job_of(engine, tmp_path, {"a": TOTAL})
        job.add("longer", LONGER, FolderSink(tmp_path / "longer"), mode="changes", backfill=True)
        assert job.diff().query("longer").filled == ("by backfill from 2 files of stream s",)
        run(job, "apply")
        whole = engine.job(checkpoint=tmp_path / "other", trigger="available_now")
        whole.add("whole", LONGER, FolderSink(tmp_path / "whole"), mode="changes")
        run(whole)
    assert answer(tmp_path, "longer") == answer(tmp_path, "whole")
    begin = min(ts for ts, *_ in netted(tmp_path / "longer"))
    later = {change: count for change, count in netted(tmp_path / "whole").items() if change[0] > begin}
    assert {change: n for change, n in netted(tmp_path / "longer").items() if change[0] > begin} == later


def test_a_function_reads_the_files_again(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, range(3))
    files = (
        spark.readStream.schema("ts long, k string, v long").option("maxFileAge", "36500d").parquet(f"{tmp_path}/in")
    )
    given: list[Any] = []

    def history(read: Any) -> Any:
        given.append(read)
        return spark.read.parquet(*read).selectExpr("ts", "k", "v + 1 AS v")

    for again, sink in ((None, "refused"), (history, "filled")):
        with Engine(spark, shards=2) as engine:
            engine.stream("s", files.selectExpr("ts", "k", "v + 1 AS v"), history=again)
            run(job_of(engine, tmp_path, {"a": TOTAL}))
            job = job_of(engine, tmp_path, {"a": TOTAL})
            job.add(sink, "SELECT SUM(v) AS v FROM s [RANGE 2 SECONDS]", FolderSink(tmp_path / sink), backfill=True)
            if again is None:
                with pytest.raises(
                    OptionError, match=r"BACKFILL of refused: stream s cannot be read again: .* history="
                ):
                    job.diff()
                with pytest.raises(OptionError, match="stream s cannot be read again"):
                    job.start(on_change="apply")
            else:
                gone = (tmp_path / "in" / "1.parquet").rename(tmp_path / "1.parquet")
                with pytest.raises(CheckpointError, match=r"BACKFILL: stream s cannot be read again: .*1\.parquet"):
                    job.diff()
                gone.rename(tmp_path / "in" / "1.parquet")
                run(job, "apply")
    assert sorted(given[0]) == [f"file://{tmp_path}/in/{number}.parquet" for number in range(3)]
    rows = [row for batch in BATCHES[:3] for row in batch]
    last = max(row["ts"] for row in rows)
    assert answer(tmp_path, "filled") == {(sum(row["v"] + 1 for row in [*rows, *LATE] if row["ts"] < last),): 1}


def test_the_log_of_files_is_read_up_to_an_offset(spark: SparkSession, tmp_path: Path) -> None:
    folder = Folder(spark, str(tmp_path))
    line = '{{"path":"file:///f{0}","timestamp":1,"batchId":{0}}}'
    for number in (0, 1, 3, 4):
        folder.write(str(number), "v1\n" + line.format(number))
    folder.write("2.compact", "v1\n" + "\n".join(line.format(number) for number in range(3)))
    assert read_files(folder, '{"logOffset":3}') == {f"file:///f{number}": number for number in range(4)}
    assert read_files(folder, '{"logOffset":1}') == {f"file:///f{number}": number for number in range(2)}
    assert read_files(folder, '{"t":{"0":1}}') is None
