from __future__ import annotations

import io
from dataclasses import replace

from rich.console import Console

from sash.cli.demo.readings import SECOND
from sash.cli.demo.show import LineShow, PictureShow
from tests.cli.demo.sample import moment


def test_lines_are_plain_and_few() -> None:
    file = io.StringIO()
    given = moment(1, 79)
    with LineShow(Console(file=file, width=80)) as show:
        for later in range(10):  # the same batch for two seconds
            show.update(replace(given, now=given.now + later * SECOND // 5))
        show.result("Done.")
    first, note, answers, result = file.getvalue().splitlines()
    assert first.startswith("Act 1 of 3: rows enter and expire. The sliding window")
    assert note == "$ sash run job.sql"
    assert answers.startswith("At 00:00:21.699: truth 239, sliding 239 (right), hopping 174 (wrong by 65); batch 17: ")
    assert answers.endswith("; driver 4711 running")
    assert result == "Done."


def test_waiting_is_reported_every_five_seconds() -> None:
    file = io.StringIO()
    given = moment(1, 20, answered=False)
    show = LineShow(Console(file=file, width=80))
    for later in range(11):
        show.update(replace(given, now=given.now + later * SECOND))
    assert [line for line in file.getvalue().splitlines() if "no answer yet" in line] == [
        f"127 readings have arrived; there is no answer yet; driver 4711 starting, {seconds} s"
        for seconds in (5, 10, 15)
    ]


def test_the_picture_is_redrawn_and_the_cursor_comes_back() -> None:
    file = io.StringIO()
    console = Console(
        file=file, width=80, height=24, force_terminal=True, color_system="standard", legacy_windows=False
    )
    with PictureShow(console) as show:
        show.update(moment(1, 79))
        show.update(moment(2, 110))
        show.result("Done.")
    written = file.getvalue()
    assert written.index("Act 1 of 3") < written.index("Act 2 of 3")
    assert written.index("\x1b[?25l") < written.rindex("\x1b[?25h")
