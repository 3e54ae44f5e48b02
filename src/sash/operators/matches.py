"""From matching pairs to output rows: the join condition is tested, then the kind of join selects rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.operators.scalar import evaluate
from sash.plan.expressions import Expression
from sash.plan.nodes import JoinKind
from sash.state.changes import ChangeBatch
from sash.state.columns import gather
from sash.state.memory import Ints


def joined_rows(
    batch: ChangeBatch, kind: JoinKind, owners: Ints, partners: Sequence[pa.Array], condition: Expression | None
) -> tuple[ChangeBatch, Ints]:
    """The output rows in the order of the batch, and the row of the batch that each comes from.

    Pair n is of row `owners[n]` (ascending) and the n-th row of `partners`. LEFT pads a row without a pair with NULLs,
    SEMI keeps rows with a pair and ANTI rows without one.
    """
    if condition is not None and len(owners):
        pairs = [*gather(batch.columns, owners), *partners]
        passed = pc.fill_null(evaluate(condition, pairs, len(owners)), False)
        keep = np.flatnonzero(passed.to_numpy(zero_copy_only=False))
        owners, partners = owners[keep], gather(partners, keep)
    if kind == "inner":
        rows = batch.take(owners)
        return rows.with_columns([*rows.columns, *partners]), owners
    matched = np.zeros(len(batch), np.bool_)
    matched[owners] = True
    if kind in ("semi", "anti"):
        chosen = np.flatnonzero(matched if kind == "semi" else ~matched)
        return batch.take(chosen), chosen
    alone = np.flatnonzero(~matched)
    everyone = np.concatenate((owners, alone))
    order = np.argsort(everyone, kind="stable")
    padding = np.concatenate((np.zeros(len(owners), np.bool_), np.ones(len(alone), np.bool_)))[order]
    index = pa.array(np.concatenate((np.arange(len(owners)), np.zeros_like(alone)))[order], mask=padding)
    rows = batch.take(everyone[order])
    return rows.with_columns([*rows.columns, *(column.take(index) for column in partners)]), everyone[order]
