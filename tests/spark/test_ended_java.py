"""What is told when Spark's JVM has ended, by the code with which it did."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark import SparkContext

from sash.spark.errors import to_sash_error
from sash.spark.session import _session_settings


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (52, "Java ran out of memory"),
        (56, "its driver was not reached for ten minutes, as after a pause of the machine: start again"),
        (1, "Spark's Java process ended with exit code 1, possibly because the machine ran out of memory"),
        (-9, "Spark's Java process was killed, possibly because the machine ran out of memory"),
    ],
)
def test_the_exit_code_tells_why_java_has_ended(monkeypatch: pytest.MonkeyPatch, code: int, reason: str) -> None:
    gateway = SimpleNamespace(proc=SimpleNamespace(wait=lambda _: code))
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setattr("sash.spark.errors.spark_log", lambda: SimpleNamespace(read=lambda: "", record=lambda _: None))
    assert reason in str(to_sash_error(ConnectionRefusedError("Connection refused")))


@pytest.mark.parametrize(
    ("master", "long"), [("local[2,4]", True), ("local", True), ("local-cluster[2,1,1024]", False)]
)
def test_an_executor_in_the_same_process_is_not_lost(master: str, long: bool) -> None:
    """With a limit of five seconds, a JVM that is stopped for eight cannot register its executor again."""
    limit = _session_settings(2, master, None).get("spark.storage.blockManagerHeartbeatTimeoutMs")
    assert (limit is not None and int(limit) > 86_400_000) is long
