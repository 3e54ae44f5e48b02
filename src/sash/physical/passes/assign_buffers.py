"""Describe the buffer of every input: how its rows end, and how many partitions a calendar of them has.

The buffer follows from the kind of the edge: FIFO where rows expire in order, a calendar where they do not, hash tables
where retractions end them (paper 5, 5.3). This is the last pass: what it sets is what is built and what EXPLAIN prints.
"""

from __future__ import annotations

from dataclasses import replace

from sash.operators.base import Edge, Expiry
from sash.physical.facts import facts_of
from sash.physical.nodes import Distinct, Operation, Physical, valid_rows
from sash.physical.passes.base import PlannerSettings, rebuild

_ROWS_PER_PARTITION = 32
_FEWEST_PARTITIONS, _MOST_PARTITIONS = 16, 1 << 16
_DEFAULT_WIDTH = 1_000_000


def assign_buffers(root: Physical, settings: PlannerSettings) -> Physical:
    """Set `buffers` of every operator."""

    def change(_old: Operation, node: Operation) -> Physical:
        return replace(node, buffers=tuple(_buffer(node, child, settings.options.partitions) for child in node.inputs))

    return rebuild(root, change)


def _buffer(node: Operation, child: Physical, wanted: int | None) -> Edge:
    expiry: Expiry = facts_of(node).endless if child.expiry == "mono" else child.expiry
    # DISTINCT keeps its output rows in the calendar, others their input.
    partitions = partitions_of(node if isinstance(node, Distinct) else child, wanted)
    width = max(1, child.horizon // max(partitions - 2, 1)) if child.horizon else _DEFAULT_WIDTH
    return Edge(tuple(field.dtype for field in child.schema), expiry, partitions, width)


def partitions_of(node: Physical, wanted: int | None) -> int:
    """The number of partitions of a calendar with the edge's rows: as wanted, else so that few rows share a partition."""
    if wanted is not None:
        return wanted
    return int(min(max(valid_rows(node) / _ROWS_PER_PARTITION, _FEWEST_PARTITIONS), _MOST_PARTITIONS))
