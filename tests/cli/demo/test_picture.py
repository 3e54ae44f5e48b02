from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from sash.cli.demo.picture import picture, summary
from tests.cli.demo.golden import MOMENTS, SIZES, drawn, path_of
from tests.cli.demo.sample import moment


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_pictures_are_as_in_the_golden_files(name: str, width: int, height: int) -> None:
    assert drawn(MOMENTS[name](), width, height) == path_of(name, width).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MOMENTS)
@pytest.mark.parametrize("width", [80, 100, 200])
@pytest.mark.parametrize("height", [24, 30, 50])
def test_pictures_fit_on_the_screen(name: str, width: int, height: int) -> None:
    lines = drawn(MOMENTS[name](), width, height).splitlines()
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def test_pictures_use_only_colours_of_the_terminal() -> None:
    console = Console(color_system="truecolor", force_terminal=True, width=80)
    styles = {segment.style for segment in console.render(picture(moment(2, 110), 80, 24)) if segment.style}
    colours = {style.color.name for style in styles if style.color}
    assert colours == {"green", "red"}
    assert not any(style.bgcolor for style in styles)


def test_counts_and_truth_are_of_the_same_instant() -> None:
    given = moment(1, 79)
    assert given.answers is not None
    first, second = summary(given)
    entered = sum(at <= given.answers.as_of for at in given.readings.times.tolist())
    in_window = sum(
        given.answers.as_of - 10_000_000 < at <= given.answers.as_of for at in given.readings.times.tolist()
    )
    assert f"truth {in_window}, sliding {in_window} (right), hopping" in first
    assert second == f"batch 17: {entered} readings have entered, {entered - in_window} have expired"


def test_a_wrong_answer_is_called_wrong() -> None:
    given = moment(1, 79)
    assert given.answers is not None
    wrong = replace(given, answers=replace(given.answers, current=given.answers.current[:-1]))
    assert "(wrong by " in summary(wrong)[0].partition("hopping")[0]
