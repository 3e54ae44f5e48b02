"""The fingerprint of a checkpoint: what query wrote it, so that another one does not go on from its state.

Spark itself accepts changed code over an old checkpoint in silence.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from pyspark.sql import SparkSession

from sash.errors import CheckpointError
from sash.spark.places import Folder

NAME = "sash-fingerprint.json"

_REASONS = {
    "format": "it was written by another version of Sash",
    "sql": "it belongs to another query",
    "plan": "the query is now planned differently, over other columns or by other rules",
    "strategy": "it was run with another strategy",
    "join": "joins were run in another way",
    "tau": "changes were released at another interval",
    "shards": "it was written with another number of shards",
    "streams": "the streams are others, or in another order",
    "relations": "the relations that change are others",
    "heartbeats": "other streams had a heartbeat",
}


def check_fingerprint(spark: SparkSession, checkpoint: str, fingerprint: dict[str, Any]) -> str:
    """Write the fingerprint beside a new checkpoint; refuse a checkpoint that has another.

    Gives the checkpoint's identity, by which a sink knows the query again after a restart.
    """
    place = Folder(spark, checkpoint)
    stored = place.read(NAME)
    if stored is None:
        if place.exists("offsets"):
            raise CheckpointError(f"{checkpoint} is the checkpoint of a query that is not Sash's: choose another place")
        identity = uuid.uuid4().hex
        place.write(NAME, json.dumps({**fingerprint, "identity": identity}, indent=2))
        return identity
    known = json.loads(stored)
    for part, reason in _REASONS.items():
        if known.get(part) != fingerprint.get(part):
            raise CheckpointError(
                f"checkpoint {checkpoint} cannot be used: {reason} (then: {_shown(known.get(part))}, now: "
                f"{_shown(fingerprint.get(part))}). Put that back, or start with a new checkpoint"
            )
    return str(known["identity"])


def _shown(value: Any) -> str:
    """In one line."""
    return " ".join(value.split()) if isinstance(value, str) else repr(value)
