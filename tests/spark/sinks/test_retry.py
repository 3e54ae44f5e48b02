from __future__ import annotations

import errno
import itertools
import logging
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from sash.errors import CatalogError, OptionError, SinkError
from sash.plan.types import BIGINT, STRING, Field
from sash.spark.sinks import SINKS, OutputSpec
from sash.spark.sinks.postgres import PostgresTable
from sash.spark.sinks.retry import Retries, RetryPolicy, is_temporary, retry_policy
from tests.postgres import Server, restartable_server
from tests.spark.files import SQL, batches_of, file_engine, made_up_rows, write_batch
from tests.spark.sinks.test_postgres import Batch

AT_ONCE = RetryPolicy(limit=5, first=0, longest=0)


def retries(policy: RetryPolicy = AT_ONCE) -> Retries:
    """Retries by a clock that advances by a second per look, and without pauses."""
    ticks = itertools.count()
    return Retries("postgres", policy, clock=lambda: float(next(ticks)))


def failing(times: int, problem: Exception) -> tuple[Callable[[], int], list[int]]:
    calls: list[int] = []

    def attempt() -> int:
        calls.append(1)
        if len(calls) <= times:
            raise problem
        return 7

    return attempt, calls


def test_a_temporary_error_is_retried(caplog: pytest.LogCaptureFixture) -> None:
    attempt, calls = failing(3, SinkError("no connection", transient=True))
    assert retries().run(attempt, "batch 4") == 7
    assert len(calls) == 4
    assert "sink postgres: batch 4: no connection; try 1 failed, the next is in 0 s" in caplog.text


def test_a_permanent_error_is_raised_at_once() -> None:
    attempt, calls = failing(3, SinkError("wrong password"))
    with pytest.raises(SinkError, match="wrong password"):
        retries().run(attempt, "batch 4")
    assert len(calls) == 1


def test_retries_end_at_the_limit() -> None:
    attempt, calls = failing(99, ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"))
    with pytest.raises(SinkError, match=r"Connection refused \(gave up on batch 4 after \d tries in 6 s\)"):
        retries().run(attempt, "batch 4")
    assert 2 < len(calls) < 10
    attempt, calls = failing(1, TimeoutError("slow"))
    with pytest.raises(TimeoutError, match="slow"):
        retries(retry_policy("0 seconds")).run(attempt, "batch 4")
    assert len(calls) == 1


def test_a_query_that_is_stopped_does_not_wait_for_the_next_try() -> None:
    long = retries(RetryPolicy(limit=10_000, first=5_000, longest=5_000))
    attempt, calls = failing(1, SinkError("no connection", transient=True))

    class StopOnWarning(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            long.stop()

    handler = StopOnWarning()
    logging.getLogger("sash").addHandler(handler)
    try:
        with pytest.raises(SinkError, match="batch 4 was not written before the query was stopped"):
            long.run(attempt, "batch 4")
    finally:
        logging.getLogger("sash").removeHandler(handler)
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("problem", "temporary"),
    [
        (SinkError("x", transient=True), True),
        (SinkError("x"), False),
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (OSError(errno.EHOSTUNREACH, "x"), True),
        (OSError(errno.ENOSPC, "x"), False),
        (FileNotFoundError(errno.ENOENT, "x"), False),
        (CatalogError("x"), False),
        (ValueError("x"), False),
    ],
)
def test_which_errors_are_temporary(problem: Exception, temporary: bool) -> None:
    assert is_temporary(problem) == temporary


def test_every_sink_has_the_option_retry() -> None:
    options = {"url": "u", "table": "t", "path": "p", "kafka.bootstrap.servers": "k", "topic": "t"}
    for sink in SINKS.values():
        needed = {name: options[name] for name in sink.needed}
        assert sink(needed).policy == RetryPolicy()
        assert sink({**needed, "retry": "2 minutes"}).policy.limit == 120
        with pytest.raises(OptionError, match="retry must be a length of time"):
            sink({**needed, "retry": "long"})


@pytest.fixture(scope="module")
def database() -> Iterator[Server]:
    with restartable_server() as running:
        yield running


@pytest.fixture
def restart_at_the_first_warning(database: Server) -> Iterator[None]:
    class Restart(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logging.getLogger("sash").removeHandler(self)
            database.start()

    handler = Restart()
    logging.getLogger("sash").addHandler(handler)
    yield
    logging.getLogger("sash").removeHandler(handler)


def table(database: Server, name: str, **url: str) -> Any:
    fields = (Field("k", STRING), Field("n", BIGINT))
    where = database.url
    for old, new in url.items():
        where = where.replace(old, new)
    sink = PostgresTable({"url": where, "table": name})
    write = Retries("postgres", RetryPolicy(limit=100, first=0.01)).writing(
        sink.open(OutputSpec(fields, BIGINT, "net", None, "one"))
    )
    return lambda rows, number: write(Batch(rows, fields), number)  # type: ignore[arg-type]


def rows_of(database: Server, name: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(database.url) as connection:
        return connection.execute(f"SELECT k, n FROM {name} ORDER BY n").fetchall()  # type: ignore[call-overload, no-any-return]


@pytest.mark.usefixtures("restart_at_the_first_warning")
def test_a_server_that_is_restarted_gets_every_batch_once(database: Server) -> None:
    write = table(database, "restarted")
    write([("+", 1, "a", 1)], 0)
    database.stop(signal.SIGINT)
    write([("+", 2, "a", 2)], 1)
    write([("+", 2, "a", 2)], 1)
    assert rows_of(database, "restarted") == [("a", 1), ("a", 2)]


def test_a_batch_whose_commit_was_not_confirmed_counts_once(database: Server) -> None:
    write = table(database, "unconfirmed")
    replies = iter([SinkError("server closed the connection", transient=True)])

    def attempt() -> None:
        write([("+", 1, "a", 1)], 0)
        for problem in replies:
            raise problem

    retries().run(attempt, "batch 0")
    assert rows_of(database, "unconfirmed") == [("a", 1)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sash@": "stranger@"}, r'role "stranger" does not exist .*: create the role, or correct the user'),
        (
            {"/postgres?": "/elsewhere?"},
            r'database "elsewhere" does not exist .*: create the database, or correct the url',
        ),
    ],
)
def test_a_wrong_user_or_database_is_no_temporary_error(database: Server, change: dict[str, str], message: str) -> None:
    with pytest.raises(SinkError, match=message) as caught:
        table(database, "wrong", **change)
    assert not caught.value.transient


def test_a_table_that_is_gone_is_no_temporary_error(database: Server) -> None:
    write = table(database, "gone")
    with psycopg.connect(database.url) as connection:
        connection.execute("DROP TABLE gone")
    with pytest.raises(SinkError, match=r"relation .* does not exist") as caught:
        write([("+", 1, "a", 1)], 0)
    assert not caught.value.transient


@pytest.mark.spark
@pytest.mark.usefixtures("restart_at_the_first_warning")
def test_a_query_outlives_a_restart_of_its_database(spark: SparkSession, database: Server, tmp_path: Path) -> None:
    first, second = batches_of(made_up_rows(2))
    write_batch(tmp_path / "in", 0, first)
    running = file_engine(spark, tmp_path / "in").sql(SQL).start("postgres", url=database.url, table="totals")
    try:
        running.process_all()
        database.stop(signal.SIGINT)
        write_batch(tmp_path / "in", 1, second)
        running.process_all()
        assert running.progress()["batch"] == 1
    finally:
        running.stop()
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT batch FROM sash_batches WHERE target = 'totals'").fetchone() == (1,)
