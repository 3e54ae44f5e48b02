from __future__ import annotations

from pathlib import Path

import pytest

from sash.cli.demo import command, ending
from sash.cli.demo.command import run_story
from sash.cli.demo.ending import next_steps, verdict_lines
from sash.cli.demo.recomputation import Comparison
from sash.cli.demo.story import Ending
from sash.errors import SashError
from sash.script.reader import read_script
from tests.cli.demo.sample import START

DIFFERENCE = (START, (("sliding", "fan", 2),), (("sliding", "fan", 1),))


def test_equal_answers() -> None:
    lines = verdict_lines(Ending(Comparison(2_345, 6_789, ()), 123))
    assert "2,345 readings in the files, 123 of which arrived while no driver answered" in lines[0]
    assert lines[1].startswith("They are equal at each of 6,789 instants")


def test_different_answers() -> None:
    text = "\n".join(verdict_lines(Ending(Comparison(2_345, 6_789, (DIFFERENCE,)), 123)))
    assert "DIFFER at 1 of 6,789 instants, first at 00:00:03.250" in text
    assert "equal" not in text
    assert "('sliding', 'fan', 2)" in text


def test_the_demo_fails_if_an_answer_differs_and_keeps_its_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(command, "_played", lambda *_, **__: Ending(Comparison(2, 3, (DIFFERENCE,)), 1))
    with pytest.raises(SashError, match="differ") as raised:
        run_story(plain=True)
    (kept,) = tmp_path.iterdir()
    assert str(kept) in str(raised.value)
    assert "DIFFER" in capsys.readouterr().out


def test_the_next_steps_can_be_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "activate").touch()
    lines = next_steps(str(tmp_path / "sash"))
    assert f"  source {tmp_path / 'activate'}" in lines
    pasted = "\n".join(line for line in lines if line.startswith("      "))
    assert all(len(line) < 80 for line in lines if "source" not in line)
    assert len(read_script(pasted)) == 2
    assert not any("activate" in line for line in next_steps("elsewhere/sash"))


def test_the_console_is_offered_with_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    for found, expected in ((None, True), (object(), False)):
        monkeypatch.setattr(ending, "find_spec", lambda _, found=found: found)
        lines = next_steps("elsewhere/sash")
        offer = next(place for place, line in enumerate(lines) if line.startswith("  sash demo --console "))
        assert (lines[offer - 1] == "  python -m pip install 'sash[console]'") is expected
