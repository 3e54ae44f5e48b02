from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.postgres import programs, server

pytestmark = pytest.mark.spark


def test_a_query_runs_over_spark_connect_and_what_cannot_is_refused_by_name(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'sash[connect]'")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with server() if programs() else nullcontext("") as postgres:
        done = subprocess.run(
            [sys.executable, "-m", "tests.spark.connect_driver", str(tmp_path), postgres],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["changes"] == [["+", "a", 2.5], ["+", "a", 3.0], ["+", "b", 1.0], ["-", "a", 2.5]]
    answer = [["a", 3.0], ["b", 1.0]]
    sinks = {
        "parquet": found["changes"],
        "function": found["changes"],
        "delta": answer,
        "postgres": answer,
        "table": answer,
        "iceberg": answer,
        "kafka": answer,
    }
    assert {"parquet", "function", "delta", "iceberg"} <= found["sinks"].keys()
    assert found["sinks"] == {name: sinks[name] for name in found["sinks"]}
    assert "it belongs to another query" in found["refused"].pop("checkpoint")
    assert {name: text.split(" needs a session with a JVM")[0] for name, text in found["refused"].items()} == {
        "live": "live()", "job": "a job", "keep": "keep()",
        "progress": "the progress of a query", "metrics": "on_progress() or metrics()",
    }  # fmt: skip
