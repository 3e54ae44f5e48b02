"""`sash rescale`: distributes the state of jobs that do not run over another number of shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sash.cli.session import quiet_engine
from sash.errors import CheckpointError
from sash.script.stored_jobs import stored_jobs
from sash.spark.folders import Folder


def rescale_checkpoint(
    checkpoint: str, shards: int, master: str | None, conf: Mapping[str, str], say: Callable[[str], None]
) -> None:
    """Rescale every job of a checkpoint; `say` gets what became of each."""
    from sash.spark.checkpoint_lock import lock_checkpoint
    from sash.spark.job_change import rescale

    with quiet_engine(master, conf) as engine:
        jobs = stored_jobs(Folder(engine.spark, checkpoint))
        if not jobs:
            raise CheckpointError(
                f"there is no job in {checkpoint}: give the folder that was --checkpoint when the job ran; separate queries "
                "keep their number of shards"
            )
        for name in jobs:
            root = f"{checkpoint.rstrip('/')}/{name}"
            lock = lock_checkpoint(engine.spark, root, name)
            try:
                found = rescale(engine.spark, root, shards)
            finally:
                lock.release()
            say(f"{name}:\n{found.render()}")
