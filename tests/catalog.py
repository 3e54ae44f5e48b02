"""A catalog for tests whose tables, in the memory of Spark's driver, MERGE INTO supports: one of Spark's own tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

NAME, OTHER = "shelf", "rack"
"""Two such catalogs: in each, one statement can write at a time."""

_CATALOG = "org.apache.spark.sql.connector.catalog.SharedTablesInMemoryRowLevelOperationTableCatalog"
"""Its tables are shared by all sessions of a driver, also by that of a streaming query."""


def catalog_settings() -> dict[str, str]:
    """The settings of a session with the catalog; empty if its jar was not fetched."""
    jars = ",".join(map(str, Path(sys.prefix, "catalog").glob("*.jar")))
    return {"spark.jars": jars, **{f"spark.sql.catalog.{name}": _CATALOG for name in (NAME, OTHER)}} if jars else {}


def need_catalog() -> None:
    """Skip the test if the catalog's jar was not fetched."""
    if not catalog_settings():
        pytest.skip("the jar of Spark's tests is not in the environment (scripts/setup-catalog.sh .venv/catalog)")
