"""Jobs and shells in this process, on the session that all tests share."""

from __future__ import annotations

import io
import json
import signal
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

import sash.cli.job
import sash.cli.rescale
import sash.cli.script_change
import sash.cli.session
from sash.cli.main import app
from sash.cli.shell import Shell
from sash.engine import Engine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SALES = "CREATE STREAM sales (ts BIGINT, item INT, price BIGINT) USING csv OPTIONS (path '{0}/sales', header true);\n"
QUERY = "SELECT item, COUNT(*) AS n FROM sales [RANGE 2 SECONDS] GROUP BY item"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "sales").mkdir()
    (tmp_path / "sales" / "a.csv").write_text("ts,item,price\n1000000,1,5\n2500000,1,6\n4000000,2,7\n")
    return tmp_path


@pytest.fixture
def runner(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    @contextmanager
    def shared(
        master: str | None = None,
        conf: dict[str, str] | None = None,
        checkpoint: str | None = None,
        shards: int | None = None,
    ) -> Iterator[Engine]:
        engine = Engine(spark, checkpoint, shards)
        yield engine
        engine.close()

    for module in (sash.cli.job, sash.cli.session, sash.cli.rescale, sash.cli.script_change):
        monkeypatch.setattr(module, "quiet_engine", shared)
    return CliRunner()


def job(home: Path, query: str = QUERY) -> str:
    file = home / "job.sql"
    into = f"INTO changelog (path '{home}/log') TRIGGER 'available_now'"
    file.write_text(f"{SALES.format(home)}CREATE QUERY totals AS {query}\n{into};\nSHOW QUERIES;\n")
    return str(file)


def logged(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def test_a_job_goes_on_in_its_checkpoint_and_changes_if_that_is_wanted(runner: CliRunner, home: Path) -> None:
    run = ["run", "--json", "--shards", "1", "--checkpoint", str(home / "state")]
    done = runner.invoke(app, [*run, job(home)])
    assert done.exit_code == 0, done.output
    found = [(entry["event"], entry.get("query") or entry.get("job")) for entry in logged(done)][-5:]
    assert found == [
        ("row", None),
        ("started", "totals"),
        ("batch", "totals"),
        ("batch", "job"),
        ("ended", "totals"),
    ]
    assert logged(done)[-5]["row"]["query"] == "totals"
    assert (home / "state" / "job" / "CURRENT").read_text() == "g1"

    again = runner.invoke(app, [*run, job(home)])
    assert again.exit_code == 0, again.output
    assert not [entry for entry in logged(again) if entry["event"] == "batch"], "nothing is new"

    changed = job(home, QUERY.replace("2 SECONDS", "1 SECOND"))
    refused = runner.invoke(app, [*run, changed])
    assert refused.exit_code == 1
    change, problem = logged(refused)[-2:]
    assert (change["event"], change["job"], change["changed"]) == ("change", "job", True)
    assert [(one["name"], one["verdict"]) for one in change["queries"]] == [("totals", "derived")]
    assert problem["event"].startswith("refused: run with --on-change apply")

    compared = runner.invoke(app, ["diff", changed, "--checkpoint", str(home / "state"), "--shards", "1"])
    assert compared.exit_code == 0, compared.output
    assert "totals  derived  computed from rows that are kept" in compared.stdout

    applied = runner.invoke(app, [*run, "--on-change", "apply", changed])
    assert applied.exit_code == 0, applied.output
    assert (home / "state" / "job" / "CURRENT").read_text() == "g2"
    rescaled = runner.invoke(app, ["rescale", str(home / "state"), "--shards", "3"])
    assert rescaled.exit_code == 0, rescaled.output
    assert "shards: 1 -> 3" in rescaled.stdout
    (home / "sales" / "b.csv").write_text("ts,item,price\n4500000,2,7\n6000000,1,1\n")
    done = runner.invoke(app, ["run", "--json", "--checkpoint", str(home / "state"), changed])
    assert done.exit_code == 0, done.output
    answer = Counter[tuple[int, int]]()
    for file in sorted((home / "log").rglob("*.parquet")):
        for row in pq.read_table(file).to_pylist():
            answer[row["item"], row["n"]] += 1 if row["_op"] == "+" else -1
    assert +answer == {}, "at 6, the rows of item 2 have left the window, and that of item 1 is yet to come"


def test_a_query_that_fails_ends_the_job_with_the_reason(runner: CliRunner, home: Path) -> None:
    (home / "sales" / "b.csv").write_text("ts,item,price\n,1,1\n")
    failed = runner.invoke(app, ["run", "--json", "--checkpoint", str(home / "state"), job(home)])
    problem = logged(failed)[-1]
    assert (problem["event"], problem["level"], problem["query"]) == ("failed", "error", "totals")
    assert "has a row whose time column ts is NULL" in problem["reason"]
    assert f"{home}/sales/b.csv" in problem["reason"]
    assert "Traceback" in Path(problem["log"]).read_text()
    assert failed.exit_code == 3


def test_statements_that_are_piped_into_the_shell(runner: CliRunner, home: Path) -> None:
    text = f"{SALES.format(home)}SET trigger = 'available_now';\n{QUERY};\nSHOW STREAMS;\nSELECT nothing\nFROM sales [NOW];"
    done = runner.invoke(app, ["sql"], input=text)
    assert done.exit_code == 1
    assert "Created stream sales" in done.stdout
    assert "+ 3000000  item=1, n=1" in done.stdout
    assert "ts BIGINT, item INT, price BIGINT" in done.stdout
    assert "  5 | SELECT nothing\n    |        ^" in done.stderr


def test_ctrl_c_ends_a_select_that_has_shown_rows_and_the_shell_goes_on(spark: SparkSession, home: Path) -> None:
    class Terminal(io.StringIO):
        """A terminal whose user presses Ctrl-C when the first row is shown."""

        def write(self, text: str) -> int:
            if "item=1, n=1" in text:
                signal.raise_signal(signal.SIGINT)
            return super().write(text)

    seen = Terminal()
    engine = Engine(spark)
    started: Future[Engine] = Future()
    started.set_result(engine)
    shell = Shell(started, Console(file=seen, width=100), "plain", seconds=120)
    assert shell.run(SALES.format(home) + QUERY), "the folder may get more files at any time: nothing else ends it"
    assert "│    1 │ 1 │" in seen.getvalue(), "the answer as it was then"
    assert not spark.streams.active
    assert shell.run("SHOW STREAMS")
    assert seen.getvalue().count("ts BIGINT, item INT, price BIGINT") == 1
    engine.close()


def test_a_command_answers_as_json(runner: CliRunner, home: Path) -> None:
    text = (
        f"{SALES.format(home)}KEEP sales WINDOW '2 seconds' EVERY '1 second';"
        "SNAPSHOT SELECT item, SUM(price) AS total FROM sales [RANGE 2 SECONDS] GROUP BY item; DESCRIBE nothing;"
    )
    done = runner.invoke(app, ["sql", "--json", "--command", text])
    replies = logged(done)
    assert replies[0] == {"message": "Created stream sales"}
    assert replies[2:-1] == [{"item": 1, "total": 6}], "of the last complete two seconds, which are over at 4"
    assert "there is no stream, relation or query nothing" in replies[-1]["error"]
    assert done.exit_code == 1
