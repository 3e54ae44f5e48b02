"""A driver to be killed: runs a query over files to the end of what is there.

python -m tests.spark.driver HOME MASTER [MAXIMUM_BATCHES_BEFORE_DEATH]: reads HOME/in, writes HOME/out, keeps
HOME/checkpoint, meets HOME/trouble; the sink kills the process in the given batch before it writes anything.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

import sash.spark.plan
import tests.spark.trouble
from sash.spark.session import embedded_session
from tests.spark.files import SQL, FolderSink, file_engine
from tests.spark.trouble import TroubledRound


def main(home: Path, master: str, deadly: int | None) -> None:
    (home / "trouble").mkdir(exist_ok=True)
    (home / "trouble" / "pid").write_text(str(os.getpid()))
    cloudpickle.register_pickle_by_value(tests.spark.trouble)
    sash.spark.plan.Round = lambda *a: TroubledRound(home / "trouble", *a)  # type: ignore[assignment, misc]
    sink = FolderSink(home / "out")

    def write(batch: Any, number: int) -> None:
        if number == deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        sink(batch, number)

    spark = embedded_session(cores=2, master=master)
    running = (
        file_engine(spark, home / "in")
        .sql(SQL)
        .start(write, trigger="available_now", checkpoint=str(home / "checkpoint"))
    )
    running.await_termination()
    running.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else None)
