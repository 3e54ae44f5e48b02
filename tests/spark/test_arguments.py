"""Arguments of the engine's calls: what is wrong with one is said by an error of Sash's, before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import sash
from sash.errors import CatalogError, OptionError, SashError, SqlSyntaxError, StatisticsError, StoreError, StrategyError
from sash.plan.statistics import UNKNOWN
from sash.spark.kept_window import KeptWindow
from tests.junk import ODD

pytestmark = pytest.mark.spark

SQL = "SELECT k, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY k"
LONG = 600
NAN = float("nan")
Call = Callable[..., Any]


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[sash.Engine]:
    with sash.Engine(spark, shards=1) as made:
        made.stream("s", stream(spark))
        yield made


def stream(spark: SparkSession) -> Any:
    return spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "value AS k")


def calls(engine: sash.Engine) -> dict[str, tuple[Call, dict[str, Any]]]:
    """The public calls, each with arguments with which it works, or fails only for the lack of a kept window."""
    spark, query = engine.spark, engine.sql(SQL)
    return {
        "Engine": (
            sash.Engine,
            {"spark": spark, "checkpoint": "c", "shards": 1, "strategy": "auto", "partitions": None},
        ),
        "stream": (
            engine.stream,
            {
                "name": "r", "df": stream(spark), "time": "ts", "slack": "1 second", "heartbeat": "1 second",
                "bad_rows": "drop", "rate": 1.0, "distinct": {"k": 5}, "statistics": UNKNOWN,
            },
        ),
        "relation": (
            engine.relation,
            {
                "name": "r", "df": spark.range(3), "key": "id", "retroactive": True, "changes": False, "time": "ts",
                "heartbeat": None, "refresh": "1 day", "bad_rows": "fail", "rows": 5, "distinct": {"id": 3},
                "statistics": UNKNOWN,
            },
        ),
        "drop": (engine.drop, {"name": "nothing"}),
        "sql": (
            engine.sql,
            {
                "text": SQL, "strategy": "auto", "join": "auto", "tau": None, "partitions": None, "purge": None,
                "buckets": None,
            },
        ),
        "changes": (query.changes, {"mode": "changes", "key": ["k"]}),
        "keep": (
            engine.keep,
            {
                "what": "nothing", "window": "1 minute", "every": "1 second", "name": "kept", "path": None, "retain": 0,
                "trigger": None,
            },
        ),
        "attach": (engine.attach, {"name": "kept", "path": "nothing"}),
        "snapshot": (
            engine.snapshot,
            {
                "sql": "SELECT COUNT(*) AS n FROM nothing [RANGE 1 SECOND]", "isolation": "latest", "priority": 1,
                "timeout": 1.0, "access": "auto", "reads": "local",
            },
        ),
        "submit": (engine.submit, {"sql": ["SELECT COUNT(*) AS n FROM nothing [RANGE 1 SECOND]"], "priority": 1}),
        "periodic": (
            engine.periodic,
            {
                "sql": "SELECT COUNT(*) AS n FROM nothing [RANGE 1 SECOND]", "every": 1, "priority": 0,
                "isolation": "latest", "access": "auto", "reads": "local", "callback": None, "queue": 1,
            },
        ),
    }  # fmt: skip


def test_odd_values_of_every_argument(engine: sash.Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    messages: dict[tuple[str, str], str] = {}
    faults: list[str] = []
    for called, (call, good) in calls(engine).items():
        for name in good:
            for number, value in enumerate(ODD):
                try:
                    made = call(**{**good, name: value})
                except SashError as problem:
                    messages[called, f"{name} {number}"] = str(problem)
                except Exception as problem:  # noqa: BLE001  (all of them are reported at the end)
                    faults.append(f"{called}({name}={type(value)!s}): {problem!r:.200}")
                else:
                    if isinstance(made, KeptWindow):
                        made.stop()
                for registered in {*engine.catalog.streams, *engine.catalog.relations} - {"s"}:
                    engine.drop(registered)
                if not engine.catalog.streams:
                    engine.stream("s", stream(engine.spark))
    assert faults == []
    assert len(messages) > 1_000
    texts = ("text ", "sql ")
    assert [case for case, text in messages.items() if len(text) > LONG and not case[1].startswith(texts)] == []


START: list[tuple[type[SashError], str, dict[str, Any]]] = [
    (OptionError, "sink must be a text, not 7", {"sink": 7}),
    (OptionError, "there is no output mode 'all'", {"mode": "all"}),
    (OptionError, "there is no output mode 3", {"mode": 3}),
    *((OptionError, "trigger must be", {"trigger": v}) for v in ("banana", 5, NAN, "5 bananas", "1e9 seconds", b"x")),
    (OptionError, "trigger must be shorter than 10,000 years", {"trigger": f"{'9' * 30} days"}),
    (OptionError, "processingTime must be a text, not 5", {"processingTime": 5}),
    (OptionError, "checkpoint must be a text, not 5", {"checkpoint": 5}),
    (OptionError, "checkpoint must be a text, not ''", {"checkpoint": ""}),
    (CatalogError, "key must be the name of a column, or a list of names, not 5", {"key": 5, "mode": "upsert"}),
    (CatalogError, "key column 'z' is not in the answer", {"key": "z", "mode": "upsert"}),
    (CatalogError, "key names no columns", {"key": [], "mode": "upsert"}),
    (OptionError, "the name of a query must be a text, not 5", {"name": 5}),
    (OptionError, "observe must be True or False, not 'yes'", {"observe": "yes"}),
]


@pytest.mark.parametrize(("error", "message", "given"), START, ids=range(len(START)))
def test_wrong_arguments_of_start(
    engine: sash.Engine, error: type[SashError], message: str, given: dict[str, Any]
) -> None:
    with pytest.raises(error, match=message):
        engine.sql(SQL).start(**{"sink": "noop", **given})
    assert not engine.running


BAD: list[tuple[str, type[SashError], str, dict[str, Any]]] = [
    ("Engine", OptionError, "spark must be a SparkSession", {"spark": "local"}),
    ("Engine", OptionError, "shards must be at least 1, not -1", {"shards": -1}),
    ("Engine", OptionError, "shards must be a whole number", {"shards": "two"}),
    ("Engine", StrategyError, "partitions must be at least 1, not 0", {"partitions": 0}),
    ("stream", OptionError, 'slack must be a length of time such as "500 milliseconds"', {"slack": "-1 second"}),
    ("stream", OptionError, "slack must be a text, not 5", {"slack": 5}),
    ("stream", CatalogError, "r must be a DataFrame", {"df": [1]}),
    ("stream", CatalogError, "time must be a text, not 3", {"time": 3}),
    ("stream", StatisticsError, "rate must be a number of at least 0, not nan", {"rate": NAN}),
    ("stream", StatisticsError, "distinct of k must be a number of at least 1", {"distinct": {"k": "x"}}),
    ("stream", StatisticsError, "statistics must be those of", {"statistics": {}}),
    ("relation", OptionError, "retroactive must be True or False, not 'no'", {"retroactive": "no"}),
    ("relation", OptionError, "changes must be True or False, not 1", {"changes": 1}),
    ("relation", OptionError, "refresh must be a text, not 5", {"refresh": 5}),
    ("sql", SqlSyntaxError, "a query must be a text, not 5", {"text": 5}),
    ("sql", StrategyError, "there is no strategy ''", {"strategy": ""}),
    ("sql", OptionError, "tau must be a text, not 5", {"tau": 5}),
    ("keep", CatalogError, "keep needs the name of a stream, or a query", {"what": 5}),
    ("keep", OptionError, "trigger must be", {"trigger": "banana"}),
    ("keep", CatalogError, "'a b' cannot be written in SQL", {"name": "a b"}),
    ("snapshot", OptionError, "timeout must be a number of at least 0, not nan", {"timeout": NAN}),
    ("snapshot", OptionError, "priority must be a whole number", {"priority": "high"}),
    ("periodic", OptionError, "callback must be a function, not 5", {"callback": 5}),
    ("submit", OptionError, "there is no query to answer", {"sql": []}),
]


@pytest.mark.parametrize(("name", "error", "message", "changed"), BAD, ids=range(len(BAD)))
def test_every_wrong_argument_is_named(
    engine: sash.Engine, name: str, error: type[SashError], message: str, changed: dict[str, Any]
) -> None:
    call, good = calls(engine)[name]
    with pytest.raises(error, match=message):
        call(**{**good, **changed})


@pytest.mark.parametrize(
    ("given", "message"),
    [({"port": -1}, "port"), ({"port": 70_000}, "port"), ({"port": "x"}, "port"), ({"host": 7}, "host")],
)
def test_metrics_are_served_on_a_port(engine: sash.Engine, given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        engine.metrics(**given)
    with pytest.raises(OptionError, match="callback must be a function"):
        engine.on_progress("x")  # type: ignore[arg-type]


def test_a_window_is_kept_where_files_can_be_written(engine: sash.Engine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be kept in .*: Not a directory; pass another path"):
        engine.keep("s", "1 minute", "1 second", path=str(tmp_path / "file" / "store"))


def test_a_checkpoint_may_be_a_path(spark: SparkSession, tmp_path: Path) -> None:
    assert sash.Engine(spark, checkpoint=tmp_path).checkpoint == str(tmp_path)
