"""Spark's packages for other systems, which it does not bring along: Kafka's connector.

Jars that were fetched into the environment (`scripts/setup-kafka.sh`) are taken; otherwise Spark downloads the package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyspark

from sash.errors import OptionError
from sash.sql.source import did_you_mean

PACKAGES = ("kafka",)

_KAFKA = "org.apache.spark:spark-sql-kafka-0-10_2.13"
_JARS, _DOWNLOADED = "spark.jars", "spark.jars.packages"

MISSING = (
    "Spark's Kafka package is not loaded: run `sash run --with kafka job.sql` (and likewise `sash sql --with kafka`), or make "
    'the session in Python with SparkSession.builder.config("{name}", "{value}")'
)
"""The message about a session without the connector."""


def package_settings(packages: Iterable[str], conf: Mapping[str, str]) -> dict[str, str]:
    """The settings with which Spark is started with these packages, given the user's settings, which are kept."""
    found = dict(conf)
    for package in dict.fromkeys(packages):
        if package not in PACKAGES:
            raise OptionError(
                f"there is no package {package}{did_you_mean(package, PACKAGES)}; use {', '.join(PACKAGES)}"
            )
        jars = kafka_jars()
        name, values = (_JARS, map(str, jars)) if jars else (_DOWNLOADED, iter([kafka_package()]))
        found[name] = ",".join([*filter(None, [found.get(name)]), *values])
    return found


def kafka_jars() -> list[Path]:
    """The jars of Kafka's connector in this environment; empty if they were not fetched."""
    return sorted(Path(sys.prefix, "kafka", "connector").glob("*.jar"))


def kafka_package() -> str:
    """The name by which Spark downloads Kafka's connector."""
    return f"{_KAFKA}:{pyspark.__version__}"


def missing_kafka() -> str:
    """What to do about a session without the connector."""
    return MISSING.format(name=_DOWNLOADED, value=kafka_package())
