"""The manifest of a job's checkpoint: the job that wrote it, so that another one cannot resume its state unnoticed.

A job's folder has a file CURRENT with the name of its generation, a folder with Spark's checkpoint, the manifest
`sash-job.json`, the ledger, the outbox and the list of parked queries. A change of the job makes a new generation.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from sash.errors import CheckpointError
from sash.spark.folders import Folder

NAME = "sash-job.json"
CURRENT = "CURRENT"
DEFAULT_NAME = "job"
"""The name of a job that was given none, and of its folder."""
FORMAT = 1

_OF_GENERATION = ("first_batch", "incomplete", "seed")
"""What the manifest has of the generation, besides the job."""


def generation_folder(spark: SparkSession, job: str) -> Folder:
    """The folder of the job's current generation; that of a new job is g1."""
    folder = Folder(spark, job)
    name = (folder.read(CURRENT) or "").strip()
    if not name:
        name = "g1"
        folder.write(CURRENT, name)
    return folder.inside(name)


def read_manifest(folder: Folder) -> dict[str, Any] | None:
    """The manifest of a generation; None if it is new."""
    text = folder.read(NAME)
    return None if text is None else dict(json.loads(text))


def first_batch(folder: Folder) -> int:
    """The number that sinks get for the first batch of a generation: numbers go on when a job changes."""
    return int((read_manifest(folder) or {}).get("first_batch", 0))


def check_manifest(folder: Folder, manifest: Mapping[str, Any]) -> str:
    """Write the manifest, or raise CheckpointError if the checkpoint is not one of a job that this version can run.

    Returns the job's identity, by which sinks recognize it after a restart.
    """
    known = read_manifest(folder)
    if known is None:
        identity = uuid.uuid4().hex
        if folder.exists("offsets"):
            raise CheckpointError(
                f"{folder.location} is the checkpoint of a query that Sash did not start: choose another directory"
            )
    else:
        identity = known["identity"]
        if known["state"] != manifest["state"]:
            raise CheckpointError(
                f"the state of {folder.location} was written in format {known['state']}, and this version of Sash writes "
                f"format {manifest['state']}: run the version that wrote it, or start with a new checkpoint"
            )
    of_generation = {name: known[name] for name in _OF_GENERATION if known is not None and name in known}
    written = {**manifest, **of_generation, "format": FORMAT, "identity": identity}
    if written != known:
        folder.write(NAME, json.dumps(written, indent=2))
    return str(identity)


def without_secrets(options: Mapping[str, Any]) -> dict[str, str]:
    """The options of a sink as text, without the passwords in URLs.

    >>> without_secrets({"url": "postgresql://me:secret@host/shop", "table": "t", "password": "x"})
    {'url': 'postgresql://...@host/shop', 'table': 't', 'password': '...'}
    """
    return {
        name: "..."
        if re.search(r"password|secret|token|jaas", name, re.IGNORECASE)
        else re.sub(r"://[^@/\s]+@", "://...@", str(value))
        for name, value in options.items()
    }
