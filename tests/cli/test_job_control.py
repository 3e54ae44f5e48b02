"""A job and the commands for it, over its control socket; without Spark."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sash.cli.job_control import JobControl, ScriptChange
from sash.cli.job_log import JobLog
from sash.cli.logs import following, last_lines
from sash.cli.main import app
from sash.cli.presence import job_entry, present
from sash.cli.script_change import described_change
from sash.control import request
from sash.errors import CheckpointError, ControlError
from sash.script.live import LiveBackend
from sash.script.reader import read_script
from sash.script.session import Session
from sash.spark.checkpoint_lock import refuse_locked
from tests.script.fake_jobs import SALES, FakeBackend, FakeEngine, fake_session, query


class RunningProcess:
    """A job in a thread, which attends to commands until the test ends."""

    def __init__(self, checkpoint: Path) -> None:
        self.session, self.engine = fake_session(SALES + query("a"))
        self.session.launch()
        self.stop = threading.Event()
        self.logged: list[str] = []
        self.log = JobLog(as_json=False)
        self._present = ExitStack()
        change, entry = (
            ScriptChange(self.diff, self.apply),
            self._present.enter_context(present("job.sql", str(checkpoint), self.log)),
        )
        self.control = JobControl(lambda: self.session, change, self.stop, entry, self.logged.append)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._attend)
        self._thread.start()
        self._server = self.control.serve()

    def _attend(self) -> None:
        while not self._over.wait(0.005):
            self.control.attend()
            if self.stop.is_set():
                self._present.close()

    def diff(self, text: str) -> dict[str, Any]:
        running: Any = self.session.backend.jobs()
        jobs = self._read(text, FakeEngine()).definitions()
        names = {name: list(job.queries) for name, job in running.items()}
        return described_change(jobs, names, lambda name, job: running[name].diff(job))

    def apply(self, text: str) -> dict[str, Any]:
        found = self.diff(text)
        backend = self.session.backend
        assert isinstance(backend, FakeBackend)
        new, _ = fake_session(text, self.engine)
        assert isinstance(new.backend, FakeBackend)
        new.backend.session_jobs.adopt(backend.session_jobs)
        new.launch()
        self.session = new
        return found

    def _read(self, text: str, engine: FakeEngine) -> Any:
        session, _ = fake_session(text, engine)
        assert isinstance(session.backend, FakeBackend)
        return session.backend.session_jobs

    def close(self) -> None:
        self._server.close()
        self._present.close()
        self._over.set()
        self._thread.join()


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="sash-") as made:  # the path of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", made)
        yield Path(made)


@pytest.fixture
def process(folder: Path) -> Iterator[RunningProcess]:
    running = RunningProcess(folder / "state")
    yield running
    running.close()


@pytest.fixture
def ask(process: RunningProcess) -> Callable[..., Any]:
    return lambda command, **arguments: request(process.control.entry.socket, command, 30, **arguments)


def named(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_status(ask: Callable[..., Any], folder: Path) -> None:
    found = ask("status")
    assert (found["name"], found["pid"], found["checkpoint"]) == ("job.sql", os.getpid(), str(folder / "state"))
    assert [(row["job"], row["state"], row["queries"]) for row in named(found["jobs"])] == [("job", "running", 1)]
    assert [(row["query"], row["state"]) for row in named(found["queries"])] == [("a", "running")]


def test_queries_are_created_altered_resumed_and_dropped(ask: Callable[..., Any], process: RunningProcess) -> None:
    assert ask("execute", text=query("b")) == [{"text": "Created query b, into noop"}]
    assert ask("execute", text="ALTER QUERY b SET MODE net; RESUME QUERY b; DROP QUERY a") == [
        {"text": "Altered query b"},
        {"text": "Resumed query b"},
        {"text": "Dropped query a"},
    ]
    assert process.engine.log == ["start job: a", "apply job: a, b", "apply job: a, b", "apply job: b"]
    assert process.logged == ["Created query b, into noop", "Altered query b", "Resumed query b", "Dropped query a"]
    (shown,) = ask("execute", text="SHOW QUERIES")
    assert [row["query"] for row in named(shown)] == ["b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CREATE QUERY c AS SELECT nothing FROM sales [NOW] INTO noop", "no column nothing; .*line 1, column 26"),
        ("CREATE QUER", "expected STREAM or RELATION or QUERY"),
        ("SELECT item FROM sales [NOW]", "does not execute SELECT for other processes"),
        ("SET spark.x = 1", "does not execute SET"),
        ("DROP QUERY c", "there is no query c"),
        ("", "text must be a text"),
        (None, "text must be a text"),
        (7, "text must be a text"),
    ],
)
def test_what_cannot_be_executed_is_refused(ask: Callable[..., Any], text: object, message: str) -> None:
    with pytest.raises(ControlError, match=message):
        ask("execute", text=text)
    assert ask("status")["queries"]["rows"], "the job goes on"


def test_unknown_commands_are_refused(ask: Callable[..., Any]) -> None:
    with pytest.raises(ControlError, match="there is no command statu; did you mean status"):
        ask("statu")


def test_a_job_that_stops_takes_no_more_commands(ask: Callable[..., Any], process: RunningProcess) -> None:
    assert "stops after its current batch" in ask("stop")["message"]
    assert process.stop.is_set()
    with pytest.raises(ControlError, match="the job is stopping"):
        ask("execute", text="SHOW QUERIES")


def test_commands_that_wait_when_the_job_ends_are_refused(folder: Path) -> None:
    session, _ = fake_session(SALES)
    control = JobControl(
        lambda: session, ScriptChange(lambda _: {}, lambda _: {}), threading.Event(), job_entry("j", str(folder / "s"))
    )
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            control.handle("execute", {"text": "SHOW QUERIES"})
        except ControlError as problem:
            raised.append(problem)

    client = threading.Thread(target=ask)
    client.start()
    while control.waiting == 0:
        pass
    control.close()
    client.join(30)
    assert [str(problem) for problem in raised] == ["the job is stopping"]


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output if result.exception is None else f"{result.output}{result.exception}"


def test_ps_lists_the_jobs_of_this_machine(process: RunningProcess, folder: Path) -> None:
    code, output = invoke("ps", "--json")
    assert code == 0
    entry = json.loads(output)
    assert (entry["name"], entry["checkpoint"]) == ("job.sql", str(folder / "state"))
    assert len(entry["status"]["queries"]["rows"]) == 1
    assert "job.sql" in invoke("ps")[1]
    process.close()
    assert invoke("ps") == (0, "no jobs are running\n")


def test_jobs_that_failed_or_crashed_are_listed_too(process: RunningProcess, folder: Path) -> None:
    crashed = replace(process.control.entry, name="other.sql", lock=str(folder / "lock"))
    Path(crashed.lock).touch()
    crashed.list()
    process.log.error = "query a: a division by zero"
    process.close()
    listed = {
        found["name"]: (found["state"], found["error"])
        for found in map(json.loads, invoke("ps", "--json")[1].split("\n")[:-1])
    }
    assert listed == {"job.sql": ("failed", "query a: a division by zero"), "other.sql": ("crashed", None)}
    assert "a division by zero" in invoke("status", "job")[1]
    code, output = invoke("pause", "other.sql")
    assert (code, "other.sql does not run: it has crashed; its log is in" in output) == (1, True)


def test_the_status_of_a_job(process: RunningProcess, folder: Path) -> None:
    code, output = invoke("status", "job")
    assert code == 0
    assert all(part in output for part in ("job.sql", "running", str(folder / "state"), "query"))
    assert json.loads(invoke("status", "job", "--json")[1])["status"]["name"] == "job.sql"


def test_a_job_is_paused_and_resumed(process: RunningProcess) -> None:
    assert invoke("pause", "job") == (0, "the job is paused: its queries have finished their batches\n")
    assert json.loads(invoke("status", "job", "--json")[1])["state"] == "paused"
    assert invoke("sql", "--attach", process.control.entry.checkpoint, "-c", query("b"))[0] == 0
    assert process.engine.log == ["start job: a", "pause job"], "the new query waits"
    assert invoke("resume", "job") == (0, "the job runs again\n")
    assert process.engine.log == ["start job: a", "pause job", "resume job", "apply job: a, b"]
    assert json.loads(invoke("status", "job", "--json")[1])["state"] == "running"
    assert process.logged == ["paused", "Created query b, into noop", "resumed"]


def test_a_shell_shows_and_steers_the_jobs_of_other_processes(process: RunningProcess, folder: Path) -> None:
    replace(process.control.entry, pid=os.getppid()).list()
    without_spark: Any = FakeEngine()
    live = LiveBackend(without_spark)
    shell = Session(live)

    def execute(text: str) -> Any:
        (statement,) = read_script(text)
        return shell.execute(statement)

    def shown() -> list[Any]:
        return [(row[0], row[1].partition(",")[0], *row[2:4]) for row in execute("SHOW JOBS").rows]

    assert shown() == [("job.sql", "running", 1, 0)]
    assert execute("PAUSE JOB 'job.sql'").text == "the job is paused: its queries have finished their batches"
    assert shown() == [("job.sql", "paused", 1, 0)]
    assert execute("RESUME JOB job").text == "the job runs again"
    assert process.engine.log == ["start job: a", "pause job", "resume job"]
    assert execute("STOP JOB 'job.sql'").text == "stopped job.sql"
    assert process.stop.is_set()
    assert shown() == []
    with pytest.raises(ControlError, match="there is no job job of yours"):
        execute("STOP JOB job")
    own, engine = fake_session(SALES + query("own"))
    own.launch()
    assert isinstance(own.backend, FakeBackend)
    live.session_jobs = own.backend.session_jobs
    for action in ("PAUSE", "RESUME", "STOP"):  # a job of the shell itself
        execute(f"{action} JOB job")
    assert engine.log == ["start job: own", "pause job", "resume job", "stop job"]


def test_a_job_is_stopped_and_then_gone(process: RunningProcess) -> None:
    assert invoke("stop", "job") == (0, "stopped job.sql\n")
    assert process.stop.is_set()
    assert invoke("ps") == (0, "no jobs are running\n")
    code, output = invoke("stop", "job")
    assert (code, "there is no job job of yours on this machine" in output) == (1, True)


def test_the_log_of_a_job_stays_when_it_has_ended(process: RunningProcess, folder: Path) -> None:
    for number in range(5):
        process.log.write(f"event {number}")
    assert [line.partition(" ")[2] for line in invoke("logs", "job", "-n", "2")[1].splitlines()] == [
        "event 3",
        "event 4",
    ]
    process.close()
    code, output = invoke("logs", str(folder / "state"), "--follow")
    assert (code, [line.partition(" ")[2] for line in output.splitlines()][-1]) == (0, "event 4")
    assert (folder / "state" / ".run").stat().st_mode & 0o777 == 0o700


def test_a_log_is_followed_until_the_job_ends(tmp_path: Path) -> None:
    log = tmp_path / "job.log"
    log.write_text("before\n")

    def steps() -> Iterator[bool]:
        log.open("a").write("one\ntw")
        yield True
        log.open("a").write("o\n")
        log.rename(tmp_path / "job.log.1")
        log.write_text("three\n")
        yield True
        log.open("a").write("four\n")
        yield False

    step = steps()
    assert list(following(log, lambda: next(step))) == ["one\n", "two\n", "three\n", "four\n"]
    assert last_lines(log, 3) == ["two\n", "three\n", "four\n"]


def test_a_second_process_on_a_checkpoint_is_refused(process: RunningProcess, folder: Path) -> None:
    with (
        pytest.raises(CheckpointError, match=f"checkpoint {folder}/state is in use: query job.sql of this process"),
        present("other.sql", str(folder / "state"), JobLog(as_json=False)),
    ):
        pass
    with pytest.raises(CheckpointError, match="is in use"):
        refuse_locked(str(folder / "state"))


def test_a_script_is_compared_with_a_running_job_and_applied(process: RunningProcess, folder: Path) -> None:
    file = folder / "job.sql"
    file.write_text(SALES + query("b") + query("c", "TRIGGER '1 second'"))
    arguments = (str(file), "--checkpoint", str(folder / "state"))
    assert invoke("diff", *arguments) == (
        0,
        "job job: added ['b'], dropped ['a']\njob job-1000ms: new, with c\n",
    )
    assert process.engine.log == ["start job: a"], "nothing has changed"
    code, output = invoke("apply", *arguments, "--json")
    assert (code, json.loads(output)["changed"]) == (0, True)
    assert process.engine.log == ["start job: a", "apply job: b", "start job-1000ms: c"]
    file.write_text(SALES + query("b") + query("c", "TRIGGER '1 second'"))
    assert invoke("diff", *arguments) == (0, "job job: no change\njob job-1000ms: no change\n")


def test_a_script_for_a_job_that_does_not_run(folder: Path) -> None:
    file = folder / "job.sql"
    file.write_text(SALES + query("a"))
    code, output = invoke("apply", str(file))
    assert code == 1
    assert "no job is running there" in output


def test_an_attached_shell_lets_the_job_execute(process: RunningProcess, folder: Path) -> None:
    attach = ("sql", "--attach", str(folder / "state"), "--command")
    assert invoke(*attach, query("b")) == (0, "Created query b, into noop\n")
    assert process.engine.log[-1] == "apply job: a, b"
    code, output = invoke("sql", "--json", *attach[1:], "SHOW QUERIES; EXPLAIN ANALYZE b")
    shown = [json.loads(line) for line in output.splitlines()]
    assert (code, [row.get("query") for row in shown[:2]]) == (0, ["a", "b"])
    assert shown[2] == {"message": "plan of b"}
    assert invoke(*attach, "DROP QUERY nothing")[0] == 1


def test_replies_to_a_script_are_those_of_a_session(process: RunningProcess) -> None:
    assert isinstance(process.session, Session)
    (statement,) = read_script("SHOW STREAMS")
    assert process.session.execute(statement)
