"""Selection: what passes is what the predicate is true for, whichever way it is found."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.filter import Filter
from sash.plan.expressions import Call, Column, Literal
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.time import FOREVER

TEXTS = st.none() | st.sampled_from(["", "a", "b", "ab", "abc", "ä", "ab\0"])


def _batch(texts: list[str | None], before: int) -> ChangeBatch:
    """A batch of these texts, as a slice of longer arrays, each other row negative."""
    column = pa.array([*["ab"] * before, *texts, "ab"], pa.string()).slice(before, len(texts))
    rows = len(texts)
    sign = np.where(np.arange(rows) % 2, -1, 1).astype(np.int8)
    return ChangeBatch(np.arange(rows), np.full(rows, FOREVER), sign, (pa.array(range(rows), pa.int64()), column))


@settings(max_examples=200)
@given(texts=st.lists(TEXTS, max_size=12), wanted=TEXTS, before=st.integers(0, 2), swapped=st.booleans())
@example(texts=["ab", "b", "ab"], wanted="ab", before=2, swapped=False)
@example(texts=["", "a", ""], wanted="", before=0, swapped=False)
@example(texts=["ab", None, ""], wanted="", before=1, swapped=True)
@example(texts=["ab", "b"], wanted=None, before=0, swapped=False)
@example(texts=[], wanted="ab", before=1, swapped=False)
def test_a_text_is_found_where_it_is(texts: list[str | None], wanted: str | None, before: int, swapped: bool) -> None:
    column, literal = Column(1, "text", pa.string()), Literal(wanted, pa.string())
    predicate = Call("eq", (literal, column) if swapped else (column, literal), pa.bool_())
    operator = Filter(HeapMemory(), (Edge((pa.int64(), pa.string()), "explicit"),), predicate)
    batch = _batch(texts, before)
    kept = operator.process((batch,), FOREVER)
    expected = [row for row, text in enumerate(texts) if wanted is not None and text == wanted]
    assert kept.columns[0].to_pylist() == kept.ts.tolist() == expected
    assert kept.columns[1].to_pylist() == [wanted] * len(expected)
    assert kept.sign.tolist() == [-1 if row % 2 else 1 for row in expected]
