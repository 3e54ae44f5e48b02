"""What a Python worker of Spark's is told before it runs a task of ours."""

from __future__ import annotations

import gc

_FIRST_TASKS = iter(range(4))


def spare_collections() -> None:
    """Take what is loaded out of the reach of garbage collection.

    Spark's workers collect all garbage after every task. To look through the libraries that are loaded, compiled loops
    among them, takes longer than many a task; a collection has just been done, so nothing that is there now is garbage.
    The first tasks say so, for modules and loops are loaded one by one; then there is nothing new to spare.
    """
    if next(_FIRST_TASKS, None) is not None:
        gc.freeze()
