"""A change log: every batch's changes as Parquet files in a folder `batch=N`, which any reader of Parquet understands.

Written beside, then renamed: a batch is there as a whole or not at all, and once, also if it is written again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sash.errors import CatalogError
from sash.spark.folders import Folder
from sash.spark.output import Mode
from sash.spark.stores.base import Answer, Store, Write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = "batch"
_OWNER = "_sash.json"


class ChangeLog(Store):
    """`path` is the folder, on any file system that Spark knows."""

    name = "changelog"
    needed = ("path",)

    def mode(self, asked: str | None, keyed: bool) -> Mode:
        return super().mode(asked or "changes", keyed)

    def open(self, answer: Answer) -> Write:
        if any(name.lower() == _PARTITION for name in answer.names):
            raise CatalogError("a change log has a column batch of its own: give the answer's another name with AS")
        path = str(self.options["path"]).rstrip("/")

        def write(batch: DataFrame, number: int) -> None:
            folder = Folder(batch.sparkSession, path)
            owner = folder.read(_OWNER)
            if owner is None:
                folder.write(_OWNER, answer.identity)
            elif owner != answer.identity:
                raise CatalogError(
                    f"{path} has the change log of another query or of another checkpoint: choose another path, or "
                    "remove it"
                )
            if batch.isEmpty():
                return
            draft, final = f".{_PARTITION}-{number}", f"{_PARTITION}={number}"
            batch.write.mode("overwrite").parquet(f"{path}/{draft}")
            folder.rename(draft, final)

        return write
