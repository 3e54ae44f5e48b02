"""A driver process for recovery tests of jobs: two queries over all files that are present.

python -m tests.spark.job_driver HOME [DEADLY_BATCH]: reads HOME/in, writes HOME/first and HOME/second, and the numbers of the
batches that each sink gets to HOME/calls. In the given batch the second sink kills the process, once the ledger has the first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from sash.spark.session import embedded_session
from tests.spark.files import SQL, TWO_STAGES, FolderSink, file_engine


def main(home: Path, deadly: int | None) -> None:
    sinks = {name: FolderSink(home / name) for name in ("first", "second")}

    def write(name: str, batch: Any, number: int) -> None:
        if name == "second" and number == deadly:
            ledger, never = home / "checkpoint" / "job" / "g1" / "ledger" / str(number), threading.Event()
            while not ledger.exists():
                never.wait(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        sinks[name](batch, number)
        with (home / "calls").open("a") as calls:
            calls.write(f"{name} {number}\n")

    spark = embedded_session(cores=2, master="local[2,4]")
    job = file_engine(spark, home / "in").job(trigger="available_now", checkpoint=str(home / "checkpoint"))
    job.add("first", SQL, lambda batch, number: write("first", batch, number))
    job.add("second", TWO_STAGES, lambda batch, number: write("second", batch, number))
    job.start().await_termination()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None)
