"""A changelog: the changes of every batch as Parquet files in a folder `batch=N`, for any reader of Parquet.

A batch is written to a hidden folder, which is then renamed: so it is in the log as a whole or not at all, and only once
even if it is repeated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sash.errors import CatalogError
from sash.plan.options import Mode
from sash.spark.folders import Folder, local_path
from sash.spark.sinks.base import ADDED, OutputSpec, Sink, WriteBatch, refuse_added

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = "batch"
_OWNER = "_sash.json"


class ChangeLog(Sink):
    """Writes to the folder `path`, on any file system that Spark supports."""

    name = "changelog"
    needed = ("path",)
    exclusive = True

    def mode(self, chosen: str | None, keyed: bool) -> Mode:
        return super().mode(chosen or "changes", keyed)

    def check(self, output: OutputSpec) -> None:
        refuse_added("the changelog", output.names, (*ADDED, _PARTITION))

    @property
    def _path(self) -> str:
        return str(self.options["path"]).rstrip("/")

    def connect(self, output: OutputSpec) -> None:
        owner = local_path(f"{self._path}/{_OWNER}")
        if owner is not None and owner.exists() and owner.read_text() != output.identity:
            raise _taken(self._path)

    def open(self, output: OutputSpec) -> WriteBatch:
        self.check(output)
        path = self._path

        def write(batch: DataFrame, number: int) -> None:
            folder = Folder(batch.sparkSession, path)
            owner = folder.read(_OWNER)
            if owner is None:
                folder.write(_OWNER, output.identity)
            elif owner != output.identity:
                raise _taken(path)
            if batch.isEmpty():
                return
            draft, final = f".{_PARTITION}-{number}", f"{_PARTITION}={number}"
            batch.write.mode("overwrite").parquet(f"{path}/{draft}")
            folder.rename(draft, final)

        return write


def _taken(path: str) -> CatalogError:
    return CatalogError(
        f"{path} holds the changelog of another query or another checkpoint: choose another path, or remove it"
    )
