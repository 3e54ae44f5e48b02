"""Loaded modules are excluded from garbage collection, and the garbage of later tasks is collected."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import gc
from sash.spark.workers import freeze_loaded_objects

frozen = []
for task in range(6):
    freeze_loaded_objects()
    frozen.append(gc.get_freeze_count())
    left = [[] for _ in range(100)]
    for one in left:
        one.append(left)
    del left, one
    collected = gc.collect()
assert collected >= 100, collected
print(*frozen)
"""


def test_only_the_first_tasks_freeze_objects() -> None:
    ran = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True, timeout=600)
    first, *others = map(int, ran.stdout.split())
    assert first > 1_000
    assert others[-1] == others[-2] == others[-3]
    assert others[-1] < first + 100
