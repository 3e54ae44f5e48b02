"""A driver process for recovery tests: runs a query over all files that are present.

python -m tests.spark.driver HOME MASTER [DEADLY_BATCH]: reads HOME/in, writes HOME/out, checkpoints to HOME/checkpoint,
injects the faults of HOME/trouble. In the given batch the sink kills the process before it writes anything.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

import sash.spark.dataflow
import tests.spark.trouble
from sash.spark.session import embedded_session
from tests.spark.files import SQL, FolderSink, file_engine
from tests.spark.trouble import TroubledProcessor


def main(home: Path, master: str, deadly: int | None) -> None:
    (home / "trouble").mkdir(exist_ok=True)
    (home / "trouble" / "pid").write_text(str(os.getpid()))
    cloudpickle.register_pickle_by_value(tests.spark.trouble)
    sash.spark.dataflow.StageProcessor = lambda *a, **n: TroubledProcessor(home / "trouble", *a, **n)  # type: ignore[assignment, misc]
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
