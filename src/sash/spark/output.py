"""What a job outputs, as messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sash.physical.nodes import PhysicalPlan
from sash.plan.options import Mode
from sash.spark.messages import BLOB_BYTES, LARGE, METRICS, OUTPUT, SMALL, Message
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode_all, encode, pieces, size_of

SMALL_BYTES = 4 << 20
"""What one shard outputs for a query in a batch is small up to this many bytes."""


@dataclass(frozen=True)
class OutputMode:
    """How the changes of a query are written; `key` is unique among its rows at every instant, if it is known."""

    mode: Mode = "changes"
    key: tuple[int, ...] | None = None


def output_messages(changes: ChangeBatch, output: int, shard: int, label: int, clock: int) -> Iterator[Message]:
    """The changes of a query, in one message if they are small."""
    kind = SMALL if size_of(changes) <= SMALL_BYTES else LARGE
    for number, piece in enumerate([changes] if kind == SMALL else pieces(changes, BLOB_BYTES)):
        blob = encode(piece).to_pybytes()
        yield Message(label, OUTPUT, kind, shard, number, output, clock, blob=blob)


def read_output(table: pa.Table, plan: PhysicalPlan) -> dict[int, ChangeBatch]:
    """The changes in rows of a job's frame, by the position of their output in the plan, sorted by time."""
    rows = table.filter(pc.equal(table["channel"], OUTPUT)).select(["output", "sender", "seq", "blob"])
    blobs: dict[int, list[tuple[int, int, pa.Buffer]]] = {}
    for output, sender, seq, blob in zip(
        *(column.to_pylist() for column in rows.columns[:3]), rows["blob"], strict=True
    ):
        blobs.setdefault(output, []).append((sender, seq, blob.as_buffer()))
    found = {}
    for output, parts in sorted(blobs.items()):
        dtypes = [field.dtype for field in plan.stages[plan.outputs[output].stage].root.schema]
        ordered = [blob for _, _, blob in sorted(parts, key=lambda part: part[:2])]
        found[output] = decode_all(ordered, dtypes).sorted()
    return found


def read_metrics(table: pa.Table) -> list[str]:
    """The batch metrics in rows of a job's frame, as JSON."""
    found: list[str] = table.filter(pc.equal(table["channel"], METRICS))["metrics"].to_pylist()
    return found
