"""`sash demo`: plays the story in a temporary folder, and prints its ending."""

from __future__ import annotations

import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sash.cli.demo.ending import next_steps, verdict_lines
from sash.cli.demo.in_console import show_in_console
from sash.cli.demo.job import explain_job, write_job
from sash.cli.demo.show import LineShow, PictureShow
from sash.cli.demo.story import Ending, Interrupted, Pace, Story
from sash.errors import SashError

OK, WRONG, INTERRUPTED = 0, 1, 130
_PACE = Pace()
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_story(*, plain: bool, explain: bool = False, pace: Pace = _PACE) -> int:
    """Play the story and return the exit code: 0 if all answers are equal to the recomputed ones."""
    console = Console()
    if explain:
        console.print(Text(explain_job()), soft_wrap=True)
    try:
        with _stopped_by_signals() as stop, _folder() as home:
            ending = _played(home, console, stop, pace, plain=plain)
            for line in verdict_lines(ending):
                console.print(Text(line), soft_wrap=plain)
            if ending.comparison.differences:
                raise SashError("answers of the demo differ from their recomputation: please report this")
    except Interrupted:
        console.print("Stopped.")
        return INTERRUPTED
    console.print(Text("\n".join(next_steps(sys.argv[0]))), soft_wrap=True)
    return OK


def run_console(port: int) -> int:
    """Show a job over the story's readings in the web console until a signal comes."""
    console = Console()
    with _stopped_by_signals() as stop, _folder() as home:
        show_in_console(home, console, stop, port)
    return OK


def _played(home: Path, console: Console, stop: threading.Event, pace: Pace, *, plain: bool) -> Ending:
    """Play the story; its processes have ended on return."""
    write_job(home)
    show = LineShow(console) if plain else PictureShow(console)
    story = Story(home, show, stop, pace)
    try:
        with show:
            return story.play()
    finally:
        story.close()


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """An event that signals set, as often as they come: a second Ctrl-C must not leave processes and files behind."""
    event = threading.Event()
    kept = {number: signal.signal(number, lambda *_: event.set()) for number in _SIGNALS}
    try:
        yield event
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


@contextmanager
def _folder() -> Iterator[Path]:
    """A temporary folder, which is kept with the logs in it if an error occurs."""
    home = Path(tempfile.mkdtemp(prefix="sash-demo-"))
    try:
        yield home
    except SashError as problem:
        raise SashError(f"{problem} (the logs are in {home})") from problem
    except BaseException:
        shutil.rmtree(home, ignore_errors=True)
        raise
    shutil.rmtree(home, ignore_errors=True)
