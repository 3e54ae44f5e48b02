from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.nrr_join import NrrJoin
from sash.plan.expressions import Call, Column
from sash.plan.nodes import JoinKind
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from tests.operators.reference import DTYPES, Life, Row, at, clocks, drive, edge, lives, numbered, rows_of, stamped

NUMBERED = (*DTYPES, pa.int64())
KINDS: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti")


def results(kind: JoinKind, left: list[Life], relation: list[Life]) -> list[Life]:
    """Definition 2, row by row: what each row finds in the relation as it was before the row's own instant."""
    found = []
    for life in left:
        met = [r.row for r in relation if r.ts < life.ts <= r.exp and r.row[0] is not None and r.row[0] == life.row[0]]
        rows: list[Row] = [life.row + row for row in met]
        if kind == "left" and not met:
            rows = [life.row + (None,) * len(DTYPES)]
        if kind in ("semi", "anti"):
            rows = [life.row] * (bool(met) == (kind == "semi"))
        found += [life._replace(row=row) for row in rows]
    return found


@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(KINDS), calls=clocks())
@pytest.mark.parametrize("left_kind", ["fifo", "calendar", "explicit"])
def test_rows_meet_the_version_before_their_instant(
    left_kind: str, data: Any, kind: JoinKind, calls: list[int]
) -> None:
    """On the explicit edge, equal rows go in the order they came, or no two rows are equal."""
    in_order = data.draw(st.booleans())
    left = data.draw(lives("fifo" if left_kind == "fifo" or in_order else "calendar"))
    dtypes = DTYPES
    if left_kind == "explicit" and not in_order:
        left, dtypes = numbered(left), NUMBERED
    relation = data.draw(lives("calendar"))
    edges = (edge(left_kind, dtypes), edge("explicit"))
    output = drive(
        lambda memory, inputs: NrrJoin(memory, inputs, kind, ((0, 0),)),  # type: ignore[arg-type]
        edges,
        (left, relation),
        calls,
        stamped_output=left_kind != "explicit",
    )
    expected = results(kind, left, relation)
    for instant in sorted({time for life in (*left, *output) for time in life[:2] if time < 200}):
        assert at(output, instant) == at(expected, instant), f"at {instant}"


def changes(*entries: tuple[int, int, Row]) -> ChangeBatch:
    batch = stamped([Life(ts, 10**9, row) for ts, _, row in entries])
    batch.sign[:] = [sign for _, sign, _ in entries]
    return ChangeBatch.explicit(batch.ts, batch.sign, batch.columns)


def test_a_negative_row_takes_back_what_its_positive_row_got() -> None:
    operator = NrrJoin(HeapMemory(), (edge("explicit"), edge("explicit")), "inner", ((0, 0),))
    relation = changes((0, 1, (1, "old")), (5, -1, (1, "old")), (5, 1, (1, "new")))
    output = operator.process([changes((3, 1, (1, "a")), (5, 1, (1, "b")), (6, 1, (1, "c"))), relation], 8)
    assert rows_of(output) == [(1, "a", 1, "old"), (1, "b", 1, "old"), (1, "c", 1, "new")]
    output = operator.process([changes((9, -1, (1, "a")), (9, -1, (1, "c"))), changes()], 10)
    assert sorted(rows_of(output)) == [(1, "a", 1, "old"), (1, "c", 1, "new")]
    assert output.sign.tolist() == [-1, -1]
    assert operator.state_rows == 2
    operator.process([changes((11, -1, (1, "b"))), changes((11, -1, (1, "new")))], 12)
    assert operator.state_rows == 0


def test_rows_of_a_stamped_input_are_not_remembered() -> None:
    operator = NrrJoin(HeapMemory(), (edge("fifo"), edge("explicit")), "left", ((0, 0),))
    rows = stamped([Life(ts, ts + 5, (ts % 3, "x")) for ts in range(1, 100)])
    operator.process([rows, changes((0, 1, (1, "one")), (0, 1, (2, "two")))], 200)
    assert operator.state_rows == 2


def test_a_condition_beside_the_key_decides_on_the_version_too() -> None:
    differ = Call("lt", (Column(1, "a", DTYPES[1]), Column(3, "b", DTYPES[1])), pa.bool_())
    operator = NrrJoin(HeapMemory(), (edge("fifo"), edge("explicit")), "left", ((0, 0),), differ)
    relation = changes((0, 1, (1, "b")), (0, 1, (1, "z")), (4, -1, (1, "z")))
    output = operator.process([stamped([Life(1, 9, (1, "c")), Life(5, 9, (1, "c"))]), relation], 10)
    assert rows_of(output) == [(1, "c", 1, "z"), (1, "c", None, None)]
