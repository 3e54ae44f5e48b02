"""Catalogs for tests whose tables MERGE INTO supports: one of Spark's own tests, or a real one, which SASH_CATALOG names.

The tables of the first are in the memory of Spark's driver. `scripts/try-tables.sh` runs the tests with Iceberg and Delta.
"""

from __future__ import annotations

import os
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

KIND = os.environ.get("SASH_CATALOG", "memory")
NAME, OTHER = ("spark_catalog", "spark_catalog") if KIND == "delta" else ("shelf", "rack")
"""Two catalogs: in one of Spark's tests, one statement can write at a time. Delta is only in Spark's own catalog."""

_MEMORY = "org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog"
"""Its tables are shared by all sessions of a driver, also by that of a streaming query."""


@cache
def catalog_settings() -> dict[str, str]:
    """The settings of a session with the catalog; empty if its jars were not fetched."""
    folder = "catalog" if KIND == "memory" else f"catalog-{KIND}"
    jars = ",".join(map(str, Path(sys.prefix, folder).glob("*.jar")))
    return {"spark.jars": jars, **_catalogs()} if jars else {}


def _catalogs() -> dict[str, str]:
    if KIND == "delta":
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.sql.sources.default": "delta",
        }
    names = [f"spark.sql.catalog.{name}" for name in (NAME, OTHER)]
    if KIND == "iceberg":
        extensions = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        of_type = {f"{name}.type": "hadoop" for name in names}
        places = {f"{name}.warehouse": tempfile.mkdtemp(prefix="sash-iceberg-") for name in names}
        return {
            "spark.sql.extensions": extensions,
            **dict.fromkeys(names, "org.apache.iceberg.spark.SparkCatalog"),
            **of_type,
            **places,
        }
    return dict.fromkeys(names, _MEMORY)


def need_catalog() -> None:
    """Skip the test if the catalog's jars were not fetched."""
    if not catalog_settings():
        pytest.skip("the jar of Spark's tests is not in the environment (scripts/setup-catalog.sh .venv/catalog)")
