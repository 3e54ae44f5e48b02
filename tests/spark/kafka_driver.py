"""A driver process for recovery tests with Kafka: runs the script HOME/job.sql over all that its topics have.

python -m tests.spark.kafka_driver HOME [BATCH PLACE]: in the given batch the sink kills the process, once the topic has
`half` of the messages of the batch, or `all` of them, and before the checkpoint knows of that.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import sash.spark.sinks.kafka as topic
from sash.engine import Engine
from sash.script.reader import read_script
from sash.script.session import Session
from sash.spark.packages import package_settings
from sash.spark.session import embedded_session


def main(home: Path, deadly: int | None, place: str) -> None:
    messages, opened = topic.messages, topic.KafkaTopic.open

    def half(batch: Any, output: Any, number: int) -> Any:
        found = messages(batch, output, number)
        return found.where("pmod(hash(value), 2) = 0") if number == deadly and place == "half" else found

    def open_topic(self: topic.KafkaTopic, output: Any) -> Any:
        write = opened(self, output)

        def deadly_write(batch: Any, number: int) -> None:
            write(batch, number)
            if number == deadly:
                os.kill(os.getpid(), signal.SIGKILL)

        return deadly_write

    topic.messages, topic.KafkaTopic.open = half, open_topic  # type: ignore[assignment, method-assign]
    spark = embedded_session(cores=2, extra=package_settings(["kafka"], {}))
    session = Session.on(Engine(spark, str(home / "state"), shards=2))
    for statement in read_script((home / "job.sql").read_text()):
        session.execute(statement)
    session.launch()
    for job in session.backend.jobs().values():
        job.process_all()
        job.finish()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else None, sys.argv[3] if len(sys.argv) > 3 else "")
