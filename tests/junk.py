"""Values that no argument of a public call is meant for, for tests that such calls raise errors of Sash's own."""

from __future__ import annotations

import datetime
import decimal
import pathlib
from typing import Any

from hypothesis import strategies as st

ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**60, 2**63, 2**200, 10**5_000, 0.0, 0.5, -0.5, 1e300, float("nan"),
    float("inf"), -float("inf"), "", " ", "x", "S", "s", "1", "-1 second", "5 bananas", "0 seconds", "1e9 days",
    "99999999999999999999 hours", "9" * 500, "\0", "\ud800", "é", "a b", "`", "a'b\"c", "a" * 10_000, b"x", (), [], {}, set(),
    [1], ["x"], [None], {"x": 1}, {1: 2}, {"s": None}, {"s": -1}, {"s": "x"}, {None: None}, object(), int, dict,
    decimal.Decimal("NaN"), decimal.Decimal(1), 1j, datetime.datetime.max, datetime.date.min, datetime.timedelta(1),
    pathlib.PurePath("x"), range(3), iter(()), lambda: None,
)  # fmt: skip
"""Values of every type, with those among them that have broken checks of arguments before."""

JUNK: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(ODD),
    st.integers(),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=5),
    st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(
        st.sampled_from(["s", "t", "ts", "k", "x"]), st.one_of(st.integers(), st.floats(), st.text(max_size=3))
    ),
    st.datetimes(),
)
"""Arbitrary values."""
