from __future__ import annotations

from pathlib import Path

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

import sash.cli.prompt
from sash.cli.prompt import NameCompleter, is_finished, prompt_session
from tests.cli.command import python


def completions(text: str, names: list[str]) -> list[str]:
    return [found.text for found in NameCompleter(lambda: names).get_completions(Document(text), CompleteEvent())]


def test_names_come_before_keywords() -> None:
    assert completions("SELECT se", ["Sensors", "price"]) == ["Sensors", "seconds", "select", "semi", "separate", "set"]
    assert completions("SEL", []) == ["SELECT"]
    assert completions("SELECT ", ["price"]) == []
    assert completions("SELECT price", ["price"]) == []


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        ("", True),
        ("  ", True),
        ("\\help", True),
        ("exit", True),
        ("QUIT ;", True),
        ("exit_code", False),
        ("SHOW STREAMS", False),
        ("SHOW\nSTREAMS;", True),
        ("SELECT ';", False),
    ],
)
def test_enter_ends_whole_statements_only(text: str, finished: bool) -> None:
    assert is_finished(text) is finished


def test_lines_are_read_until_the_semicolon_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sash.cli.prompt, "HISTORY", tmp_path / "history")
    with create_pipe_input() as given:
        given.send_text("SELECT a\rFROM s;\r\\quit\r")
        prompt = prompt_session(list, input=given, output=DummyOutput())
        assert prompt.prompt() == "SELECT a\nFROM s;"
        assert prompt.prompt() == "\\quit"
    assert "+FROM s;" in (tmp_path / "history").read_text()


def test_the_prompt_does_not_wait_for_the_rest_of_sash() -> None:
    script = "import sys, sash.cli.main, sash.spark.session, sash.cli.prompt\nprint(*sys.modules)"
    loaded = python("-c", script).stdout.split()
    assert "sash.cli.prompt" in loaded
    assert not {"numba", "pandas", "pyarrow", "sqlglot", "sash.engine", "sash.cli.shell"}.intersection(loaded)
