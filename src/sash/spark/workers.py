"""Settings of Spark's Python workers that make short tasks faster."""

from __future__ import annotations

import gc

_FIRST_TASKS = iter(range(4))


def freeze_loaded_objects() -> None:
    """Exclude the loaded modules and compiled loops from garbage collection.

    Spark's workers run a full collection after every task, and scanning the loaded libraries takes longer than many a
    task. When a task begins, a collection has just run, so that few objects are garbage. Only the first tasks freeze
    objects: after those everything is loaded, and the garbage of later tasks must be collected.
    """
    if next(_FIRST_TASKS, None) is not None:
        gc.freeze()
