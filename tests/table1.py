"""The workload queries of paper 1, Table 1, as they are printed (with numbers for Threshold), and sales to run them over."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import lru_cache

from tests.oracle.case import Case, case
from tests.oracle.duck import Row

QUERIES = {
    "q1": "SELECT SUM(S.Price) FROM SalesStream S WHERE S.ItemID > 3 Window 1 minute;",
    "q2": (
        "SELECT DISTINCT SA.ItemID FROM SalesStream_A SA, SalesStream_B SB WHERE SA.ItemID = SB.ItemID AND SA.Price > 2 "
        "Window 1 minute;"
    ),
    "q3": (
        "SELECT COUNT (DISTINCT S.StoreID) FROM SalesStream S, FavoriteItems F WHERE S.ItemID = F.ItemID Window 1 minute;"
    ),
    "q4": (
        "SELECT SS.ItemID, SUM(SS.Price) FROM FavoriteItems FI, SalesStream SS, FavoriteStores FS "
        "WHERE FI.ItemID = SS.ItemID AND SS.StoreID = FS.StoreID Group By SS.ItemID WINDOW 1 minute;"
    ),
    "q5": (
        "SELECT S.ItemID, SUM(S.Price) FROM FavoriteItems F, (SELECT ItemID, Price FROM SalesStream_A MINUS "
        "SELECT ItemID, Price FROM SalesStream_B) as S WHERE F.ItemID = S.ItemID Group By S.ItemID WINDOW 1 minute;"
    ),
}
_NAMED = (
    ("SUM(S.Price)", 'SUM(S.Price) AS "sum(Price)"'),
    ("SUM(SS.Price)", 'SUM(SS.Price) AS "sum(Price)"'),
    ("COUNT (DISTINCT S.StoreID)", 'COUNT(DISTINCT S.StoreID) AS "count(DISTINCT StoreID)"'),
    ("MINUS", "EXCEPT"),
    ("Window 1 minute;", ""),
    ("WINDOW 1 minute;", ""),
)
"""What DuckDB needs to be told of the same queries."""

RELATIONS = {
    "FavoriteItems": [{"ItemID": item} for item in (1, 2, 4, 5)],
    "FavoriteStores": [{"StoreID": store} for store in (0, 1, 2)],
}
SLOW, FAST = 9_000, 1_500
"""The average time between two sales in milliseconds: at the first, a window has few rows, and nobody passes for long."""


def sales(seed: int, gap: int) -> list[Row]:
    """Sales at random times, a given time apart on average, for some windows."""
    rng = random.Random(seed)
    rows: list[Row] = []
    ts = 0
    for _ in range(30 if gap == SLOW else 90):
        ts += max(1, round(rng.expovariate(1 / gap)))
        rows.append({"ts": ts, "ItemID": rng.randrange(6), "StoreID": rng.randrange(4), "Price": rng.randrange(1, 8)})
    return rows


@lru_cache
def table1_case(query: str, gap: int) -> Case:
    """A query over its streams, against the oracle."""
    sql = duck = QUERIES[query]
    for ours, theirs in _NAMED:
        duck = duck.replace(ours, theirs)
    names = [name for name in ("SalesStream_A", "SalesStream_B") if name in sql] or ["SalesStream"]
    streams = {name: sales(seed, gap) for seed, name in enumerate(names)}
    made = case(
        f"table1_{query}",
        "",
        dict.fromkeys(names, 60_000),
        sash=sql,
        duck=duck,
        streams=streams,
        relations={name: rows for name, rows in RELATIONS.items() if name in sql},
        unit="ms",
        empties=query not in ("q1", "q3"),
    )
    return replace(made, until=max(int(rows[-1]["ts"]) for rows in streams.values()) + 60_003)
