"""The jobs in a checkpoint, as their manifests describe them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sash.spark.folders import Folder


def stored_jobs(checkpoint: Folder) -> dict[str, list[str]]:
    """The names of the jobs that have written to a checkpoint, with those of their queries."""
    from sash.spark.job_manifest import CURRENT, read_manifest

    found: dict[str, list[str]] = {}
    for name in checkpoint.names():
        folder = checkpoint.inside(name)
        generation = folder.read(CURRENT)
        manifest = None if generation is None else read_manifest(folder.inside(generation.strip()))
        if manifest is not None:
            found[name] = [query["name"] for query in manifest["queries"]]
    return found
