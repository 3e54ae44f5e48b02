"""References to secrets in options: resolved where they are used, masked wherever they could be shown."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from sash import masking
from sash.cli.check import check
from sash.cli.job_log import JobLog
from sash.cli.preflight import check_secrets
from sash.errors import OptionError, SashError, SinkError, SqlSyntaxError
from sash.script.dry_run import DryRunBackend
from sash.secret_references import check_references, has_references, resolve
from sash.spark.job_manifest import without_secrets
from sash.spark.sinks import ChangeLog, Delta, PostgresTable
from sash.spark.sinks.formats import FormatSink

CANARY = "c4n%2Ary'\"secret"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_values", set())
    monkeypatch.setenv("CANARY", CANARY)
    monkeypatch.delenv("NOT_SET", raising=False)


def test_references_are_replaced_by_what_they_name(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("of a file\n")
    assert resolve(f"a ${{CANARY}} ${{file:{tmp_path}/key}} $${{CANARY}} $x") == f"a {CANARY} of a file ${{CANARY}} $x"
    assert not has_references("$${CANARY} $CANARY {CANARY}")


@pytest.mark.parametrize("text", ["${}", "${my key}", "${file:}", "a ${OPEN", "${1}", "${env:X}"])
def test_a_reference_that_cannot_be_read(text: str) -> None:
    with pytest.raises(OptionError, match=r"the option url: .* is not a reference: write"):
        check_references("url", text)


def test_a_secret_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="the environment has no variable NOT_SET"):
        resolve("${NOT_SET}")
    with pytest.raises(OptionError, match="cannot be read: No such file"):
        resolve(f"${{file:{tmp_path}/none}}")
    (tmp_path / "large").write_bytes(b"x" * 70_000)
    with pytest.raises(OptionError, match="more than 65536 bytes"):
        resolve(f"${{file:{tmp_path}/large}}")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(OptionError, match="it is not text"):
        resolve(f"${{file:{tmp_path}/bytes}}")


def test_what_was_resolved_is_masked_in_errors_and_logs(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    resolve("${CANARY}")
    forms = (CANARY, CANARY.replace("%2A", "*"), CANARY.replace('"', '\\"'))
    for form in forms:
        assert str(SinkError(f"cannot connect with {form}")) == "cannot connect with ..."
        assert str(SqlSyntaxError(f"near {form}", 1, 2)) == "near ... (line 1, column 2)"
    logging.getLogger("sash").warning("tried %s", CANARY)
    assert [record.getMessage() for record in caplog.records] == ["tried ..."]
    for as_json in (True, False):
        log = JobLog(as_json=as_json)
        with log.kept_in(tmp_path / "job.log"):
            log.write("batch", "q", reason=CANARY)
            log.write_error(str(SashError(CANARY)))
    written = (tmp_path / "job.log").read_text() + "".join(capsys.readouterr())
    assert written.count("...") == 8
    assert not any(form in written for form in forms)


def test_the_password_of_a_secret_url_is_masked_alone_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("URL", "postgresql://me:hid%20den@host/shop?password=other1")
    resolve("${URL}")
    assert masking.mask("hid%20den, hid den, other1, me, shop") == "..., ..., ..., me, shop"


def test_short_values_do_not_mask_half_of_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORT", "5")
    resolve("${SHORT}")
    assert str(SashError("5 rows in 15 s")) == "5 rows in 15 s"


def test_sinks_show_and_compare_the_reference_and_use_the_secret() -> None:
    sink = PostgresTable({"url": "postgresql://me:${CANARY}@host/shop", "table": "t"})
    assert CANARY in sink.resolved["url"]
    assert "${CANARY}" in str(sink.target)
    assert without_secrets({"url": "${CANARY}", "note": "x"}) == {"url": "${CANARY}", "note": "x"}
    for made in (
        ChangeLog({"path": "${CANARY}/log"}),
        Delta({"path": "${CANARY}"}),
        FormatSink("noop", {"a": "${CANARY}"}, "q"),
    ):
        assert CANARY not in f"{made.options} {made.target}"
    with pytest.raises(OptionError, match="the option url: "):
        PostgresTable({"url": "${not a name}", "table": "t"})


SCRIPT = """CREATE STREAM s (ts TIMESTAMP, k STRING) USING kafka
OPTIONS (kafka.bootstrap.servers '{servers}', subscribe 't', format 'json');
CREATE QUERY q AS SELECT k FROM s [RANGE 1 MINUTE] INTO postgres (url '{url}', table 't');"""


def test_a_script_is_valid_without_its_secrets_and_does_not_run_without_them() -> None:
    backend = DryRunBackend()
    assert check(SCRIPT.format(servers="${NOT_SET}", url="${NOT_SET}"), backend) == []
    (declared,) = backend.declared
    with pytest.raises(OptionError, match="no variable NOT_SET"):
        check_secrets(declared.declaration.options)


@pytest.mark.parametrize(
    ("given", "place"), [({"servers": "${a b}", "url": "x"}, (2, 10)), ({"servers": "h:1", "url": "${"}, (3, 57))]
)
def test_a_reference_that_cannot_be_read_is_an_error_of_the_script(
    given: dict[str, Any], place: tuple[int, int]
) -> None:
    problem = check(SCRIPT.format(**given), DryRunBackend())[0]
    assert "is not a reference" in problem.message
    assert (problem.line, problem.column) == place
