"""EXCEPT ALL whose rows may carry their ends, against counts recomputed at every instant (paper 5; erratum 8)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators import except_all
from sash.operators.except_all import ExceptAll
from sash.operators.expiration_choice import ExpirationPlan
from sash.state.memory import HeapMemory
from sash.time import FOREVER
from tests.operators.reference import KINDS, Life, check, clocks, drive_strict, edge, lives, stamped
from tests.operators.test_set_operation import answer

STAMPED = ("fifo", "calendar")
A, B = (1, "a"), (2, "b")


def made(kinds: tuple[str, str] = ("calendar", "calendar"), *, calendar: bool = True) -> ExceptAll:
    known = ExpirationPlan(0.0 if calendar else None, 0.0, 4, fixed=True)
    return ExceptAll(HeapMemory(), (edge(kinds[0]), edge(kinds[1])), known)


def changes(left: list[Life], right: list[Life], *, calendar: bool = True) -> list[tuple[int, int, int]]:
    output = made(calendar=calendar).process([stamped(left), stamped(right)], 100)
    return list(zip(output.ts.tolist(), output.sign.tolist(), output.exp.tolist(), strict=True))


@pytest.mark.parametrize("reach", [0, 1, 64])
@settings(max_examples=150)
@given(data=st.data())
def test_oracle_of_what_is_handed_over(reach: int, data: st.DataObject) -> None:
    """With any sequence of methods, and with rows beyond the reach of their position."""
    kinds = data.draw(st.tuples(st.sampled_from(STAMPED), st.sampled_from(KINDS)))
    inputs = [data.draw(lives(kind)) for kind in kinds]
    calls = data.draw(clocks())
    ways = data.draw(st.lists(st.booleans(), min_size=len(calls), max_size=len(calls)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(except_all, "REACH", reach)
        output, found = drive_strict(ExceptAll, kinds, inputs, calls, ways)
    check(output, inputs, lambda left, right: answer("except_all", left, right))
    made = [(change.ts, change.exp, change.row, change.sign) for change in found]
    assert not any((*change[:3], -change[3]) in made for change in made), "added and retracted at one instant"


@settings(max_examples=150)
@given(data=st.data())
def test_the_copies_that_expire_first_are_in_the_answer(data: st.DataObject) -> None:
    """Erratum 8, by calendar: so a `-` row comes only with a row on the right, and no end on the left takes one back."""
    kinds = data.draw(st.tuples(st.sampled_from(STAMPED), st.sampled_from(STAMPED)))
    inputs = [data.draw(lives(kind)) for kind in kinds]
    calls = data.draw(clocks())
    _, found = drive_strict(ExceptAll, kinds, inputs, calls, [True] * len(calls))
    standing: list[tuple[int, object]] = []
    for instant in sorted({change.ts for change in found}):
        for change in found:
            if change.ts == instant and change.sign < 0:
                assert any(life.ts == instant and life.row == change.row for life in inputs[1])
                standing.remove((change.exp, change.row))
            elif change.ts == instant:
                standing.append((change.exp, change.row))
        standing = [one for one in standing if one[0] > instant]
        for row in {row for _, row in standing}:
            there = sorted(exp for exp, other in standing if other == row)
            alive = sorted(life.exp for life in inputs[0] if life.ts <= instant < life.exp and life.row == row)
            assert there == alive[: len(there)], f"at {instant}"


def test_a_row_on_the_right_takes_the_copy_that_expires_last_and_gives_it_back() -> None:
    left, right = [Life(0, 20, A), Life(0, 10, A), Life(3, 15, A)], [Life(1, 6, A)]
    assert changes(left, right) == [(0, 1, 10), (0, 1, 20), (1, -1, 20), (3, 1, 15), (6, 1, 20)]
    expected = [(0, 1), (0, 1), (1, -1), (3, 1), (6, 1), (10, -1), (15, -1), (20, -1)]
    assert changes(left, right, calendar=False) == [(*change, int(FOREVER)) for change in expected]


def test_a_row_that_comes_with_its_like_on_the_right_takes_the_place_of_one_that_expires_later() -> None:
    assert changes([Life(0, 20, A), Life(5, 9, A)], [Life(5, 50, A)]) == [(0, 1, 20), (5, -1, 20), (5, 1, 9)]
    assert changes([Life(0, 9, A), Life(5, 20, A)], [Life(5, 50, A)]) == [(0, 1, 9)]


def test_a_row_that_never_ends_is_said() -> None:
    forever = int(FOREVER)
    assert changes([Life(0, forever, A)], [Life(2, 5, A)]) == [(0, 1, forever), (2, -1, forever), (5, 1, forever)]


@pytest.mark.parametrize("calendar", [True, False], ids=["calendar", "negative tuples"])
def test_premature_are_the_ends_that_the_right_side_brings(calendar: bool) -> None:
    """What ends by itself at the same instant is none of them."""
    operator = made(calendar=calendar)
    left = [Life(0, 9, A), Life(0, 9, A), Life(0, 7, B), Life(0, 9, B)]
    operator.process([stamped(left), stamped([Life(1, 30, A), Life(7, 20, B)])], 100)
    assert operator.premature == 2


def test_where_rows_expire_in_order_none_is_looked_at() -> None:
    operator = made(("fifo", "fifo"))
    rows = [Life(ts, ts + 50, A) for ts in range(200)]
    operator.process([stamped(rows), stamped([Life(ts, ts + 50, A) for ts in range(0, 200, 3)])], 400)
    assert operator.rows_examined == 0
    assert operator.state_rows == 0


def test_a_row_looks_no_further_than_its_reach() -> None:
    """Each expires before all that came before it: what a row costs does not grow with them."""
    operator, count = made(), 2_000
    falling = [Life(ts, 10_000 - ts, A) for ts in range(count)]
    output = operator.process([stamped(falling), stamped([Life(count, 20_000, A)])], 30_000)
    assert operator.rows_examined <= except_all.REACH * count
    assert (output.sign > 0).sum() == count
    assert operator.state_rows == 0
