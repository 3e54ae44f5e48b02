from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.operators.output_modes import reduce_changes
from sash.state.changes import ChangeBatch

CHANGES = ChangeBatch.explicit(
    np.array([1, 2, 2, 3, 4, 4, 5], np.int64),
    np.array([1, -1, 1, 1, -1, 1, -1], np.int8),
    [pa.array(["a", "a", "a", "b", "a", "a", "b"]), pa.array([1, 1, 2, 1, 2, 3, 1])],
)


def listed(batch: ChangeBatch) -> list[tuple[int, int, str, int]]:
    columns = [column.to_pylist() for column in batch.columns]
    return list(zip(batch.ts.tolist(), batch.sign.tolist(), *columns, strict=True))


def test_changes_are_all_of_them() -> None:
    assert reduce_changes(CHANGES, "changes", None) is CHANGES


def test_net_keeps_what_the_batch_as_a_whole_changed() -> None:
    assert listed(reduce_changes(CHANGES, "net", None)) == [(4, 1, "a", 3)]
    assert listed(reduce_changes(CHANGES, "net", (0,))) == [(4, 1, "a", 3)]
    there = CHANGES.slice(1, 6)
    assert listed(reduce_changes(there, "net", (0,))) == [(2, -1, "a", 1), (3, 1, "b", 1), (4, 1, "a", 3)]
    assert listed(reduce_changes(there, "net", (0,))) == listed(reduce_changes(there, "net", None))


def test_net_leaves_nothing_of_a_row_that_ends_as_it_began() -> None:
    there_and_back = ChangeBatch.explicit(
        np.array([1, 1, 2, 2], np.int64),
        np.array([-1, 1, -1, 1], np.int8),
        [pa.array(["a"] * 4), pa.array([1, 2, 2, 1])],
    )
    assert not listed(reduce_changes(there_and_back, "net", (0,)))


def test_upsert_keeps_the_last_word_on_every_key() -> None:
    assert listed(reduce_changes(CHANGES, "upsert", (0,))) == [(4, 1, "a", 3), (5, -1, "b", 1)]
    assert listed(reduce_changes(CHANGES, "upsert", ())) == [(5, -1, "b", 1)]
