"""What all tests share: how random tests run, and one Spark session, started by the first test that asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A busy machine must not fail a test: no deadlines and no health checks, some of which measure time. Examples are the
# same in every run.
settings.register_profile(
    "sash", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("sash")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local session in UTC; tests that use it are marked `spark`.

    Java compiles once and quickly: each test runs new plans for a few batches, which better code would come too late for.
    """
    from sash.spark.packages import package_settings
    from sash.spark.session import embedded_session
    from tests.catalog import catalog_settings
    from tests.kafka import fetched

    settings = {
        **catalog_settings(),
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.driver.extraJavaOptions": "-Xss16m -XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    session = embedded_session(cores=2, extra=package_settings(["kafka"], settings) if fetched() else settings)
    yield session
    session.stop()
