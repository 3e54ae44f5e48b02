"""Rows that another stage reads: with expiration times, fewer are sent, and fewer bytes if few of them end prematurely."""

from __future__ import annotations

import pytest

from bench.paper5.sent import measure_sent
from sash.operators import expiration_choice


def test_ends_by_calendar_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiration_choice, "PATIENCE", 2_000)
    few, many = (measure_sent(5_000, 10_000, matches, 128) for matches in (0.02, 0.5))
    assert 0 < few["premature"] < 0.2 < many["premature"]
    assert few["sent_rows"]["calendar"] < 0.7 * few["sent_rows"]["negative tuples"]
    for part in ("sent_bytes", "logged_bytes", "state_bytes"):
        assert few[part]["calendar"] < 0.9 * few[part]["negative tuples"]
    assert many["sent_bytes"]["calendar"] > many["sent_bytes"]["negative tuples"]
    assert (few["current_choice"][0], many["current_choice"][0]) == ("ends by calendar", "ends by negative tuples")
