from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from sash.cli.preflight import check_package
from sash.errors import CatalogError, OptionError
from sash.plan.types import BIGINT, STRING, Field
from sash.spark import packages
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.kafka import KafkaTopic, messages

pytestmark = pytest.mark.spark

SCHEMA = (Field("k", STRING), Field("n", BIGINT))
OPTIONS = {"kafka.bootstrap.servers": "localhost:1", "topic": "t"}


@pytest.fixture
def batch(spark: SparkSession) -> DataFrame:
    rows = [("-", 3, "a", 1), ("+", 3, "a", 2), ("-", 4, "b", 5), ("+", 2, "b", 5), ("+", 1, None, 7)]
    return spark.createDataFrame(rows, "_op string, _ts long, k string, n long")


def read(frame: DataFrame) -> list[tuple[Any, Any]]:
    return sorted(
        ((json.loads(row["key"]), row["value"] and json.loads(row["value"])) for row in frame.collect()), key=str
    )


def test_an_upsert_topic_has_the_last_row_of_every_key_and_tombstones(batch: DataFrame) -> None:
    found = read(messages(batch, OutputSpec(SCHEMA, BIGINT, "upsert", (0,), "one"), 7))
    assert found == [({"k": "a"}, {"k": "a", "n": 2}), ({"k": "b"}, None), ({}, {"n": 7})]


def test_other_topics_have_every_change(batch: DataFrame) -> None:
    found = read(messages(batch, OutputSpec(SCHEMA, BIGINT, "changes", None, "one"), 7))
    assert len(found) == 5
    assert ({"k": "a", "n": 2}, {"_op": "+", "_ts": 3, "k": "a", "n": 2}) in found


def test_options_are_kafka_s_and_the_topic() -> None:
    KafkaTopic({**OPTIONS, "kafka.acks": "all"})
    with pytest.raises(OptionError, match="needs the option topic"):
        KafkaTopic({"kafka.bootstrap.servers": "x"})
    with pytest.raises(OptionError, match="did you mean topic"):
        KafkaTopic({**OPTIONS, "topik": "t"})


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "kafka_jars", list)
    with pytest.raises(CatalogError, match=r"sash run --with kafka .*spark\.jars\.packages.*spark-sql-kafka"):
        check_package({}, "kafka")
    wanted = packages.package_settings(["kafka"], {"spark.jars.packages": "a:b:1"})
    assert wanted["spark.jars.packages"].startswith("a:b:1,org.apache.spark:spark-sql-kafka")
    check_package(wanted, "kafka")
    monkeypatch.setattr(packages, "kafka_jars", lambda: [Path("/jars/a.jar"), Path("/jars/b.jar")])
    assert packages.package_settings(["kafka"], {}) == {"spark.jars": "/jars/a.jar,/jars/b.jar"}


def test_changes_are_numbered_alike_however_a_batch_is_computed(batch: DataFrame) -> None:
    spec = OutputSpec(SCHEMA, BIGINT, "changes", None, "one")

    def headers(frame: DataFrame) -> set[tuple[str, ...]]:
        rows = messages(frame, spec, 7).collect()
        return {(row["value"], *(f"{h.key}={bytes(h.value).decode()}" for h in row["headers"])) for row in rows}

    twice = batch.union(batch)
    found = headers(twice)
    assert found == headers(twice.repartition(3).orderBy("n"))
    assert len({parts[-1] for parts in found}) == 10, "equal changes have different numbers"
    assert {parts[1:3] for parts in found} == {("sash-query=one", "sash-batch=7")}
