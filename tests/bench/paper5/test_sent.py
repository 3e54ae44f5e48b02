"""Rows that another stage reads: with expiration times, fewer are sent, and fewer bytes if few of them end prematurely."""

from __future__ import annotations

import pytest

from bench.paper5.sent import measure_sent
from sash.operators import expiration_choice


def test_ends_by_calendar_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiration_choice, "PATIENCE", 2_000)
    few, many = (measure_sent(5_000, 10_000, matches, 128) for matches in (0.02, 0.5))
    assert 0 < few["premature"] < 0.2 < many["premature"]
    for part in ("sent_rows", "sent_bytes", "logged_bytes"):
        assert few[part]["calendar"] < 0.8 * few[part]["negative tuples"]
    assert many["sent_rows"]["calendar"] < many["sent_rows"]["negative tuples"]
    assert few["sent_bytes"]["chosen"] < 0.9 * few["sent_bytes"]["negative tuples"]
