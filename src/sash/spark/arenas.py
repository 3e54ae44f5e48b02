"""Where the arenas of shards are: under Spark's local directory, by query, run, level and label.

The arenas of a run are not those of the next one, which may find processes of the first still at work. Only the batch that
begins a generation (`seed_processor.py`) leaves its arenas to the run that follows.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from sash.physical.nodes import Stage
from sash.private_folders import make_private
from sash.state.arena import is_sealed

_SEED, _REPLACED = "seed", "replaced"


def part_name(stage: Stage, identity: str, record: Mapping[str, Any] | None) -> str:
    """The name of a stage's arrays in an arena. Where a channel keeps its rows, a stage has other arrays."""
    common = any(given.common for given in stage.inputs)
    return f"{identity}-{(record or {}).get('part', 0)}{'-common' if common else ''}"


def arena_directory(level: int, label: int) -> Path:
    """The directory of a shard's arena in this run: the one that the seed left, or a new one. Those of other runs are deleted."""
    home = _home()
    run = _property("spark.jobGroup.id") or "run"
    here, seeded = home / run / f"{level}-{label}", seed_directory(level, label)
    if not (home / run).exists() and home.exists():
        for other in home.iterdir():
            if other.name not in (run, _SEED):
                shutil.rmtree(other, ignore_errors=True)
    if seeded.exists() and not here.exists():
        make_private(here.parent)
        seeded.rename(here)
        with suppress(OSError):
            shutil.rmtree((here / _REPLACED).read_text())
    return here


def seed_directory(level: int, label: int) -> Path:
    """The directory of the arena that the first batch of a generation makes for the run after it."""
    return _home() / _SEED / f"{level}-{label}"


def replace_arena(seeded: Path, old: Path) -> None:
    """Note that an arena is not needed any more once the run begins that a seeded one is for."""
    (seeded / _REPLACED).write_text(str(old))


def find_arena(level: int, label: int, nonce: str | None) -> Path | None:
    """The arena of any query on this machine that has this nonce."""
    if not nonce:
        return None
    places = _local().glob(f"*/*/{level}-{label}")
    return next((place for place in places if is_sealed(place, nonce)), None)


def _local() -> Path:
    local = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    return Path(local) / "sash"


def _home() -> Path:
    return _local() / (_property("sql.streaming.queryId") or "query")


def _property(name: str) -> str | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    return context.getLocalProperty(name) if context else None
