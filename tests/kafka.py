"""A Kafka broker for tests: one node on loopback, with its own data. Its jars and Spark's connector come by Maven."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sash.spark.packages import kafka_jars

_WHY = "Kafka's jars are not in the environment (make test fetches them with Maven: scripts/setup-kafka.sh .venv/kafka)"


def fetched() -> bool:
    """Whether the connector and the broker are there."""
    return bool(kafka_jars()) and _broker_jars().is_dir()


def _broker_jars() -> Path:
    return Path(sys.prefix, "kafka", "broker")


class Broker:
    """A broker that can be stopped and started again, and what tests do with its topics."""

    def __init__(self, home: Path) -> None:
        self._home = home
        port, controller = _free_ports(2)
        self.servers = f"127.0.0.1:{port}"
        self._running: subprocess.Popen[bytes] | None = None
        settings = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "log.dirs": home / "logs",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "log.retention.ms": -1,  # tests have records of 1970
        }
        (home / "server.properties").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def create(self) -> None:
        made = subprocess.run(
            [*_java("kafka.tools.StorageTool"), "format", "-t", "c2FzaC10ZXN0cy1rYWZrYQ", "-c", self._home / "server.properties"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr

    def start(self) -> None:
        with (self._home / "log").open("ab") as log:
            self._running = subprocess.Popen(
                [*_java("kafka.Kafka"), self._home / "server.properties"], stdout=log, stderr=log
            )
        for _ in range(120):
            assert self._running.poll() is None, (self._home / "log").read_text()
            try:
                self._admin.list_topics(timeout=1)
            except self._errors:
                continue
            return
        raise AssertionError((self._home / "log").read_text())

    def stop(self) -> None:
        if self._running is not None:
            self._running.send_signal(signal.SIGKILL)
            self._running.wait(30)
            self._running = None

    def create_topic(self, name: str, partitions: int = 1, **settings: str) -> None:
        from confluent_kafka.admin import NewTopic

        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin = self._admin
        (done,) = admin.create_topics([NewTopic(name, partitions, 1, config=config)]).values()
        done.result(60)

    def recreate_topic(self, name: str, partitions: int = 1) -> None:
        """Delete a topic and create it again, with other records to come."""
        admin = self._admin
        (done,) = admin.delete_topics([name]).values()
        done.result(60)
        for _ in range(1_000):
            try:
                return self.create_topic(name, partitions)
            except self._errors:  # it is still being deleted
                admin.list_topics(timeout=1)
        raise AssertionError(f"the broker does not delete {name}")

    def produce(self, topic: str, records: list[Mapping[str, Any]]) -> None:
        """Append records: `value`, and if wanted `key`, `partition`, `timestamp` in milliseconds, `headers`."""
        from confluent_kafka import Producer

        producer = Producer({"bootstrap.servers": self.servers})
        for record in records:
            producer.produce(topic, **record)
        assert producer.flush(60) == 0

    def records(self, topic: str) -> list[Any]:
        """All records of a topic, partition by partition."""
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "tests", "enable.partition.eof": True})
        try:
            partitions = consumer.list_topics(topic, timeout=60).topics[topic].partitions
            found = []
            for partition in sorted(partitions):
                consumer.assign([TopicPartition(topic, partition, 0)])
                while True:
                    record = consumer.poll(60)
                    assert record is not None, "the broker does not answer"
                    if record.error() is not None:  # the end of the partition
                        break
                    found.append(record)
            return found
        finally:
            consumer.close()

    @property
    def _admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    @property
    def _errors(self) -> type[Exception]:
        from confluent_kafka import KafkaException

        found: type[Exception] = KafkaException
        return found


@contextmanager
def broker() -> Iterator[Broker]:
    """A running broker. Skips where its jars could not be fetched."""
    if not fetched():
        pytest.skip(_WHY)
    pytest.importorskip("confluent_kafka")
    home = Path(tempfile.mkdtemp(prefix="sash-kafka-"))
    made = Broker(home)
    try:
        made.create()
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(home, ignore_errors=True)


def _java(main: str) -> list[str]:
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    return [java, "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{_broker_jars()}/*", main]


def _free_ports(number: int) -> list[int]:
    """Ports that are free now; all are held until the last is found, so that they differ."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()
