"""What `sash run` checks before it starts Spark."""

from __future__ import annotations

import fcntl
import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import sash.cli.job
from sash.cli.check import check
from sash.cli.main import app
from sash.cli.preflight import check_folder, check_port, check_surroundings
from sash.errors import CheckpointError, OptionError
from sash.plan.types import STRING, TIMESTAMP, Field
from sash.script.dry_run import DryRunBackend
from sash.spark.fingerprint import NAME
from sash.spark.header import FORMAT
from sash.spark.sinks.base import OutputSpec
from sash.spark.sinks.postgres import PostgresTable
from tests.postgres import server

SELECT = "SELECT k FROM s [RANGE 1 MINUTE]"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return tmp_path


def text(home: Path, into: str = "noop", folder: str = "in") -> str:
    stream = f"CREATE STREAM s (ts TIMESTAMP, k STRING) USING csv OPTIONS (path '{home}/{folder}');\n"
    return f"{stream}CREATE QUERY q AS {SELECT}\nINTO {into};"


def problems(home: Path, job: str, port: int | None = None, master: str | None = None) -> list[str]:
    backend = DryRunBackend()
    assert check(job, backend) == []
    found = check_surroundings(backend, str(home / "state"), port, {}, master)
    return [f"{problem.line}:{problem.column} {problem.message}" for problem in found]


def test_a_job_that_can_run(home: Path) -> None:
    assert problems(home, text(home)) == []
    assert not (home / "state").exists(), "nothing is made"


def test_a_port_that_is_taken_or_impossible() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OptionError, match=f"127.0.0.1:{port}: Address already in use; choose another port"):
            check_port(port)
    with pytest.raises(OptionError, match="choose another port"):
        check_port(99_999)
    check_port(None)
    check_port(0)


def test_run_refuses_a_taken_port_before_spark_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sash.cli.job, "quiet_engine")
    (home / "job.sql").write_text(text(home))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["run", str(home / "job.sql"), "--json", "--metrics-port", str(port)])
    assert done.exit_code == 1
    (line,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert "Address already in use" in line["message"]


def test_a_checkpoint_that_cannot_be_written(home: Path) -> None:
    (home / "state").write_text("")
    assert f"state cannot be written: {home}/state is a file" in problems(home, text(home))[0]
    with pytest.raises(CheckpointError, match="is a file"):
        check_folder(str(home / "state" / "below"))
    with pytest.raises(CheckpointError, match="cannot be written: /proc: "):
        check_folder("/proc/sash")
    check_folder("s3://bucket/state")


def test_the_checkpoint_of_another_program_or_query(home: Path) -> None:
    own = home / "state" / "q"
    (own / "offsets").mkdir(parents=True)
    assert "2:1 " in (found := problems(home, text(home))[0])
    assert "is the checkpoint of a query that Sash did not start" in found
    known = {"format": FORMAT, "sql": "SELECT 1", "join": "auto", "tau": None}
    known |= {"streams": ["s"], "relations": [], "heartbeats": []}
    (own / NAME).write_text(json.dumps(known))
    assert "it belongs to another query (then: SELECT 1, now: SELECT k" in problems(home, text(home))[0]
    (own / NAME).write_text(json.dumps(known | {"sql": SELECT}))
    assert problems(home, text(home)) == []


def test_folders_that_do_not_exist(home: Path) -> None:
    (found,) = problems(home, text(home, folder="nowhere"))
    assert found == f"1:61 stream s: there is no {home}/nowhere: create the folder first"
    assert problems(home, text(home, folder="*.csv")) == []
    assert problems(home, text(home, folder="nowhere"), master="spark://host:7077") == []


def test_a_server_that_does_not_answer(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    into = f"postgres (url 'host=127.0.0.1 port={port} dbname=x', table 't')"
    (found,) = problems(home, text(home, into))
    assert found.startswith("3:6 PostgreSQL, table t: Connection refused")


def test_a_table_that_does_not_fit_is_found_without_a_change() -> None:
    output = OutputSpec((Field("k", STRING),), TIMESTAMP, "net", None, "")
    with server() as url:
        sink = PostgresTable({"url": url, "table": "other"})
        sink.connect(output)
        with sink._table(output).transaction() as connection:
            assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)
            connection.execute("CREATE TABLE other (z int)")
        with pytest.raises(sash.CatalogError, match="table other has no column _hash"):
            sink.connect(output)
        with sink._table(output).transaction() as connection:
            connection.execute("DROP TABLE other")
        sink.open(replace(output, identity="mine"))
        with sink._table(output).transaction() as connection:
            connection.execute("INSERT INTO other VALUES (gen_random_uuid(), 'x')")
        sink.connect(replace(output, identity="mine"))
        with pytest.raises(sash.CatalogError, match="has the answer of another checkpoint"):
            sink.connect(output)
        PostgresTable({"url": url, "table": "other", "replace": True}).connect(output)
        with pytest.raises(sash.CatalogError, match="there is no table absent"):
            PostgresTable({"url": url, "table": "absent", "create": False}).connect(output)


def test_a_changelog_of_another_checkpoint(home: Path) -> None:
    (home / "log").mkdir()
    (home / "log" / "_sash.json").write_text("another")
    job = text(home, f"changelog (path '{home}/log')")
    (found,) = problems(home, job)
    assert found.startswith(f"3:6 {home}/log holds the changelog of another query or another checkpoint")
    (home / "state" / "q").mkdir(parents=True)
    known = {"format": FORMAT, "sql": SELECT, "join": "auto", "tau": None, "identity": "another"}
    (home / "state" / "q" / NAME).write_text(json.dumps(known | {"streams": ["s"], "relations": [], "heartbeats": []}))
    assert problems(home, job) == []


def test_sinks_know_the_job_of_a_query(home: Path) -> None:
    (home / "log").mkdir()
    (home / "log" / "_sash.json").write_text("one-q")
    job = text(home, f"changelog (path '{home}/log')")
    assert "holds the changelog of another query" in problems(home, job)[0]
    generation = home / "state" / "job" / "g2"
    generation.mkdir(parents=True)
    (home / "state" / "job" / "CURRENT").write_text("g2\n")
    (generation / "sash-job.json").write_text(json.dumps({"identity": "one", "queries": [{"name": "q"}]}))
    assert problems(home, job) == []


def test_a_job_that_runs_already(home: Path) -> None:
    (home / "state" / "job").mkdir(parents=True)
    with (home / "state" / "job" / "sash.lock").open("w") as lock:
        lock.write(json.dumps({"pid": 1, "host": "h", "since": "now", "query": "job", "command": "sash run"}))
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        (found,) = problems(home, text(home))
    assert "state/job is in use: query job of process 1 on h (sash run) is running on it since now" in found
    assert problems(home, text(home)) == []


def test_kafka_needs_its_package(home: Path) -> None:
    kafka = text(home, "kafka (kafka.bootstrap.servers 'h:1', topic 't')")
    (found,) = problems(home, kafka)
    assert "`sash run --with kafka job.sql`" in found
    assert 'config("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:' in found
    backend = DryRunBackend()
    assert check(kafka, backend) == []
    assert check_surroundings(backend, str(home / "state"), None, {"spark.jars.packages": "x"}, None) == []
