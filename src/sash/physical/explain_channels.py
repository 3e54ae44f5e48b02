"""How rows reach the stages of a job, for EXPLAIN JOB: one scan per stream, and the channels with their logs and readers."""

from __future__ import annotations

from sash.display import counted
from sash.physical.channels import (
    Channel,
    Channels,
    LegRows,
    LookupRows,
    Reader,
    Scan,
    ScanRows,
    StageRows,
    StartClock,
)
from sash.physical.common_rows import CommonRows, common_rows, kept_apart, kept_once
from sash.physical.nodes import PhysicalPlan, StreamLeg
from sash.plan.describe import describe
from sash.plan.tree import duration_text
from sash.sizes import size_text

_INDENT = "  "


def channel_lines(plan: PhysicalPlan, channels: Channels) -> list[str]:
    """The scans of a plan, then its channels, each with the stages that read it."""
    lines = [line for scan in channels.scans for line in _scan(scan)]
    common = common_rows(plan, channels)
    for channel in channels.channels:
        lines.append(
            f"Channel {channel.index}: {_rows(channel, plan, channels)}{_keys(channel, channels)}; {_log(channel)}"
        )
        lines += [f"{_INDENT}{_reader(reader, channel, plan)}" for reader in channel.readers]
        if channel.index in common:
            lines.append(f"{_INDENT}{_common(plan, common[channel.index])}")
    return lines


def _common(plan: PhysicalPlan, common: CommonRows) -> str:
    """The rows that the channel keeps for several windows, and what that saves."""
    windows = sorted(zip((reader.stage for reader in common.readers), common.lengths, strict=True))
    readers = ", ".join(f"{stage} ({duration_text(length)})" for stage, length in windows)
    once, apart = (size_text(round(size)) for size in (kept_once(plan, common), kept_apart(plan, common)))
    return (
        f"rows of {duration_text(common.horizon)} kept once for stages {readers}: {once} instead of {apart} (estimate)"
    )


def _scan(scan: Scan) -> list[str]:
    lines = [f"Scan of {scan.stream.name}, read once: {', '.join(describe(one.expression) for one in scan.columns)}"]
    lines += [
        f"{_INDENT}filter {number}: {' AND '.join(map(describe, parts))}" for number, parts in enumerate(scan.filters)
    ]
    return lines


def _rows(channel: Channel, plan: PhysicalPlan, channels: Channels) -> str:
    match channel.source:
        case ScanRows() as source:
            accepted = "" if source.everything else _filters(source.filters)
            return f"rows of {channels.scans[source.scan].stream.name}{accepted}"
        case LookupRows() as source:
            accepted = "" if source.filter is None else _filters((source.filter,))
            return f"rows of {channels.scans[source.scan].stream.name}{accepted}, looked up in tables"
        case LegRows() as source:
            leg = plan.legs[source.leg]
            return f"rows of leg {source.leg}" if isinstance(leg, StreamLeg) else f"updates of {leg.relation.name}"
        case StartClock():
            return "the start of the job, for constants alone"
        case StageRows() as source:
            return f"changes of stage {source.stage}" + (", in the same shard" if source.local else "")


def _filters(numbers: tuple[int, ...]) -> str:
    return f" that pass filter {' or '.join(map(str, numbers))}"


def _keys(channel: Channel, channels: Channels) -> str:
    if not channel.keys:
        return ""
    if isinstance(channel.source, ScanRows):
        scan = channels.scans[channel.source.scan]
        return " by " + ", ".join(
            describe(scan.columns[channel.source.columns[key]].expression) for key in channel.keys
        )
    return f" by {counted(len(channel.keys), 'column', 'columns')}"


def _log(channel: Channel) -> str:
    """What the log of the channel holds."""
    match channel.kind:
        case "time":
            return f"log of {duration_text(channel.horizon)}"
        case "rows":
            return "log of the last rows"
        case "endless":
            return "log, or a snapshot of its stage"
        case "stamped" | "explicit":
            return "log of the live rows"


def _reader(reader: Reader, channel: Channel, plan: PhysicalPlan) -> str:
    queries = ", ".join(plan.queries_of(plan.stages[reader.stage]))
    if reader.filter is None or not isinstance(channel.source, ScanRows):
        return f"stage {reader.stage}, for {queries}"
    return f"stage {reader.stage}, for {queries}: filter {channel.source.filters[reader.filter]}"
