"""The fingerprint of a checkpoint identifies the query that wrote it, so that another query cannot resume its state.

Spark itself accepts changed code over an old checkpoint without a warning.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from pyspark.sql import SparkSession

from sash.errors import CheckpointError
from sash.spark.folders import Folder, local_path
from sash.spark.header import READABLE

NAME = "sash-fingerprint.json"

_REASONS = {
    "format": "it was written by another version of Sash",
    "sql": "it belongs to another query",
    "functions": "a function or an aggregate of its own has another version",
    "plan": "the query now has another plan, over other columns or by other rules",
    "strategy": "it was run with another strategy",
    "join": "it was run with another join method",
    "tau": "changes were released at another interval",
    "shards": "it was written with another number of shards",
    "streams": "it was written with other streams, or in another order",
    "relations": "it was written with other changing relations",
    "heartbeats": "it was written with heartbeats on other streams",
}

_ADVICE = {
    "format": "Run the version that wrote it, or start with a new checkpoint",
    "shards": "A checkpoint keeps its number: leave out --shards (shards=), or start with a new checkpoint",
}


def shards_of(spark: SparkSession, checkpoint: str) -> int | None:
    """The number of shards with which a checkpoint was written; None if it is new."""
    stored = Folder(spark, checkpoint).read(NAME)
    return None if stored is None else json.loads(stored).get("shards")


def check_fingerprint(spark: SparkSession, checkpoint: str, fingerprint: dict[str, Any]) -> str:
    """Write the fingerprint of a new checkpoint, or raise CheckpointError if the stored one differs.

    Returns the checkpoint's identity, by which a sink recognizes the query after a restart.
    """
    folder = Folder(spark, checkpoint)
    stored = folder.read(NAME)
    if stored is None:
        refuse_foreign(checkpoint, folder.exists("offsets"))
        identity = uuid.uuid4().hex
        folder.write(NAME, json.dumps({**fingerprint, "identity": identity}, indent=2))
        return identity
    known = json.loads(stored)
    refuse_other(checkpoint, known, fingerprint)
    return str(known["identity"])


def refuse_foreign(checkpoint: str, started: bool) -> None:
    """Raise CheckpointError if a checkpoint without a fingerprint has been used, as its offsets show."""
    if started:
        raise CheckpointError(
            f"{checkpoint} is the checkpoint of a query that Sash did not start: choose another directory"
        )


def refuse_other(checkpoint: str, known: dict[str, Any], fingerprint: dict[str, Any]) -> None:
    """Raise CheckpointError if a part of the fingerprint differs from the one that is known of the checkpoint."""
    for part, reason in _REASONS.items():
        if part == "format" and known.get(part) in READABLE:
            continue
        if part in fingerprint and known.get(part) != fingerprint[part]:
            raise CheckpointError(
                f"checkpoint {checkpoint} cannot be used: {reason} (then: {_one_line(known.get(part))}, now: "
                f"{_one_line(fingerprint[part])}). {_ADVICE.get(part, 'Restore it, or start with a new checkpoint')}"
            )


def remove_drafts(checkpoint: str) -> None:
    """Remove what a query leaves in a new local checkpoint if it is stopped while it writes the offsets of its first batch.

    Spark would refuse to start over it, although nothing has been processed.
    """
    path = local_path(checkpoint)
    found = [] if path is None else [file for file in path.glob("offsets/*") if file.is_file()]
    if all(file.name.startswith(".") for file in found):
        for file in found:
            file.unlink(missing_ok=True)


def _one_line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else repr(value)
