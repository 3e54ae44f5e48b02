"""What a Python worker of Spark's is told before it runs a task of ours."""

from __future__ import annotations

import gc

_FIRST_TASKS = iter(range(4))


def spare_collections() -> None:
    """Take what is loaded out of the reach of garbage collection.

    Spark's workers collect all garbage after every task. To look through the libraries that are loaded, compiled loops
    among them, takes longer than many a task. When a task begins, a collection has just been done, so that little of what is
    there is garbage. Only the first tasks say so: modules and loops are loaded one by one, but soon there is nothing new to
    spare, and what later tasks leave behind must be collected.
    """
    if next(_FIRST_TASKS, None) is not None:
        gc.freeze()
