"""Every split of a short input into micro-batches gives the same change stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.oracle.case import Case, case, table
from tests.oracle.check import assert_oracle, run
from tests.oracle.duck import View

LEFT = table("ts k v", (1, 1, 4), (2, 1, 4), (2, 2, 7), (5, 1, 4))
RIGHT = table("ts k v", (2, 1, 4), (6, 2, 7))
ONE = table("ts k v", (0, 1, 4), (1, None, 2), (1, 1, 4), (4, 2, 4), (4, 1, 9), (8, 1, 4))

_SIDES = {"s": 4, "r": 3}
_STREAMS = {"s": LEFT, "r": RIGHT}

CASES = (
    case("select", "SELECT k, v FROM {s} WHERE v > 2", {"s": 4}, streams={"s": ONE}),
    case("distinct", "SELECT DISTINCT k FROM {s}", {"s": 4}, streams={"s": ONE}),
    case("group", "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM {s} GROUP BY k", {"s": 4}, streams={"s": ONE}),
    case("global", "SELECT SUM(v) AS t, COUNT(DISTINCT k) AS n FROM {s}", {"s": 3}, streams={"s": ONE}),
    case("join", "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a JOIN {r} AS b ON a.k = b.k", _SIDES, streams=_STREAMS),
    case(
        "full", "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a FULL JOIN {r} AS b ON a.k = b.k", _SIDES, streams=_STREAMS
    ),
    case("rows", "SELECT k, v FROM {s}", {"s": View("s", rows=2)}, streams={"s": ONE}),
    case("rows_group", "SELECT k, SUM(v) AS t FROM {s} GROUP BY k", {"s": View("s", rows=3)}, streams={"s": ONE}),
    case(
        "rows_join",
        "SELECT a.ts AS ts, b.ts AS us FROM {s} AS a LEFT JOIN {r} AS b ON a.k = b.k",
        {"s": View("s", rows=1, partition=("k",)), "r": View("r", rows=1)},
        streams=_STREAMS,
    ),
    case("except_all", "SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}", _SIDES, streams=_STREAMS),
    case(
        "join_over_except_all",
        "SELECT t.k AS k, b.ts AS us FROM (SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) AS t JOIN {r9} AS b ON t.k = b.k",
        {**_SIDES, "r9": View("r", 9)},
        streams=_STREAMS,
    ),
    case("intersect", "SELECT k, v FROM {s} INTERSECT SELECT k, v FROM {r}", _SIDES, streams=_STREAMS),
    case(
        "group_over_except",
        "SELECT v, COUNT(*) AS n FROM (SELECT k, v FROM {s} EXCEPT SELECT k, v FROM {r}) AS t GROUP BY v",
        _SIDES,
        streams=_STREAMS,
    ),
)


def compositions(total: int) -> Iterator[list[int]]:
    """Every way to write a number as an ordered sum.

    >>> sorted(compositions(3))
    [[1, 1, 1], [1, 2], [2, 1], [3]]
    """
    if total == 0:
        yield []
    for first in range(1, total + 1):
        for rest in compositions(total - first):
            yield [first, *rest]


def stream_of(case: Case, **options: Any) -> Counter[tuple[Any, ...]]:
    """The change stream as a bag."""
    return Counter((c.ts, c.op, *c.row.items()) for c in run(case, **options).changes)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_split_gives_the_same_change_stream(case: Case, shards: int) -> None:
    assert_oracle(case, shards=shards)
    whole = stream_of(case, shards=shards)
    for sizes in compositions(sum(len(rows) for rows in case.streams.values())):
        assert stream_of(case, shards=shards, batch=sizes) == whole, f"split {sizes}"
