"""Topics of Kafka that were deleted and created again, although a job has read them: they are found when the job starts.

Spark only compares offsets. It fails if a topic has fewer records than were read, and otherwise goes on in the middle of the new
topic. So the identity that the broker gives a topic is kept with the checkpoint. To go on, the offsets of the last committed
batch become the beginning of the new topic; what the windows hold stays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sash.errors import CheckpointError, JobChangedError
from sash.spark.connect import is_connect
from sash.spark.errors import SPARK_ERRORS
from sash.spark.folders import Folder
from sash.spark.generations import last_batch
from sash.spark.offsets import source_offsets
from sash.spark.sources.inputs import StreamSource
from sash.spark.uncommitted import forget_batch, was_computed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.spark.job_change import OnChange

KEPT = "topics.json"
"""The file of a generation with the identities of the topics that its job reads, by stream."""
_TIMEOUT = "10000"
Ids = dict[str, dict[str, str]]


@dataclass(frozen=True)
class _Topic:
    """What the broker says of a topic: its identity, and where its partitions begin and end."""

    identity: str
    begins: Mapping[str, int]
    ends: Mapping[str, int]

    def has(self, read: Mapping[str, int]) -> bool:
        """Whether it has the records that were read."""
        return all(offset <= self.ends.get(partition, 0) for partition, offset in read.items())


@dataclass(frozen=True)
class _Reader:
    """A stream that reads topics, and the options of Spark's connector."""

    options: Mapping[str, str]

    def topics(self) -> list[str]:
        """The topics that its options name."""
        assigned = json.loads(self.options.get("assign", "{}"))
        return [*filter(None, (one.strip() for one in self.options.get("subscribe", "").split(","))), *assigned]

    @property
    def tolerant(self) -> bool:
        """Whether it goes on when records are gone."""
        return self.options.get("failondataloss", "true").lower() == "false"


def check_topics(
    spark: SparkSession,
    folder: Folder,
    sources: Sequence[str],
    streams: Mapping[str, StreamSource],
    on_change: OnChange,
) -> Ids:
    """Compare the topics of the streams with those that the job of a generation has read, and return their identities.

    `sources` are those of the generation's offsets. If a topic is another one, JobChangedError is raised, unless `on_change` or
    the stream's failOnDataLoss allows to go on: then the checkpoint is changed, so that the job reads the new topic.
    """
    readers = {} if is_connect(spark) else _readers(streams)
    if not readers:
        return {}
    known: Ids = json.loads(folder.read(KEPT) or "{}")
    committed, _ = last_batch(folder)
    read = _read(folder, sources, committed)
    found: Ids = {}
    for name, reader in readers.items():
        mine = {topic: offsets for topic, offsets in read.get(name, {}).items() if isinstance(offsets, dict)}
        try:
            topics = _described(spark, reader.options, sorted({*reader.topics(), *mine}))
        except (*SPARK_ERRORS, TypeError):  # without brokers or their client: Spark tries again, or says so
            found[name] = known.get(name, {})
            continue
        found[name] = {**known.get(name, {}), **{topic: one.identity for topic, one in topics.items()}}
        for topic, offsets in mine.items():
            now = topics.get(topic)
            if now is None or (known.get(name, {}).get(topic, now.identity) == now.identity and now.has(offsets)):
                continue
            _go_on(folder, sources, name, topic, now, allowed=on_change == "apply" or reader.tolerant)
    return found


def keep_topics(folder: Folder, found: Ids) -> None:
    """Keep the identities with a generation."""
    if found and json.loads(folder.read(KEPT) or "{}") != found:
        folder.write(KEPT, json.dumps(found, indent=2))


def _go_on(folder: Folder, sources: Sequence[str], stream: str, topic: str, now: _Topic, *, allowed: bool) -> None:
    """Let the next batch read a topic from its beginning."""
    committed, pending = last_batch(folder)
    assert committed is not None
    if not allowed:
        raise JobChangedError(
            f"the topic {topic} of stream {stream} is not the one that the job has read: it was deleted and created again. "
            'Start the job with on_change="apply" (sash run --on-change apply): it reads the new topic from its beginning, and '
            "keeps the rows that its windows hold; or use a new checkpoint"
        )
    if pending:
        if was_computed(folder, committed + 1):
            raise CheckpointError(
                f"the topic {topic} of stream {stream} was deleted and created again while batch {committed + 1} was written. "
                "Some sinks may have it, and it cannot be repeated: use a new checkpoint, and empty the sinks"
            )
        forget_batch(folder, committed + 1)
    log = folder.inside("offsets")
    version, settings, *offsets = (log.read(str(committed)) or "").split("\n")
    for position, source in enumerate(sources):
        if source == stream:
            offsets[position] = json.dumps({**json.loads(offsets[position]), topic: now.begins}, separators=(",", ":"))
    log.remove(f".{committed}.crc")
    log.write(str(committed), "\n".join([version, settings, *offsets]))
    logging.getLogger("sash").warning(
        "the topic %s of stream %s was deleted and created again: the job reads the new one from its beginning",
        topic,
        stream,
    )


def _read(folder: Folder, sources: Sequence[str], committed: int | None) -> dict[str, dict[str, Any]]:
    """The offsets that the streams had reached in the last committed batch, by topic."""
    log = None if committed is None or not sources else folder.inside("offsets").read(str(committed))
    found = {}
    for name, offset in ({} if log is None else source_offsets(log, sources)).items():
        try:
            offsets = json.loads(offset)
        except ValueError:  # a source that has not been read
            continue
        if isinstance(offsets, dict):
            found[name] = offsets
    return found


def _readers(streams: Mapping[str, StreamSource]) -> dict[str, _Reader]:
    """The streams that read topics."""
    found = {name: _options(source.frame) for name, source in streams.items()}
    return {name: _Reader(options) for name, options in found.items() if options is not None}


def _options(frame: DataFrame) -> dict[str, str] | None:
    """The options of the topics that a DataFrame reads, with names in lower case; None if it reads none."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()  # noqa: SLF001  (PySpark does not tell where a stream comes from)
    for number in range(leaves.size()):
        leaf = leaves.apply(number)
        if leaf.getClass().getSimpleName() != "StreamingRelationV2" or str(leaf.sourceName()).lower() != "kafka":
            continue
        entries = leaf.extraOptions().asCaseSensitiveMap().entrySet()
        return {str(entry.getKey()).lower(): str(entry.getValue()) for entry in entries}
    return None


def _described(spark: SparkSession, options: Mapping[str, str], names: Iterable[str]) -> dict[str, _Topic]:
    """What the brokers say of topics; those that do not exist are left out."""
    jvm: Any = spark._jvm  # noqa: SLF001  (Kafka's own client, which Spark's connector brings along)
    settings = jvm.java.util.HashMap()
    settings.put("default.api.timeout.ms", _TIMEOUT)
    settings.put("request.timeout.ms", _TIMEOUT)
    for name, value in options.items():
        if name.startswith("kafka."):
            settings.put(name.removeprefix("kafka."), value)
    api = jvm.org.apache.kafka
    with closing(api.clients.admin.Admin.create(settings)) as admin:
        wanted = jvm.java.util.ArrayList()
        existing = set(admin.listTopics().names().get())
        for name in names:
            if name in existing:
                wanted.add(name)
        found = {}
        for name, topic in admin.describeTopics(wanted).allTopicNames().get().items():
            partitions = [int(one.partition()) for one in topic.partitions()]
            bounds = []
            for spec in (api.clients.admin.OffsetSpec.earliest(), api.clients.admin.OffsetSpec.latest()):
                of_each = jvm.java.util.HashMap()
                for partition in partitions:
                    of_each.put(api.common.TopicPartition(name, partition), spec)
                answer = admin.listOffsets(of_each).all().get()
                bounds.append({str(at.partition()): int(info.offset()) for at, info in answer.items()})
            found[str(name)] = _Topic(str(topic.topicId().toString()), *bounds)
        return found
