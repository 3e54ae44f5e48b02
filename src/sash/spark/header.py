"""The header of a shard's state: what its logs and snapshots are, by the identities of channels and stages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sash.errors import CheckpointError
from sash.physical.channels import Channels
from sash.time import BEGINNING

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

FORMAT = 7
"""The version of header, log and snapshot. Snapshots hold the operators' arrays, so a change of those is a new format."""

READABLE = (6, FORMAT)
"""The formats that this version reads. A header of an older one is converted."""

HEADER = (-1,)
"""The header's key among the chunks: a second state variable would take Spark some 12 ms per batch to set up."""

Header = dict[str, Any]
"""`next`: the last number of a chunk; `nonce`: of the arena; `channels` and `stages`: a record each, by identity."""


def read_header(chunks: MapState, channels: Channels) -> Header:
    """The header of a shard; a new one if it has no state."""
    stored = chunks.getValue(HEADER)
    if stored is None:
        return {"format": FORMAT, "next": 0, "nonce": None, "channels": {}, "stages": {}}
    header: Header = json.loads(bytes(stored[0]))
    if header["format"] not in READABLE:
        raise CheckpointError(
            f"the state was written in format {header['format']}, but this version of Sash reads formats "
            f"{' and '.join(map(str, READABLE))}: start the query with a new checkpoint, or run it with the version that "
            "wrote this one"
        )
    return header if header["format"] == FORMAT else _converted(header, channels)


def write_header(chunks: MapState, header: Header) -> None:
    """Store the header."""
    chunks.updateValue(HEADER, (json.dumps(header, separators=(",", ":")).encode(),))


def _converted(old: Header, channels: Channels) -> Header:
    """A header of format 6, which has a record per number of a stage, with a log for each of its inputs."""
    header: Header = {"format": FORMAT, "next": old["next"], "nonce": "converted", "channels": {}, "stages": {}}
    for number, record in old["stages"].items():
        clocks, reached = record["clocks"], record.get("reached")
        header["stages"][channels.stages[int(number)]] = {
            "clocks": clocks,
            "floor": int(BEGINNING),
            "reached": reached,
            "snapshot": record["snapshot"],
        }
        for index, (channel, _) in channels.inputs_of(int(number)).items():
            header["channels"][channel.identity] = {
                "log": record["logs"][index],
                "clock": clocks[index],
                "reported": record["heard"][index],
            }
    return header
