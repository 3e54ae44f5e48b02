"""The page about Kafka is followed as its reader would: from `pip install` on, with the installed command and a real broker."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow.parquet as pq
import pytest

from tests.cli.command import QUICK, ROOT
from tests.kafka import Broker, broker
from tests.test_documentation import Block, blocks

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PAGE = ROOT / "docs" / "kafka.md"
CHANGE = re.compile(r"([+-]) .*  page=(\S+), n=(\d+)$")

Answer = dict[str, int]


@pytest.fixture(scope="module")
def kafka() -> Iterator[Broker]:
    with broker() as running:
        yield running


def commands() -> tuple[list[list[str]], list[Block]]:
    """The commands and the SQL of the page's first section."""
    section = [
        block for block in blocks(PAGE) if block.line < PAGE.read_text().partition("\n## What to know")[0].count("\n")
    ]
    lines = [line for block in section if block.language == "bash" for line in block.text.splitlines()]
    return [shlex.split(line) for line in lines], [block for block in section if block.language == "sql"]


def install(arguments: list[str], folder: Path) -> dict[str, str]:
    """Run `pip` in an environment of its own, which takes Sash's dependencies from this one; returns the variables of programs."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    builder = [*pip, "download", "--no-deps", "--dest", str(folder / "builder"), "hatchling>=1.26"]
    if subprocess.run(builder, capture_output=True, check=False).returncode != 0:
        pytest.skip("pip cannot fetch hatchling, which builds the wheel")
    venv.create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    subprocess.run([*pip, "--python", str(python), *arguments, "--no-deps"], cwd=ROOT, check=True)
    (packages,) = (folder / "venv" / "lib").glob("*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (folder / "venv" / "kafka").symlink_to(Path(sys.prefix, "kafka"))
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    variables |= {**QUICK, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    code = "import sash; print(sash.__file__)"
    found = subprocess.run([python, "-c", code], env=variables, cwd=folder, capture_output=True, text=True, check=True)
    assert found.stdout.startswith(str(packages)), "not the sources of this tree"
    return variables


@contextmanager
def running(command: list[str], **given: Any) -> Iterator[subprocess.Popen[str]]:
    """A command that is ended as by Ctrl-C."""
    process = subprocess.Popen(command, text=True, **given)
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    finally:
        process.kill()


def shown(lines: IO[str], answer: Answer, wanted: Answer) -> None:
    """Read changes from the screen, and apply them to the answer, until it is the wanted one."""
    for line in lines:
        if change := CHANGE.match(line.rstrip("\n")):
            op, page, n = change.groups()
            if op == "+":
                answer[page] = int(n)
            elif answer.get(page) == int(n):
                del answer[page]
            if answer == wanted:
                return
    raise AssertionError(f"the command ended, and its answer was {answer}")


def kept(kafka: Broker, topic: str, process: subprocess.Popen[str], wanted: Answer) -> None:
    """Read the topic with the answer until that is the wanted one."""
    found: Answer = {}
    while process.poll() is None:
        latest = {record.key(): record.value() for record in kafka.records(topic)}
        rows = [json.loads(value) for value in latest.values() if value is not None]
        found = {row["page"]: row["n"] for row in rows}
        if found == wanted:
            return
    raise AssertionError(f"the command ended, and its answer was {found}")


def test_an_answer_changes_five_commands_after_pip_install(kafka: Broker, tmp_path: Path) -> None:
    (pip, shell, job), (statements, script) = commands()
    variables = install(pip[1:], tmp_path)
    kafka.create_topic("clicks", 1)
    kafka.create_topic("popular", 1, cleanup_policy="compact")

    def send(*rows: tuple[str, str]) -> None:
        kafka.produce("clicks", [{"value": json.dumps({"ts": f"2026-01-31T{ts}Z", "page": page})} for ts, page in rows])

    kafka.produce("clicks", [{"value": text} for text in re.findall(r"^\{.*\}$", PAGE.read_text(), re.MULTILINE)])
    typed, file = (block.text.replace("localhost:9092", kafka.servers) for block in (statements, script))
    given = {"cwd": tmp_path, "env": variables}
    with running(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **given) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(typed)
        process.stdin.close()
        answer: Answer = {}
        shown(process.stdout, answer, {"/start": 1})
        send(("12:05:00", "/later"), ("12:05:01", "/end"))
        shown(process.stdout, answer, {"/later": 1})
    kafka.produce("clicks", [{"value": "not JSON"}])
    (tmp_path / "job.sql").write_text(file)
    with (tmp_path / "log").open("w") as log, running(job, stdout=log, stderr=log, **given) as process:
        kept(kafka, "popular", process, {"/later": 1})
        send(("12:09:00", "/last"), ("12:09:01", "/end"))
        kept(kafka, "popular", process, {"/last": 1})
    assert pq.read_table(tmp_path / "bad_clicks", columns=["row"]).to_pylist() == [{"row": "not JSON"}]
