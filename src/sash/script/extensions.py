"""What may add functions and data sources to Spark's own: settings, and the environment in which it would start.

Without Spark, what is added is unknown, so that a name which is not in the list of `sql/spark_library.py` may exist.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sash.errors import OptionError
from sash.sql.source import did_you_mean
from sash.sql.spark_library import library

_FUNCTIONS = re.compile(r"spark\.(sql\.extensions|plugins|sql\.catalog(Implementation|\.\S+))\b")
_SOURCES = re.compile(r"spark\.(jars|plugins|sql\.extensions|(driver|executor)\.extraClassPath)|--(packages|jars)\b")
_INSTALLATIONS = ("SPARK_HOME", "SPARK_CLASSPATH", "SPARK_DIST_CLASSPATH", "PYSPARK_GATEWAY_PORT")
"""Variables of an environment in which Spark may have more jars than its package for Python."""

PACKAGED = (
    "kafka",
    "avro",
    "delta",
    "iceberg",
    "hudi",
    "mongodb",
    "cassandra",
    "bigquery",
    "snowflake",
    "kinesis",
    "pulsar",
)
"""Data sources of common packages, which are taken to be loaded."""

_WITHOUT_PROVIDER = ("memory",)
"""Sinks that Spark has without listing them among its data sources."""


@dataclass(frozen=True)
class Extensions:
    """Whether Spark may have more functions, and more data sources, than those of its own."""

    functions: bool = False
    sources: bool = False

    @staticmethod
    def of(conf: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> Extensions:
        """Those that the settings, the file of Spark's defaults, or the environment may add.

        >>> Extensions.of({"spark.jars.packages": "io.delta:delta-spark_2.13:4.0.0"}, {})
        Extensions(functions=False, sources=True)
        """
        settings = "\n".join((*conf, _defaults(environment), environment.get("PYSPARK_SUBMIT_ARGS", "")))
        installed = any(environment.get(name) for name in _INSTALLATIONS)
        return Extensions(bool(_FUNCTIONS.search(settings)), installed or bool(_SOURCES.search(settings)))

    def check_sink(self, name: str, own: tuple[str, ...]) -> None:
        """Raise OptionError if no changes can be written to what has that name; `own` are the sinks of Sash."""
        known = [*own, *_WITHOUT_PROVIDER, *(source for source, (_, writable) in library().sources.items() if writable)]
        self._check(
            "sink", name, known, [source for source, (_, writable) in library().sources.items() if not writable]
        )

    def check_stream(self, name: str, own: tuple[str, ...]) -> None:
        """Raise OptionError if no stream can be read from what has that name; `own` are the sources that Sash knows."""
        known = [*own, *(source for source, (readable, _) in library().sources.items() if readable)]
        self._check(
            "source", name, known, [source for source, (readable, _) in library().sources.items() if not readable]
        )

    def check_table(self, name: str, own: tuple[str, ...]) -> None:
        """Raise OptionError if there is no data source of that name; `own` are the sources that Sash knows."""
        self._check("source", name, [*own, *library().sources], [])

    def _check(self, what: str, name: str, known: list[str], refused: list[str]) -> None:
        """Refuse a name that is known not to fit, is misspelt, or that nothing could have added."""
        if "." in name or name.lower() in (*known, *PACKAGED):
            return
        if name.lower() in refused:
            use = "written to" if what == "sink" else "read as a stream"
            raise OptionError(f"Spark's {name} cannot be {use}; use {', '.join(sorted(set(known)))}")
        hint = did_you_mean(name, [*known, *PACKAGED])
        if hint or not self.sources:
            others = (
                f"; there are {', '.join(sorted(set(known)))}, and those of packages (--conf spark.jars.packages=...)"
            )
            raise OptionError(f"there is no {what} {name}{hint or others}")


def _defaults(environment: Mapping[str, str]) -> str:
    """The file of Spark's default settings, or nothing."""
    home = environment.get("SPARK_HOME")
    folder = environment.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    file = None if folder is None else Path(folder, "spark-defaults.conf")
    lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.is_file() else []
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))
