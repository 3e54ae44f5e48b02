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

_JOB_WIDE = {
    "state": "its state was written in another format",
    "shards": "it was written with another number of shards",
    "heartbeats": "it was written with heartbeats on other streams",
}
_OF_QUERIES = ("sql", "options", "mode", "key")
"""What must not change of a query; its sink may, and so may what happens if it fails."""


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


def check_manifest(folder: Folder, manifest: Mapping[str, Any]) -> str:
    """Write the manifest of a new checkpoint, or raise CheckpointError if the stored one is of another job.

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
        found = differences(known, manifest)
        if found:
            raise CheckpointError(
                f"the job has changed since it wrote checkpoint {folder.location}: {'; '.join(found)}. Restore it, or start "
                "with a new checkpoint"
            )
    written = {**manifest, "format": FORMAT, "identity": identity}
    if written != known:
        folder.write(NAME, json.dumps(written, indent=2))
    return str(identity)


def differences(known: Mapping[str, Any], manifest: Mapping[str, Any]) -> list[str]:
    """What has changed of a job so that the state of its checkpoint does not fit, in words."""
    found = [f"{text} ({known[p]!r}, now {manifest[p]!r})" for p, text in _JOB_WIDE.items() if known[p] != manifest[p]]
    before = {query["name"]: query for query in known["queries"]}
    now = {query["name"]: query for query in manifest["queries"]}
    templates = {query.get("alike") for query in known["queries"]} & {
        query.get("alike") for query in manifest["queries"]
    }
    templates.discard(None)
    # Alike queries come and go, and change their constants, as long as their template has any.
    before = {name: query for name, query in before.items() if query.get("alike") not in templates}
    now = {name: query for name, query in now.items() if query.get("alike") not in templates}
    found += [f"query {name} is new" for name in now if name not in before]
    found += [f"query {name} is gone" for name in before if name not in now]
    for name in now.keys() & before.keys():
        parts = [part for part in _OF_QUERIES if before[name][part] != now[name][part]]
        found += [f"query {name} has another {part}" for part in parts]
    return found


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
