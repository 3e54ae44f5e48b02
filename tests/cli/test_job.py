from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sash.cli.job_log import JobLog
from sash.cli.main import app
from tests.cli.command import python

SALES = "CREATE STREAM sales (ts TIMESTAMP, item INT, price DOUBLE) USING csv OPTIONS (path 'sales');\n"
GOOD = SALES + "CREATE QUERY q AS SELECT item, SUM(price) AS p FROM sales [RANGE 1 MINUTE] GROUP BY item INTO noop;\n"


@pytest.fixture
def job(tmp_path: Path) -> Path:
    return tmp_path / "job.sql"


def validated(job: Path, text: str, *options: str) -> tuple[int, str]:
    job.write_text(text)
    result = CliRunner().invoke(app, ["validate", str(job), *options])
    return result.exit_code, result.output


def test_a_valid_job(job: Path) -> None:
    assert validated(job, GOOD) == (0, f"{job}: OK (2 statements, 1 of them queries)\n")


def test_all_errors_are_printed_with_their_positions(job: Path) -> None:
    text = SALES + "CREATE QUERY q AS\n  SELECT prize FROM sales [NOW]\nINTO noop;\nSELECT item FROM sales [NOW];\n"
    code, output = validated(job, text)
    assert code == 1
    assert f"{job}:3:10: there is no column prize; did you mean price?" in output
    assert "  3 |   SELECT prize FROM sales [NOW]\n    |          ^" in output
    assert f"{job}:5:1: a job needs a sink for every answer" in output


def test_problems_as_json(job: Path) -> None:
    code, output = validated(job, "SHOW STREAM;", "--json")
    (problem,) = json.loads(output)["problems"]
    assert (code, problem["line"], problem["column"]) == (1, 1, 6)


def test_a_job_without_a_query_is_refused(job: Path) -> None:
    code, output = validated(job, SALES)
    assert code == 1
    assert "starts no query" in output


def test_checking_starts_no_java(job: Path) -> None:
    job.write_text(GOOD)
    program = (
        "import sys; from pathlib import Path; from sash.cli.check import validate_job; "
        f"code = validate_job(Path({str(job)!r}), as_json=False); "
        "from pyspark import SparkContext; sys.exit(code or SparkContext._gateway is not None)"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["validate", "nowhere.sql"], 2), (["run"], 2), (["run", "nowhere.sql"], 2), (["sql", "--conf", "x"], 2)],
)
def test_exit_code_of_a_wrong_command_line(arguments: list[str], code: int) -> None:
    assert CliRunner().invoke(app, arguments).exit_code == code


def test_an_invalid_job_ends_before_spark_starts(job: Path) -> None:
    job.write_text("CREATE STREAM sales;")
    result = CliRunner().invoke(app, ["run", str(job), "--json"])
    assert result.exit_code == 1
    (line,) = [json.loads(line) for line in result.output.splitlines()]
    assert (line["event"], line["level"], line["line"], line["column"]) == ("error", "error", 1, 20)


def test_text_logs_have_the_latest_batch_and_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    log = JobLog(as_json=False)
    for batch in range(3):
        log.add_batch("q", {"batch": batch})
        log.write_batch("q")
    log.write_batch("q", at_once=True)
    log.write_batch("q", at_once=True)
    assert [line.split("batch=")[1] for line in capsys.readouterr().out.splitlines()] == ["0", "2"]


def test_text_logs_have_the_date_and_the_bad_rows(capsys: pytest.CaptureFixture[str]) -> None:
    log = JobLog(as_json=False)
    log.add_batch("q", {"batch": 1, "total_late": 2, "total_bad": 3})
    log.write_batch("q")
    line = capsys.readouterr().out
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ q: batch done batch=1 total_late=2 total_bad=3\n", line)


def test_warnings_are_logged_except_about_parked_queries(capsys: pytest.CaptureFixture[str]) -> None:
    with JobLog(as_json=True).warnings():
        logging.getLogger("sash").warning("the sink is slow")
        logging.getLogger("sash").warning("query %s is parked", "q", extra={"parked": "q"})
    (line,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert line["message"] == "the sink is slow"
