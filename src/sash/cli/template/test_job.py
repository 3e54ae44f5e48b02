"""Tests of the queries in job.sql, without Spark and without waiting: pytest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sash.testing import read_queries, replay

QUERIES = read_queries(Path(__file__).with_name("job.sql"))
ORDERS: list[dict[str, Any]] = [
    {"ts": 0, "customer": "ada", "amount": 5.0},
    {"ts": 5, "customer": "bo", "amount": 1.0},
    {"ts": 30, "customer": "ada", "amount": 2.0},
]


def test_spending_shrinks_when_orders_are_a_minute_old() -> None:
    """An order counts for one minute, from its instant on."""
    result = replay(QUERIES["spending"], {"orders": ORDERS}, unit="s", until=120)
    assert {"customer": "ada", "orders": 2, "total": 7.0} in result.at(30)
    assert result.at(60) == [
        {"customer": "bo", "orders": 1, "total": 1.0},
        {"customer": "ada", "orders": 1, "total": 2.0},
    ]
    assert result.at(90) == []


def test_a_customer_is_silent_ten_seconds_after_the_last_order() -> None:
    """The answer changes although no order arrives."""
    result = replay(QUERIES["silent"], {"orders": ORDERS}, unit="s", until=120)
    changes = [(change.ts, change.op, change.row["customer"]) for change in result.changes]
    assert changes == [
        (10, "+", "ada"), (15, "+", "bo"), (30, "-", "ada"), (40, "+", "ada"), (65, "-", "bo"), (90, "-", "ada"),
    ]  # fmt: skip
