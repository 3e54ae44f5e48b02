"""What becomes of a job's state when the job changes: which logs and stages are kept, derived or new, and why.

A log is *kept* if the new plan has a channel of the same identity, *derived* if its rows can be computed from logs of the
old plan, and otherwise starts empty. A stage is kept if it computes the same over inputs that are all there; derived if all
its inputs are there, so that its state can be rebuilt from them; and otherwise new: its answer is complete once its windows
have filled. Stages that keep snapshots of their arrays are kept only as they are.

With BACKFILL, a log that lacks rows of a query is *filled*: all its rows come from its stream, which is read again. Other
stages that read the log are rebuilt from it, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sash.change.derivation import Derivation, derivations
from sash.change.stored import AT_ONCE, Completeness, History, JobPlan, StoredState, latest
from sash.errors import OptionError
from sash.physical.channels import (
    Channel,
    Reader,
    ScanRows,
    StageRows,
    StartClock,
    needs_snapshots,
    queries_of_stages,
)
from sash.physical.nodes import StreamLeg, UpdateLeg
from sash.physical.strategies.registry import strategy_of
from sash.plan.nodes import Rows
from sash.time import BEGINNING

Verdict = Literal["kept", "derived", "new"]


@dataclass(frozen=True)
class ChannelChange:
    """Where the rows of a new channel come from: old logs, the restored stage below it, or nowhere.

    `clock` is the clock of its source; None if the stage below determines it. `since` is when it began to have every row.
    `filled` are the readers for which the rows are read from the stream again.
    """

    channel: Channel
    verdict: Verdict
    sources: tuple[Derivation, ...]
    restored: bool
    clock: int | None
    since: int
    filled: frozenset[Reader] = frozenset()


@dataclass(frozen=True)
class StageChange:
    """What becomes of a stage, from when its answer is complete, and why it is not kept.

    `filled` says how a new stage is complete at once; `refilled` is whether rows of it are read from a stream again.
    """

    stage: int
    identity: str
    verdict: Verdict
    complete: Completeness
    reason: str
    filled: tuple[str, ...] = ()
    refilled: bool = False


@dataclass(frozen=True)
class Classification:
    """The changes of all channels and stages of a new plan, in its order."""

    old: JobPlan
    new: JobPlan
    channels: tuple[ChannelChange, ...]
    stages: tuple[StageChange, ...]

    @property
    def reshaped(self) -> bool:
        """Whether rows move to other shards."""
        return self.old.shards != self.new.shards


def classify(old: JobPlan, new: JobPlan, stored: StoredState) -> Classification:
    """Compare the new plan with the old one and with what the checkpoint holds."""
    return _Classifier(old, new, stored).run()


class _Classifier:
    def __init__(self, old: JobPlan, new: JobPlan, stored: StoredState) -> None:
        self._old = old
        self._new = new
        self._stored = stored
        self._reshaped = old.shards != new.shards
        self._channels: dict[int, ChannelChange] = {}
        self._stages: list[StageChange] = []
        self._streams: dict[str, int] = {}
        self._backfill = [names & new.backfill for names in queries_of_stages(new.physical)]
        for channel in old.channels.channels:
            log = stored.logs.get(channel.identity)
            if channel.stream is not None and log is not None:
                name = channel.stream.lower()
                self._streams[name] = max(self._streams.get(name, int(BEGINNING)), log.clock)

    def run(self) -> Classification:
        for stage in self._new.physical.stages:
            inputs = self._new.channels.inputs_of(stage.index)
            for channel, _ in inputs.values():
                if channel.index not in self._channels:
                    self._channels[channel.index] = self._filled(self._channel(channel))
            change = self._stage(stage.index, inputs)
            self._check_backfill(change, inputs)
            self._stages.append(change)
        channels = tuple(self._channels[channel.index] for channel in self._new.channels.channels)
        return Classification(self._old, self._new, channels, tuple(self._stages))

    def _channel(self, channel: Channel) -> ChannelChange:
        found = derivations(self._old.channels, channel, self._new.channels)
        found = [one for one in found if one.old.identity in self._stored.logs and self._fits(one, channel)]
        below = channel.source.stage if isinstance(channel.source, StageRows) else None
        if below is not None and (not found or self._stages[below].verdict != "kept"):
            return ChannelChange(channel, "derived", (), True, None, int(BEGINNING))
        if not found:
            clock = self._streams.get((channel.stream or "").lower(), int(BEGINNING))
            return ChannelChange(channel, "new", (), False, clock, self._now(channel, clock))
        logs = [self._stored.logs[one.old.identity] for one in found]
        since = max(log.since for log in logs)
        served = frozenset[Reader]().union(*(one.served for one in found))
        clock = max(log.clock for log in logs)
        if len(served) < len(channel.readers):
            since = max(since, self._now(channel, clock))
        elif channel.horizon > min(one.old.horizon for one in found):
            since = max(since, clock - min(one.old.horizon for one in found))
        kept = found[0].program is None
        return ChannelChange(channel, "kept" if kept else "derived", tuple(found), False, clock, since)

    def _filled(self, change: ChannelChange) -> ChannelChange:
        """The change, or one that reads the stream again if rows of a query with BACKFILL are missing."""
        channel, clock = change.channel, change.clock
        if channel.stream is None or channel.owner is not None or clock is None or clock <= BEGINNING:
            return change
        missing = []
        for reader in channel.readers:
            if self._backfill[reader.stage]:
                complete, _ = self._input(change, reader)
                if complete.instant is None or complete.instant > clock:
                    missing.append(reader)
        if not missing:
            return change
        history = self._history(channel.stream)
        if history.refused:
            queries = sorted(self._backfill[missing[0].stage])
            raise OptionError(
                f"BACKFILL of {', '.join(queries)}: stream {channel.stream} cannot be read again: {history.refused}"
            )
        return ChannelChange(channel, "new", (), False, clock, int(BEGINNING), frozenset(missing))

    def _check_backfill(self, change: StageChange, inputs: dict[int, tuple[Channel, Reader]]) -> None:
        """Refuse a BACKFILL of arrays, unless they begin with their streams."""
        queries = sorted(self._backfill[change.stage])
        arrays = needs_snapshots(self._new.physical, self._new.physical.stages[change.stage])
        if (
            queries
            and arrays
            and change.verdict == "new"
            and any(self._begun(channel) for channel, _ in inputs.values())
        ):
            raise OptionError(
                f"BACKFILL of {', '.join(queries)} is not possible: windows without an end, and joins with relations that "
                "change, keep arrays, which cannot be filled"
            )

    def _begun(self, channel: Channel) -> bool:
        if isinstance(channel.source, StageRows):
            below = self._stages[channel.source.stage]
            return below.verdict != "new" or below.refilled
        return (self._channels[channel.index].clock or int(BEGINNING)) > BEGINNING

    def _history(self, stream: str) -> History:
        return self._stored.histories.get(stream.lower(), History(refused="nothing is known of its source"))

    def _fits(self, one: Derivation, channel: Channel) -> bool:
        """Whether the log may be used: behind a snapshot it holds only the last rows, and the snapshot fits its shards."""
        if channel.owner is None or not self._reshaped:
            return True
        stage = self._stored.stages.get(self._new.channels.stages[channel.owner])
        return stage is not None and not stage.snapshot

    def _now(self, channel: Channel, clock: int) -> int:
        """The time from which on a log that starts now has every row: those within the slack may have come already, and those
        of partitions that are ahead."""
        if clock <= BEGINNING or channel.stream is None:
            return int(BEGINNING)
        name = channel.stream.lower()
        return max(clock, self._stored.fastest.get(name, clock)) + self._new.slack.get(name, 0) + 1

    def _stage(self, index: int, inputs: dict[int, tuple[Channel, Reader]]) -> StageChange:
        stage, identity = self._new.physical.stages[index], self._new.channels.stages[index]
        parts: list[Completeness] = []
        reasons: list[str] = []
        for channel, reader in inputs.values():
            complete, reason = self._input(self._channels[channel.index], reader)
            parts.append(complete)
            if reason:
                reasons.append(reason)
        complete, reason = latest(parts) if parts else AT_ONCE, "; ".join(dict.fromkeys(reasons))
        below = [self._stages[c.source.stage] for c, _ in inputs.values() if isinstance(c.source, StageRows)]
        known = identity in self._old.channels.stages
        if needs_snapshots(self._new.physical, stage):
            there = known and all(self._channels[channel.index].verdict == "kept" for channel, _ in inputs.values())
            if there and all(one.verdict == "kept" for one in below):
                return StageChange(index, identity, "kept", self._known(identity), "")
            if known and any(one.refilled for one in below):
                names = sorted(o.query for o in self._new.physical.outputs if o.stage == index) or ["a query"]
                raise OptionError(
                    f"BACKFILL is not possible: {names[0]} has rows of the same log, and {_ARRAYS}: make it a query of "
                    "another job"
                )
            return StageChange(index, identity, "new", complete, reason or _ARRAYS)
        reached = all(part.instant is not None and part.instant <= self._start(inputs) for part in parts)
        filled = self._filling(index, inputs)
        refilled = any(self._channels[channel.index].filled for channel, _ in inputs.values())
        refilled = refilled or any(one.refilled for one in below)
        if filled or (not reached and reasons):
            return StageChange(index, identity, "new", complete, reason, filled, refilled)
        if refilled:
            return StageChange(index, identity, "derived", complete, "its rows are read again", (), refilled)
        lags = self._reshaped and strategy_of(stage.strategy).paced
        if known and not lags and self._sends_alike(index) and all(one.verdict == "kept" for one in below):
            return StageChange(index, identity, "kept", self._known(identity), "")
        return StageChange(index, identity, "derived", complete, reason)

    def _sends_alike(self, index: int) -> bool:
        """Whether a stage knows how the rows were sent that other stages have in their logs.

        Where some carry expiration times, the shard that sent a row knows. Otherwise all must go on as they were.
        """
        old = self._old.channels.stages.index(self._new.channels.stages[index])
        strict, was = (
            plan.stages[n].root.expiry == "strict"
            for plan, n in ((self._new.physical, index), (self._old.physical, old))
        )
        return strict == was and not (strict and self._reshaped)

    def _filling(self, index: int, inputs: dict[int, tuple[Channel, Reader]]) -> tuple[str, ...]:
        """How a stage with BACKFILL whose rows are not kept gets them."""
        found: list[str] = []
        for channel, reader in inputs.values():
            change = self._channels[channel.index]
            if isinstance(channel.source, StageRows):
                found += self._stages[channel.source.stage].filled
            elif reader in change.filled:
                assert channel.stream is not None
                found.append(f"by backfill from {self._history(channel.stream).what} of stream {channel.stream}")
            elif self._backfill[index] and self._from_first_row(change):
                found.append(f"as stream {channel.stream} is read from its first row")
        return tuple(dict.fromkeys(found))

    def _from_first_row(self, change: ChannelChange) -> bool:
        """Whether the job has not read anything of a stream, and gets all of its rows."""
        stream, clock = change.channel.stream, change.clock
        unread = clock is not None and clock <= BEGINNING and not change.sources
        return stream is not None and unread and self._history(stream).whole

    def _known(self, identity: str) -> Completeness:
        stored = self._stored.stages.get(identity)
        return AT_ONCE if stored is None or stored.complete is None else stored.complete

    def _start(self, inputs: dict[int, tuple[Channel, Reader]]) -> int:
        """The clock of a stage: its slowest input's, apart from updates that do not hold it back."""
        stages = self._new.physical.stages
        awaited = [c for c, reader in inputs.values() if not stages[reader.stage].inputs[reader.input].leaf.follows]
        clocks = [self._channels[channel.index].clock for channel in awaited]
        return min((clock for clock in clocks if clock is not None), default=int(BEGINNING))

    def _input(self, change: ChannelChange, reader: Reader) -> tuple[Completeness, str]:
        """From when an input has all rows of its window, and why not at once."""
        channel = change.channel
        if isinstance(channel.source, StageRows):
            below = self._stages[channel.source.stage]
            return below.complete, below.reason if below.verdict == "new" else ""
        if isinstance(channel.source, StartClock):
            return AT_ONCE, ""
        leaf = self._new.physical.stages[reader.stage].inputs[reader.input].leaf
        leg = self._new.physical.legs[leaf.leg or 0]
        source = next((one for one in change.sources if reader in one.served), None)
        if isinstance(leg, UpdateLeg):
            if source is not None or not self._was_updated(leg.stream):
                return AT_ONCE, ""
            return Completeness(), f"earlier updates of relation {leg.stream} are not kept as rows"
        assert isinstance(leg, StreamLeg)
        if change.filled or (self._backfill[reader.stage] and self._from_first_row(change)):
            return AT_ONCE, ""
        if source is not None:
            log = self._stored.logs[source.old.identity]
            if isinstance(leg.window, Rows) and log.since > BEGINNING:
                return Completeness(), ""
            if channel.kind != "time":
                return AT_ONCE, ""
            if log.since <= BEGINNING and leaf.horizon <= source.old.horizon:
                return AT_ONCE, ""
            since = max(log.since, log.clock - source.old.horizon)
            longer = leaf.horizon > source.old.horizon
            reason = f"its window over {leg.stream} is longer than the kept rows go back" if longer else ""
            return Completeness(since + leaf.horizon), reason
        reason = self._missing(channel, reader, leg.stream)
        if isinstance(leg.window, Rows):
            return Completeness(), reason
        if channel.kind == "endless":
            return AT_ONCE, f"{reason}; it counts from now on"
        if change.clock is None or change.clock <= BEGINNING:
            return Completeness(None, leaf.horizon), reason
        return Completeness(self._now(channel, change.clock) + leaf.horizon), reason

    def _was_updated(self, relation: str) -> bool:
        return any(isinstance(leg, UpdateLeg) and leg.stream == relation for leg in self._old.physical.legs)

    def _missing(self, channel: Channel, reader: Reader, stream: str) -> str:
        """Why no old log has the rows of a reader."""
        alike = [one for one in self._old.channels.channels if (one.stream or "").lower() == stream.lower()]
        if not alike:
            return f"no rows of stream {stream} are kept"
        if channel.kind != "time" or not isinstance(channel.source, ScanRows):
            return f"the kept rows of stream {stream} are of another kind"
        return f"the kept rows of stream {stream} lack rows or columns that it needs"


_ARRAYS = "its state is kept as arrays, which serve only an equal query with the same number of shards"


def moved_bytes(changed: Classification, stored: StoredState) -> int:
    """The bytes of the logs and snapshots that the new plan takes over."""
    logs = {one.old.identity for channel in changed.channels for one in channel.sources}
    stages: Sequence[str] = [one.identity for one in changed.stages if one.verdict == "kept"]
    return sum(stored.logs[name].size for name in logs) + sum(
        stored.stages[name].size for name in stages if name in stored.stages
    )
