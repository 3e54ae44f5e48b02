"""Output modes: which of a batch's changes are written; and what a job outputs, as messages.

`changes` writes every change at every instant. `net` writes the net changes of the batch, as a table needs them. `upsert`
writes the last change of every key: `+` to write the row, `-` to delete it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.netting import net_all
from sash.physical.nodes import PhysicalPlan
from sash.plan.options import Mode
from sash.spark.messages import BLOB_BYTES, LARGE, METRICS, OUTPUT, SMALL, Message
from sash.state.changes import ChangeBatch
from sash.state.encoding import decode_all, encode, pieces, size_of
from sash.state.hashing import hash_rows
from sash.state.interner import Interner
from sash.state.memory import HeapMemory, Ints

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


def reduce_changes(changes: ChangeBatch, mode: Mode, key: tuple[int, ...] | None) -> ChangeBatch:
    """Return the changes that the mode writes; `key` is unique among the answer's rows at every instant, if it is known."""
    match mode:
        case "changes":
            return changes
        case "net":
            return net_all(changes if key is None else changes.take(_first_and_last(changes, key)))
        case "upsert":
            assert key is not None
            return changes.take(_last(_codes(changes, key)))


def _codes(changes: ChangeBatch, key: tuple[int, ...]) -> Ints:
    """Number the keys; an answer of at most one row has the empty key."""
    if not key:
        return np.zeros(len(changes), np.int64)
    codes, _ = Interner(HeapMemory()).intern(*hash_rows([changes.columns[column] for column in key], len(changes)))
    return codes


def _last(codes: Ints) -> Ints:
    """Return the positions of the last change of every key, in order."""
    if not len(codes):
        return codes
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    last[codes] = np.arange(len(codes))
    return np.sort(last[last >= 0])


def _first_and_last(changes: ChangeBatch, key: tuple[int, ...]) -> Ints:
    """Return the positions where a key's row of before the batch is retracted, and where its row of after it is added.

    A key has one row at a time, so its changes alternate between `-` and `+`, and those in between cancel out.
    """
    codes = _codes(changes, key)
    last = _last(codes)
    first = len(codes) - 1 - _last(codes[::-1])
    chosen = np.concatenate([first[changes.sign[first] < 0], last[changes.sign[last] > 0]])
    return np.sort(chosen)
