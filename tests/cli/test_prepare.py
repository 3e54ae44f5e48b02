"""After `sash prepare`, usual queries compile nothing, and Java starts with the archive that it made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from numba.core.dispatcher import Dispatcher

from sash.cli.demo.job import QUERY
from sash.cli.demo.queries import DEMO_QUERIES, RELATIONS
from sash.cli.prepare import compile_loops
from sash.testing import replay
from tests.cli.command import python


def loaded() -> set[tuple[str, str, str]]:
    """The loops that are compiled in this process, and for which types."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("sash.")]
    loops = {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}
    return {
        (loop.py_func.__module__, loop.py_func.__qualname__, str(types)) for loop in loops for types in loop.signatures
    }


@pytest.fixture(scope="module")
def prepared() -> set[tuple[str, str, str]]:
    """The loops that are compiled after `sash prepare`."""
    compile_loops()
    return loaded()


def test_the_story_compiles_nothing_that_is_not_prepared(prepared: set[tuple[str, str, str]]) -> None:
    rows = [{"ts": ts / 10, "sensor": str(ts), "value": float(ts)} for ts in range(500)]
    schemas = {"readings": "ts TIMESTAMP, sensor STRING, value DOUBLE"}
    assert replay(QUERY, streams={"readings": rows}, schemas=schemas, unit="s").changes
    assert loaded() == prepared


@pytest.mark.parametrize("name", DEMO_QUERIES)
def test_queries_compile_nothing_that_is_not_prepared(name: str, prepared: set[tuple[str, str, str]]) -> None:
    rows = [{"ts": ts, "item_id": ts % 3, "store_id": ts % 5, "price": float(ts)} for ts in range(30)]
    tables = {
        relation: [dict(zip((part.split()[0] for part in columns.split(", ")), row, strict=True)) for row in rows_of]
        for relation, (columns, rows_of) in RELATIONS.items()
        if relation in DEMO_QUERIES[name].relations
    }
    schema = "ts TIMESTAMP, item_id INT, store_id INT, price DOUBLE"
    streams = [stream for stream, _ in DEMO_QUERIES[name].streams]
    result = replay(
        DEMO_QUERIES[name].sql,
        streams={stream: rows[: 30 - 10 * number] for number, stream in enumerate(streams)},
        relations=tables,
        schemas=dict.fromkeys(streams, schema),
        unit="s",
    )
    assert result.changes
    assert loaded() == prepared


_START = """
import sys
from pathlib import Path
from sash.spark.class_archive import java_options
from sash.spark.session import embedded_session
archive, log = Path(sys.argv[1]), sys.argv[2]
options = f"-XX:+UseParallelGC -Xss16m {java_options(archive)} -Xlog:class+load:file={log}"
embedded_session(extra={"spark.driver.extraJavaOptions": options}).stop()
"""


@pytest.mark.spark
def test_java_loads_spark_from_the_archive(tmp_path: Path) -> None:
    archive, log = tmp_path / "classes.jsa", tmp_path / "classes.log"
    made = python(
        "-c",
        f"from pathlib import Path\nfrom sash.cli.prepare import archive_classes\narchive_classes(Path({str(archive)!r}))",
    )
    assert made.returncode == 0, made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["classes.jsa"]
    started = python("-c", _START, str(archive), str(log))
    assert started.returncode == 0, started.stderr
    lines = log.read_text().splitlines()
    context = next(line for line in lines if " org.apache.spark.SparkContext source:" in line)
    assert context.endswith("shared objects file (top)")
    assert sum(line.endswith("shared objects file (top)") for line in lines) > 5_000
