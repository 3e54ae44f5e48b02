"""Queries whose answers are pinned from Spark: precedence, names, casts, FILTER and keys mean what they mean there."""

from __future__ import annotations

import pytest

from sash.errors import SashError
from sash.testing import replay
from tests.sql.spark_answers import SCHEMAS, TABLES, Pinned, as_text, read, topics

PINNED = [pytest.param(pinned, id=f"{topic.stem}: {pinned.sql}") for topic in topics() for pinned in read(topic)]


@pytest.mark.parametrize("pinned", PINNED)
def test_answer(pinned: Pinned) -> None:
    if pinned.rows is None:
        with pytest.raises(SashError):
            _answer(pinned.sql)
    else:
        assert _answer(pinned.sql) == pinned.rows


def _answer(sql: str) -> tuple[str, ...]:
    result = replay(f"{sql} WINDOW 1 HOUR", TABLES, schemas=SCHEMAS, unit="s", until=2, shards=1)
    return as_text(row.values() for row in result.at(2))
