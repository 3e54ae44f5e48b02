from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pyspark
import pytest

import sash.cli.__main__ as command
from sash.testing import replay
from tests.cli.command import QUICK, ROOT
from tests.postgres import server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

QUERY = "SELECT item, COUNT(*) AS n, SUM(price) AS total FROM sales [RANGE 2 SECONDS] GROUP BY item"
ROWS = 50


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with server() as where:
        yield where


def sales(files: int) -> list[dict[str, Any]]:
    rnd = random.Random(7)
    items = [rnd.choice([1, 2, 3, None]) for _ in range(files * ROWS)]
    return [{"ts": n * 20_000, "item": item, "price": rnd.randint(0, 999)} for n, item in enumerate(items)]


def write(folder: Path, rows: list[dict[str, Any]], first: int, last: int) -> None:
    """Files of sales, each whole as soon as it is seen."""
    folder.mkdir(exist_ok=True)
    for number in range(first, last):
        part = rows[number * ROWS : (number + 1) * ROWS]
        lines = [f"{row['ts']},{'' if row['item'] is None else row['item']},{row['price']}" for row in part]
        draft = folder / f".{number}"
        draft.write_text("ts,item,price\n" + "\n".join(lines) + "\n")
        os.utime(draft, (10**9 + number, 10**9 + number))
        draft.rename(folder / f"{number:03d}.csv")


def job(home: Path, into: str, query: str = QUERY) -> Path:
    file = home / "job.sql"
    file.write_text(
        "CREATE STREAM sales (ts BIGINT, item INT, price BIGINT)\n"
        f"USING csv OPTIONS (path '{home / 'sales'}', header true, maxFilesPerTrigger 1);\n"
        f"CREATE QUERY totals AS {query}\nINTO {into};\n"
    )
    return file


def started(*arguments: str, prefix: tuple[str, ...] = (sys.executable, "-m", "sash.cli")) -> subprocess.Popen[str]:
    environment = {**os.environ, **QUICK, "PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": sys.executable}
    return subprocess.Popen([*prefix, *arguments], stdout=subprocess.PIPE, stderr=None, text=True, env=environment)


def events(process: subprocess.Popen[str], until: str, batch: int = -1) -> list[dict[str, Any]]:
    """The log of a job up to an event."""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("{"):
            found.append(json.loads(line))
            if found[-1]["event"] == until and found[-1].get("batch", batch) >= batch:
                return found
    raise AssertionError(f"no {until} in {found}")


def answer(url: str) -> set[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return set(connection.execute("SELECT item, n, total FROM totals").fetchall())


def test_a_job_that_is_killed_and_started_again_has_the_right_answer_in_postgres(url: str, tmp_path: Path) -> None:
    rows = sales(6)
    write(tmp_path / "sales", rows, 0, 3)
    file = job(tmp_path, f"postgres (url '{url}', table 'totals')")

    killed = started("run", str(file), "--json", "--shards", "2", "--master", "local[1]")
    there = events(killed, "Spark started")[-1]
    assert there["master"] == "local[1]"
    events(killed, "batch", 1)
    killed.kill()
    assert killed.wait(600) == -signal.SIGKILL

    write(tmp_path / "sales", rows, 3, 6)
    stopped = started("run", str(file), "--json", "--shards", "2", "--conf", "spark.app.name=my-own")
    assert events(stopped, "Spark started")[-1]["application"] == "my-own"
    seen = events(stopped, "batch", 5)
    assert seen[-1]["total_late"] == 0
    stopped.send_signal(signal.SIGTERM)
    assert [entry["event"] for entry in events(stopped, "stopped")][-2:] == [
        "stopping after the current batch",
        "stopped",
    ]
    assert stopped.wait(600) == 0

    last = rows[-1]["ts"] - 1
    wanted = replay(QUERY, {"sales": rows}, unit="us", until=last).at(last)
    assert answer(url) == {tuple(row.values()) for row in wanted}


def test_a_job_whose_java_is_killed_ends_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path / "sales", sales(1), 0, 1)
    running = started("run", str(job(tmp_path, "noop")), "--json", "--master", "local[1]")
    events(running, "batch", 0)
    (java,) = (child for child in psutil.Process(running.pid).children() if child.name() == "java")
    java.kill()
    failed = events(running, "failed")[-1]
    assert running.wait(120) == 3
    assert failed["query"] == "totals"
    assert failed["reason"].startswith(
        "Spark's Java process was killed, possibly because the machine ran out of memory"
    )
    assert "Traceback" in Path(failed["log"]).read_text()


def test_a_job_is_submitted_to_a_cluster(tmp_path: Path) -> None:
    rows = sales(2)
    write(tmp_path / "sales", rows, 0, 2)
    file = job(tmp_path, f"changelog (path '{tmp_path / 'log'}') TRIGGER 'available_now'")
    submit = str(Path(pyspark.__file__).parent / "bin" / "spark-submit")
    script = command.__file__
    done = started("run", str(file), "--json", prefix=(submit, "--master", "local-cluster[2,1,1024]", script))
    output, _ = done.communicate(timeout=600)
    assert done.returncode == 0, output
    logged = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    batches = [entry for entry in logged if entry["event"] == "batch"]
    assert [entry["total_rows_in"] for entry in batches if entry.get("query") == "totals"] == [50, 100]
    assert [entry["total_rows_in"] for entry in batches if entry.get("job") == "job"] == [50, 100]
    assert logged[-1]["event"] == "ended"
    assert sorted(path.name for path in (tmp_path / "log").glob("batch=*")) == ["batch=0", "batch=1"]
