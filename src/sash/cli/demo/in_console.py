"""`sash demo --console`: the readings of the story without end, and the web console of a job over them."""

from __future__ import annotations

import threading
from pathlib import Path

from rich.console import Console
from rich.text import Text

from sash.cli.demo.driver import Driver
from sash.cli.demo.job import JOB_FILE, READINGS_FOLDER, write_console_job
from sash.cli.demo.readings import SensorFeed
from sash.cli.demo.story import now_in_microseconds

_PERIOD = 0.5
_PHASES = {"starting Spark": "Spark is starting", "Spark started": "the job is starting"}


def show_in_console(home: Path, console: Console, stop: threading.Event, port: int) -> None:
    """Run the job with its console in a folder, and write readings, until `stop` is set; a job that ends is an error."""
    write_console_job(home)
    feed = SensorFeed(home / READINGS_FOLDER, now_in_microseconds())
    driver = Driver(home, 1, ["--console", str(port), "--allow-changes"])
    console.print(f"The job is {home / JOB_FILE}", soft_wrap=True)
    try:
        while not stop.wait(_PERIOD):
            feed.write_until(now_in_microseconds())
            for event in driver.events():
                if event["event"] == "console":
                    text = f"Open {event['url']}\nPress Ctrl-C to stop."
                    console.print(Text(text), soft_wrap=True)
                elif event["event"] in _PHASES:
                    console.print(_PHASES[event["event"]], style="dim")
            driver.check()
    finally:
        driver.end()
