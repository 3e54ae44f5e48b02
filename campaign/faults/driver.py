"""A driver that a campaign strikes. Commands and replies are lines of JSON; Spark is started before the first command.

python -m campaign.faults.driver HOME MASTER: HOME has the files of the streams, the checkpoint and the orders.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from sash.engine import Engine
from sash.errors import SashError
from sash.running_job import RunningJob
from sash.spark.session import embedded_session

_CLUSTER = {"spark.excludeOnFailure.enabled": "false", "spark.task.maxFailures": "4", "spark.executor.memory": "700m"}


class Driver:
    """One session, and the job while it runs."""

    def __init__(self, home: Path, master: str) -> None:
        from campaign.faults import hooks

        self._home = home
        hooks.install(home / "orders")
        self._spark = embedded_session(cores=2, master=master, extra=_CLUSTER if "cluster" in master else None)
        self._running: RunningJob | None = None

    def start(self, command: dict[str, Any]) -> None:
        """Start the job from its checkpoint."""
        (self._home / "orders" / "driver").write_text(str(os.getpid()))
        engine = Engine(self._spark, shards=2)
        for name in ("s", "u"):
            reader = self._spark.readStream.schema("ts long, k string, v long, x long")
            files = reader.option("maxFilesPerTrigger", 1).option("maxFileAge", "36500d")
            jump = "1 day" if name == "u" else None
            engine.stream(
                name,
                files.parquet(str(self._home / name)),
                slack="3 milliseconds",
                max_jump=jump,
                unbounded="allow",
            )
        job = engine.job(checkpoint=str(self._home / "checkpoint" / "job"))
        for name, query in command["queries"].items():
            job.add(name, query["sql"], query["sink"], mode=query["mode"], key=query["key"], **query["options"])
        self._running = job.start()

    def process(self, _: dict[str, Any]) -> None:
        """Process all files that are there."""
        assert self._running is not None
        self._running.process_all_available()

    def stop(self, _: dict[str, Any]) -> None:
        """Stop the job, if it runs."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def execute(self, command: dict[str, Any]) -> dict[str, Any]:
        """Execute a command; an error of the job is part of the reply."""
        try:
            getattr(self, command["do"])(command)
        except SashError as problem:
            return {"error": str(problem), "kind": type(problem).__name__}
        return {}


def main(home: Path, master: str) -> None:
    """Execute the commands on standard input."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what Spark prints is no reply
    driver = Driver(home, master)
    for line in sys.stdin:
        replies.write(json.dumps(driver.execute(json.loads(line))) + "\n")
        replies.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
