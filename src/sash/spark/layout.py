"""The layout of a plan on shards: its channels, the levels of its stages, and the labels of the shards of each.

Stages are grouped into levels: a stage is one level above the highest stage that it reads by messages, and all stages of a
level are one stateful operator of Spark. An input that reads an earlier stage locally is on the level of that stage, unless
another of its inputs is higher; then it gets messages, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from sash.physical.channels import Channel, Channels, StageRows, queries_of_stages
from sash.physical.nodes import PhysicalPlan
from sash.physical.plan_channels import channels_of

_MASK, _SEED = 0xFFFFFFFF, 42


@dataclass(frozen=True)
class Suspended:
    """The queries of a job that do not run, or that begin again, by name.

    The stages that only `standing` queries need do not run; what they read is logged, so that they can go on where they
    were. For queries that are `unevaluated`, too, expressions above sources that may fail are not evaluated. The logs do
    not wait for queries that are `lost`: they are `rebuilt` from the rows that are live when they go on, or, if
    `emptied`, from none.
    """

    standing: frozenset[str] = frozenset()
    unevaluated: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    rebuilt: frozenset[str] = frozenset()
    emptied: frozenset[str] = frozenset()

    def without(self, queries: frozenset[str]) -> Suspended:
        """The same, where neither operators nor expressions of these queries run."""
        return Suspended(
            self.standing | queries, self.unevaluated | queries, self.lost, self.rebuilt - queries, self.emptied
        )


NONE_SUSPENDED = Suspended()


@dataclass(frozen=True)
class Target:
    """A channel that gets rows, and the labels of the shards that read it, by which its rows are partitioned."""

    channel: int
    keys: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """The channels of a plan, its levels, and the labels of each stage's shards.

    The stages in `parked` do not run; what they would read is still logged for them. The logs wait for them, unless they are
    `lost`. A stage that was parked goes on where it was, unless it is `rebuilt` or `emptied`. `queries` has, per stage, the
    names of the queries that need it. `shared` is whether it is the layout of a job.
    """

    plan: PhysicalPlan
    channels: Channels
    levels: tuple[int, ...]
    labels: tuple[tuple[int, ...], ...]
    parked: frozenset[int]
    lost: frozenset[int]
    rebuilt: frozenset[int]
    emptied: frozenset[int]
    queries: tuple[frozenset[str], ...]
    shared: bool

    @property
    def height(self) -> int:
        """The number of levels."""
        return max(self.levels) + 1

    def stages_of(self, level: int) -> list[int]:
        """The stages of a level, in the order in which they run."""
        return [stage for stage, found in enumerate(self.levels) if found == level]

    def levels_of(self, channel: Channel) -> set[int]:
        """The levels on which a channel is read."""
        return {self.levels[reader.stage] for reader in channel.readers}

    def in_memory(self, channel: Channel, level: int) -> bool:
        """Whether there are readers on this level that get the rows in memory, without messages."""
        source = channel.source
        made_here = isinstance(source, StageRows) and source.local and self.levels[source.stage] == level
        return made_here and level in self.levels_of(channel)

    def sent_to(self, channel: Channel) -> list[int]:
        """The levels that get messages of a channel."""
        return sorted(level for level in self.levels_of(channel) if not self.in_memory(channel, level))

    def read_by(self, channel: Channel, level: int) -> tuple[int, ...]:
        """The labels of the shards in which stages on this level read a channel."""
        stages = [reader.stage for reader in channel.readers if self.levels[reader.stage] == level]
        return tuple(dict.fromkeys(label for stage in stages for label in self.labels[stage]))

    def target(self, channel: Channel) -> Target:
        """Where the rows of a channel go: with keys, one shard each; without, every shard that reads them."""
        labels = dict.fromkeys(label for reader in channel.readers for label in self.labels[reader.stage])
        return Target(channel.index, channel.keys, tuple(labels))

    def queries_of(self, channel: Channel) -> list[str]:
        """The queries that need a channel."""
        return sorted(set().union(*(self.queries[reader.stage] for reader in channel.readers)))

    def counted(self) -> dict[str, int]:
        """The channel that counts the late rows of each stream: the first that reads it."""
        first: dict[str, int] = {}
        for channel in self.channels.channels:
            if channel.stream is not None:
                first.setdefault(channel.stream, channel.index)
        return first


def layout_of(plan: PhysicalPlan, shards: int, share: bool, suspended: Suspended = NONE_SUSPENDED) -> Layout:
    """The layout of a plan on a number of shards."""
    channels = channels_of(plan, share)
    queries = queries_of_stages(plan)

    def needed_only_by(some: frozenset[str]) -> frozenset[int]:
        return frozenset(stage for stage, names in enumerate(queries) if names and names <= some)

    def needed_by(some: frozenset[str]) -> frozenset[int]:
        return frozenset(stage for stage, names in enumerate(queries) if names & some)

    parked = needed_only_by(suspended.standing)
    labels = _labels(plan, channels, shards, share)
    return Layout(
        plan, channels, _levels(plan), labels, parked, parked & needed_only_by(suspended.lost),
        needed_by(suspended.rebuilt), needed_by(suspended.emptied), queries, share,
    )  # fmt: skip


def _levels(plan: PhysicalPlan) -> tuple[int, ...]:
    levels: list[int] = []
    for stage in plan.stages:
        below = [
            levels[given.leaf.stage] + (0 if given.local else 1)
            for given in stage.inputs
            if given.leaf.stage is not None
        ]
        levels.append(max(below, default=0))
    return tuple(levels)


def _labels(plan: PhysicalPlan, channels: Channels, shards: int, share: bool) -> tuple[tuple[int, ...], ...]:
    """Assign shards to stages.

    Stages with a single shard get different ones: alone by number, in a job by identity, so that another query moves none.
    """
    every = shard_labels(shards)
    labels: list[tuple[int, ...]] = []
    for stage, identity in zip(plan.stages, channels.stages, strict=True):
        local = [given.leaf.stage for given in stage.inputs if given.local and given.leaf.stage is not None]
        if not stage.single:
            labels.append(every)
        elif local:
            labels.append(labels[local[0]])
        else:
            labels.append((every[(int(identity.split("+")[0], 16) if share else stage.index) % shards],))
    return tuple(labels)


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (32 - by))) & _MASK


def _mix(state: int, word: int) -> int:
    word = _rotate((word * 0xCC9E2D51) & _MASK, 15) * 0x1B873593 & _MASK
    return (_rotate(state ^ word, 13) * 5 + 0xE6546B64) & _MASK


def spark_hash(value: int) -> int:
    """Spark SQL's hash(value) of a BIGINT: Murmur3 over its two halves.

    >>> spark_hash(0)
    -1670924195
    """
    state = _mix(_mix(_SEED, value & _MASK), (value >> 32) & _MASK) ^ 8
    state = ((state ^ (state >> 16)) * 0x85EBCA6B) & _MASK
    state = ((state ^ (state >> 13)) * 0xC2B2AE35) & _MASK
    state ^= state >> 16
    return state - 2**32 if state >= 2**31 else state


def shard_labels(shards: int) -> tuple[int, ...]:
    """The label of every shard: the smallest keys that Spark's hash partitioning puts in a partition each.

    Spark sends a key to partition pmod(hash(key), P). With the keys 0, 1, 2 ... several shards would share a partition
    while others stay empty.

    >>> shard_labels(4)
    (2, 0, 14, 3)
    """
    found: dict[int, int] = {}
    label = 0
    while len(found) < shards:
        found.setdefault(spark_hash(label) % shards, label)
        label += 1
    return tuple(found[shard] for shard in range(shards))
