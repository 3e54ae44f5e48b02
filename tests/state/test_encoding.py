from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sash.state.changes import ChangeBatch
from sash.state.encoding import decode, decode_all, encode, pieces
from sash.time import FOREVER


def batch(ts: list[int], sign: list[int] | None = None, exp: list[int] | None = None) -> ChangeBatch:
    return ChangeBatch(
        np.array(ts, np.int64),
        np.full(len(ts), FOREVER) if exp is None else np.array(exp, np.int64),
        np.ones(len(ts), np.int8) if sign is None else np.array(sign, np.int8),
        (pa.array([f"v{t}" for t in ts]), pa.array([None if t % 2 else t for t in ts], pa.int64())),
    )


def same(left: ChangeBatch, right: ChangeBatch) -> bool:
    return (
        left.ts.tolist() == right.ts.tolist()
        and left.exp.tolist() == right.exp.tolist()
        and left.sign.tolist() == right.sign.tolist()
        and all(a.equals(b) for a, b in zip(left.columns, right.columns, strict=True))
    )


@pytest.mark.parametrize(
    "given",
    [
        batch([]),
        batch([5, 6, 7]),
        batch([-3, 2**40, 2**62]),
        batch([1, 2, 3], sign=[1, -1, 1]),
        batch([1, 2, 3], exp=[11, 12, 13]),
        batch([2**50, 2**50 + 2**32 - 1]),
        batch([2**50, 2**50 + 2**32]),
        batch(list(range(10))).slice(3, 7),
    ],
)
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_what_is_encoded_comes_back(given: ChangeBatch, compression: str | None) -> None:
    found = decode(encode(given, compression))  # type: ignore[arg-type]
    assert same(found, given)
    assert found.ts.flags.writeable
    assert found.exp.flags.writeable


def test_rows_of_a_source_cost_four_bytes_beside_their_columns() -> None:
    rows = 100_000
    values = pa.array(np.arange(rows, dtype=np.int64))
    given = ChangeBatch(np.arange(rows) + 2**50, np.full(rows, FOREVER), np.ones(rows, np.int8), (values,))
    assert len(encode(given)) < 12 * rows + 2_000


def test_pieces_put_together_are_the_whole() -> None:
    given = batch(list(range(1000)))
    parts = list(pieces(given, 4_000))
    assert len(parts) > 5
    assert same(decode_all([encode(part) for part in parts], [pa.string(), pa.int64()]), given)
    assert not len(decode_all([], [pa.string(), pa.int64()]))
