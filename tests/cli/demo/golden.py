"""The golden pictures: moments of the story at two sizes. `python -m tests.cli.demo.golden` writes them."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from sash.cli.demo.moment import Moment
from sash.cli.demo.picture import picture
from tests.cli.demo.sample import moment

FOLDER = Path(__file__).parent / "golden"
SIZES = ((80, 24), (200, 50))
MOMENTS = {
    "starting": lambda: moment(1, 20, answered=False),
    "windows": lambda: moment(1, 79),
    "absence": lambda: moment(2, 110),
    "killed": lambda: moment(3, 110, killed=True),
}


def drawn(given: Moment, width: int, height: int) -> str:
    """The picture as text."""
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None, force_terminal=False)
    with console.capture() as capture:
        console.print(picture(given, width, height))
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"


def path_of(name: str, width: int) -> Path:
    return FOLDER / f"{name}_{width}.txt"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in MOMENTS.items():
        for width, height in SIZES:
            path_of(name, width).write_text(drawn(make(), width, height), encoding="utf-8")
