from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sash.cli.catalog import declared_catalog
from sash.cli.main import app, run
from sash.errors import CatalogError, UnknownNameError
from tests.cli.command import python

SALES = "sales(ts TIMESTAMP, item_id INT, price DOUBLE)"
QUERY = "SELECT item_id, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item_id"


def test_explain_takes_a_query_as_text() -> None:
    result = CliRunner().invoke(app, ["explain", QUERY, "--stream", SALES])
    assert result.exit_code == 0
    assert "Aggregate sum(price) BY item_id [fifo]" in result.output


def test_explain_takes_a_query_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "query.sql"
    file.write_text(QUERY)
    text = CliRunner().invoke(app, ["explain", QUERY, "--stream", SALES])
    from_file = CliRunner().invoke(app, ["explain", str(file), "--stream", SALES])
    assert from_file.output == text.output


def test_explain_takes_relations() -> None:
    sql = "SELECT s.price FROM sales [RANGE 1 MINUTE] AS s JOIN items AS i ON s.item_id = i.item_id"
    result = CliRunner().invoke(app, ["explain", sql, "--stream", SALES, "--relation", "items(item_id INT)"])
    assert "Relation items" in result.output


def test_explain_all_shows_rejected_plans() -> None:
    sql = (
        "SELECT DISTINCT a.price FROM sales [RANGE 1 MINUTE] a JOIN sales [RANGE 2 MINUTES] b ON a.item_id = b.item_id"
    )
    plain = CliRunner().invoke(app, ["explain", sql, "--stream", SALES])
    every = CliRunner().invoke(app, ["explain", sql, "--stream", SALES, "--all"])
    assert "Alternatives that cost more" not in plain.output
    assert "push_distinct_below_join: " in every.output.split("Alternatives that cost more")[1]


def test_errors_are_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["sash", "explain", "SELECT colour FROM sales [NOW]", "--stream", SALES])
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sash: ")
    assert "colour" in line


def test_unknown_names_keep_their_type() -> None:
    result = CliRunner().invoke(app, ["explain", "SELECT a FROM nowhere [NOW]", "--stream", SALES])
    assert isinstance(result.exception, UnknownNameError)


@pytest.mark.parametrize("command", [[], ["demo"], ["explain"]])
def test_every_command_has_help(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


@pytest.mark.parametrize("option", ["--strategy=direct", "--seconds=20", "--rate=50"])
def test_options_of_the_demo_queries_need_a_query(option: str) -> None:
    result = CliRunner().invoke(app, ["demo", option])
    assert result.exit_code == 2
    assert "add --query q1" in result.output


def test_the_command_starts_without_pyspark() -> None:
    program = "import sys, sash.cli.main; sys.exit('pyspark' in sys.modules)"
    assert python("-c", program).returncode == 0


class TestDeclarations:
    def test_time_is_the_column_called_ts(self) -> None:
        assert declared_catalog(["s(at TIMESTAMP, ts BIGINT)"], []).streams["s"].time == "ts"

    def test_or_the_only_timestamp(self) -> None:
        assert declared_catalog(["s(a INT, at TIMESTAMP)"], []).streams["s"].time == "at"

    def test_decimals_keep_their_comma(self) -> None:
        (field,) = declared_catalog([], ["r(price DECIMAL(10, 2))"]).relations["r"].schema
        assert str(field) == "price DECIMAL(10,2)"

    @pytest.mark.parametrize(
        ("text", "reason"),
        [
            ("sales", "write it as"),
            ("sales(ts TIMESTAMP", "write it as"),
            ("sales(a INT)", "needs a time column"),
            ("sales(a TIMESTAMP, b TIMESTAMP)", "needs a time column"),
            ("sales(ts TIMESTAMP, a MONEY)", "unknown type 'MONEY'"),
        ],
    )
    def test_errors_name_the_problem(self, text: str, reason: str) -> None:
        with pytest.raises(CatalogError, match=reason):
            declared_catalog([text], [])


def test_the_version_is_shown() -> None:
    done = CliRunner().invoke(app, ["--version"])
    assert (done.exit_code, done.output) == (0, f"sash {version('sash')}\n")


def test_completion_of_the_shell_can_be_shown() -> None:
    done = CliRunner().invoke(app, [], prog_name="sash", env={"_SASH_COMPLETE": "source_bash"})
    assert done.exit_code == 0
    assert "_SASH_COMPLETE=complete_bash" in done.output


@pytest.mark.parametrize("command", [[], ["explain"], ["sql"], ["run"], ["validate"]])
def test_help_does_without_the_words_of_the_papers(command: list[str]) -> None:
    text = CliRunner().invoke(app, [*command, "--help"]).output.lower()
    for word in ("paper", "negative-tuple", "calendar", "update pattern", "time message", "expired"):
        assert word not in text


def test_explain_shows_every_query_of_a_job(tmp_path: Path) -> None:
    job = tmp_path / "job.sql"
    stream = "CREATE STREAM s (ts TIMESTAMP, k STRING) USING csv OPTIONS (path 'x');"
    first = "CREATE QUERY first AS SELECT regexp_extract(k, 'a', 0) AS x FROM s [RANGE 1 MINUTE] INTO console;"
    second = "CREATE QUERY second AS SELECT DISTINCT k FROM s [RANGE 2 MINUTES] INTO noop STRATEGY negative-tuple;"
    job.write_text(f"{stream}\n{first}\n{second}")
    done = CliRunner().invoke(app, ["explain", str(job)])
    assert done.exit_code == 0
    heads = [line for line in done.stdout.splitlines() if line.startswith(("Query ", "Strategy"))]
    assert heads == [
        *("Query first, into console", "Strategy: update-pattern-aware"),
        *("Query second, into noop", "Strategy: negative-tuple"),
    ]


def test_explain_shows_the_errors_of_a_job_and_the_other_plans(tmp_path: Path) -> None:
    job = tmp_path / "job.sql"
    job.write_text(
        "CREATE STREAM s (ts TIMESTAMP, k STRING) USING csv OPTIONS (path 'x');\n"
        "CREATE QUERY wrong AS SELECT z FROM s [NOW] INTO noop;\nSELECT k FROM s [NOW];"
    )
    done = CliRunner().invoke(app, ["explain", str(job)])
    assert done.exit_code == 1
    assert f"{job}:2:30: there is no column z" in done.stderr
    assert "Query SELECT\n" in done.stdout


def test_the_command_alone_says_what_it_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["sash"])
    with pytest.raises(SystemExit) as ended:
        run()
    shown = capsys.readouterr()
    assert ended.value.code != 1
    assert "explain" in shown.out + shown.err


def test_shells_complete_commands() -> None:
    asked = {"_SASH_COMPLETE": "complete_bash", "COMP_WORDS": "sash de", "COMP_CWORD": "1"}
    call = f"import os, sys; sys.argv = ['sash']; os.environ.update({asked}); from sash.cli.main import run; run()"
    done = python("-c", call)
    assert (done.returncode, done.stdout.split()) == (0, ["demo"])
