"""Variants in the columns of Spark's sources and sinks, with Spark in batch as the oracle."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import sash

pytestmark = pytest.mark.spark

ROWS = """
SELECT timestamp_seconds(id) AS ts, CAST(id AS INT) AS id,
    CASE id WHEN 1 THEN to_variant_object(named_struct('day', DATE'2024-02-29', 'at', TIMESTAMP'2024-02-29 12:00:00.5',
            'x', FLOAT(0.1), 'n', DOUBLE('NaN'), 'd', 12.50BD, 'y', X'00FF', 'k', 1))
        WHEN 2 THEN parse_json('{"k": 2, "day": "2024-03-01", "l": [1, 2.5, 1e3, null, true]}')
        WHEN 3 THEN NULL ELSE parse_json('null') END AS v,
    CASE WHEN id < 4 THEN array(parse_json(CAST(id AS STRING)), NULL) END AS l,
    named_struct('v', parse_json('"x"'), 'm', make_ym_interval(1)) AS s
FROM range(1, 6)
"""
SELECTED = "id, v, v:k::INT AS k, v:day::DATE AS day, l, l[0]::INT AS first, s, map('a', v) AS m"
SHOWN = [
    "id", "to_json(v) AS v", "schema_of_variant(v) AS type", "k", "day", "transform(l, x -> to_json(x)) AS l", "first",
    "to_json(s.v) AS s", "CAST(s.m AS STRING) AS i", "to_json(m['a']) AS m",
]  # fmt: skip


@pytest.fixture
def engine(spark: SparkSession, tmp_path: Path) -> sash.Engine:
    spark.sql(ROWS).coalesce(1).write.parquet(str(tmp_path / "in"))
    engine = sash.Engine(spark)
    engine.stream("s", spark.readStream.schema(spark.sql(ROWS).schema).parquet(str(tmp_path / "in")))
    return engine


def shown(frame: DataFrame) -> list[str]:
    return sorted(repr(tuple(row)) for row in frame.selectExpr(*SHOWN).collect())


def test_oracle_variants_of_a_source_reach_sinks_as_spark_made_them(
    spark: SparkSession, engine: sash.Engine, tmp_path: Path
) -> None:
    # The changes at the last instant wait for later rows.
    expected = shown(spark.sql(f"SELECT {SELECTED} FROM ({ROWS}) WHERE id < 5"))
    query = engine.sql(f"SELECT {SELECTED} FROM s [RANGE 1 HOUR]")
    assert [str(column) for column in query.schema][3:6] == [
        "day DATE", "l ARRAY<VARIANT>", "first INT",
    ]  # fmt: skip
    alone = str(tmp_path / "alone")
    query.start("parquet", trigger="available_now", path=alone, checkpoint=str(tmp_path / "c")).await_termination()
    assert shown(spark.read.option("mergeSchema", True).parquet(alone).where("_op = '+'")) == expected

    job = engine.job(trigger="available_now", checkpoint=str(tmp_path / "j"))
    job.add("all", query, "parquet", path=str(tmp_path / "job"))
    above = "SELECT a.id, a.v FROM s [RANGE 1 HOUR] AS a JOIN s [RANGE 1 HOUR] AS b ON a.v:k::INT = b.v:k::INT"
    job.add("joined", above, "parquet", path=str(tmp_path / "joined"))
    job.start().await_termination()
    assert shown(spark.read.parquet(str(tmp_path / "job")).where("_op = '+'")) == expected
    joined = spark.read.parquet(str(tmp_path / "joined")).where("_op = '+'").selectExpr("id", "to_json(v)").collect()
    texts = {row["id"]: row["v"] for row in spark.sql(ROWS).selectExpr("id", "to_json(v) AS v").collect()}
    assert sorted(tuple(row) for row in joined) == [(key, texts[key]) for key in (1, 2)]


def test_the_current_answer_has_texts_of_variants(engine: sash.Engine) -> None:
    """Texts that are equal cancel out, which objects of PySpark do not."""
    with engine.sql("SELECT FIRST(v) AS v, COUNT(*) AS n FROM s [RANGE 1 HOUR] WHERE id < 4").live(
        trigger="available_now", name="first-variant"
    ) as answer:
        answer.running.await_termination()
        (row,) = answer.rows()
    assert row["n"] == 3
    assert row["v"].startswith('{"at":"2024-02-29 12:00:00.5+00:00","d":12.5,"day":"2024-02-29","k":1,"n":"NaN",')
