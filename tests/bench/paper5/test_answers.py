"""The answer of a negation by calendar and as negative tuples: more state by calendar, whatever ends prematurely."""

from __future__ import annotations

import pytest

from bench.paper5.answers import ANSWERS, measure_answers


@pytest.mark.parametrize("negation", ANSWERS)
def test_an_answer_by_calendar_keeps_rows_twice(negation: str) -> None:
    few, many = (measure_answers(negation, 10_000, 10_000, matches) for matches in (0.0, 0.5))
    assert few["premature"] == 0 < many["premature"]
    for found in (few, many):
        assert found["state_bytes"]["calendar"] > 1.3 * found["state_bytes"]["negative tuples"]
