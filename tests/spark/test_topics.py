"""Topics that were created again, by what the broker says of them; a real broker is in test_kafka_broker.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sash.spark.topics as checked
from sash.errors import CheckpointError, JobChangedError
from sash.spark.folders import Folder
from sash.spark.topics import check_topics, keep_topics

SOURCES = ["heartbeat of s", "s", "t"]
OFFSETS = ['{"timestamp":5}', '{"a":{"0":7,"1":3},"b":{"0":2}}', '{"a":{"0":7,"1":3}}']


class Brokers:
    """What brokers say of topics, instead of them."""

    def __init__(self) -> None:
        self.topics: dict[str, checked._Topic] = {}
        self.asked: list[str] = []

    def describe(self, _: Any, __: Any, names: list[str]) -> dict[str, checked._Topic]:
        self.asked = names
        return {name: topic for name, topic in self.topics.items() if name in names}


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    made = Brokers()
    made.topics = {"a": topic("A", 7, 3), "b": topic("B", 2)}
    reader = checked._Reader({"subscribe": "a, b"})
    monkeypatch.setattr(checked, "_readers", lambda _: {"s": reader})
    monkeypatch.setattr(checked, "_described", made.describe)
    return made


def topic(identity: str, *ends: int) -> checked._Topic:
    bounds = {str(partition): end for partition, end in enumerate(ends)}
    return checked._Topic(identity, dict.fromkeys(bounds, 0), bounds)


def generation(folder: Path, pending: bool = False) -> Folder:
    """A generation with a committed batch 4, and perhaps a batch that has begun."""
    for log in ("offsets", "commits"):
        (folder / log).mkdir()
        (folder / log / "4").write_text("\n".join(["v1", "{}", *OFFSETS]))
    if pending:
        (folder / "offsets" / "5").write_text("v1\n{}")
    return Folder(None, str(folder))  # type: ignore[arg-type]  (only folders that are not local need a session)


def check(folder: Folder, on_change: Any = "refuse") -> dict[str, dict[str, str]]:
    found = check_topics(None, folder, SOURCES, {}, on_change)  # type: ignore[arg-type]
    keep_topics(folder, found)
    return found


def reached(folder: Folder) -> list[Any]:
    return [json.loads(line) for line in str(folder.inside("offsets").read("4")).split("\n")[2:]]


def test_topics_that_are_the_same_are_left_alone(brokers: Brokers, tmp_path: Path) -> None:
    folder = generation(tmp_path, pending=True)
    assert check(folder) == {"s": {"a": "A", "b": "B"}}
    brokers.topics["a"] = topic("A", 70, 3, 5)
    check(folder)
    del brokers.topics["b"]
    check(folder, "apply")
    assert reached(folder) == [json.loads(line) for line in OFFSETS]
    assert folder.inside("offsets").names() == ["4", "5"]
    brokers.topics["b"] = topic("B2", 2)
    with pytest.raises(JobChangedError, match="the topic b"):
        check(folder)


def test_a_topic_with_another_identity_begins_anew(brokers: Brokers, tmp_path: Path) -> None:
    """Only the topic of that stream, in the partitions that it has now."""
    folder = generation(tmp_path, pending=True)
    check(folder)
    brokers.topics["a"] = checked._Topic("A2", {"0": 1}, {"0": 900})
    with pytest.raises(JobChangedError, match="the topic a of stream s is not the one that the job has read"):
        check(folder)
    check(folder, "apply")
    assert reached(folder)[1:] == [{"a": {"0": 1}, "b": {"0": 2}}, {"a": {"0": 7, "1": 3}}]
    assert folder.inside("offsets").names() == ["4"], "the batch that had begun read the old topic"
    assert check(folder)["s"]["a"] == "A2", "it is known now"


def test_a_topic_that_has_fewer_records_than_were_read_is_another(brokers: Brokers, tmp_path: Path) -> None:
    folder = generation(tmp_path)
    brokers.topics["b"] = topic("B", 1)
    with pytest.raises(JobChangedError, match="the topic b of stream s"):
        check(folder)


def test_a_batch_that_sinks_may_have_cannot_be_forgotten(brokers: Brokers, tmp_path: Path) -> None:
    folder = generation(tmp_path, pending=True)
    check(folder)
    brokers.topics["a"] = topic("A2", 9, 9)
    (tmp_path / "state" / "0" / "0").mkdir(parents=True)
    (tmp_path / "state" / "0" / "0" / "6.changelog").write_text("")
    with pytest.raises(CheckpointError, match="while batch 5 was written"):
        check(folder, "apply")
    (tmp_path / "state" / "0" / "0" / "6.changelog").rename(tmp_path / "state" / "0" / "0" / "5.changelog")
    check(folder, "apply")
    assert reached(folder)[1]["a"] == {"0": 0, "1": 0}


def test_a_stream_that_may_lose_records_goes_on_by_itself(
    brokers: Brokers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = generation(tmp_path)
    check(folder)
    monkeypatch.setattr(checked, "_readers", lambda _: {"s": checked._Reader({"failondataloss": "FALSE"})})
    brokers.topics["a"] = topic("A2", 9, 9)
    check(folder)
    assert brokers.asked == ["a", "b"], "those that were read"
    assert reached(folder)[1]["a"] == {"0": 0, "1": 0}
