"""The queries of `sash demo --query`: paper 1's workload (Table 1) over the last ten seconds of sales."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WINDOW_SECONDS = 10
ITEMS = ("apples", "bread", "cheese", "dates", "eggs", "figs", "grapes", "honey")
STORES = 100
RELATIONS: dict[str, tuple[str, list[tuple[Any, ...]]]] = {
    "favorite_items": ("item_id INT, name STRING", [(item, ITEMS[item]) for item in (0, 1, 2, 4, 7)]),
    "favorite_stores": ("store_id INT", [(store,) for store in range(0, STORES, 2)]),
}
"""The relations by name: columns and rows."""


@dataclass(frozen=True)
class DemoQuery:
    """A query, its title, and its inputs; `streams` are pairs of a name and a factor of the rate of sales.

    The demonstration plots the sum of the column `plotted` over the answer's rows, or, if it is None, their number.
    """

    title: str
    sql: str
    streams: tuple[tuple[str, float], ...] = (("sales", 1.0),)
    relations: tuple[str, ...] = ()
    plotted: str | None = None
    whole_prices: bool = False

    def weight(self, columns: list[str], row: tuple[Any, ...]) -> float:
        """The contribution of one row of the answer to the plotted value."""
        if self.plotted is None:
            return 1.0
        value = row[columns.index(self.plotted)]
        return 0.0 if value is None else float(value)


_LAST = f"WINDOW {WINDOW_SECONDS} SECONDS"
_BOTH = (("sales_a", 1.0), ("sales_b", 0.2))

DEMO_QUERIES: dict[str, DemoQuery] = {
    "q1": DemoQuery(
        "Revenue without the first two items",
        f"SELECT SUM(price) AS total\nFROM sales\nWHERE item_id >= 2\n{_LAST}",
        plotted="total",
    ),
    "q2": DemoQuery(
        "Items sold at a high price in stream a that are also sold in stream b",
        "SELECT DISTINCT a.item_id\nFROM sales_a AS a, sales_b AS b\n"
        f"WHERE a.item_id = b.item_id AND a.price >= 15\n{_LAST}",
        streams=_BOTH,
    ),
    "q3": DemoQuery(
        "Number of stores that sell favourite items",
        "SELECT COUNT(DISTINCT s.store_id) AS stores\nFROM sales AS s, favorite_items AS f\n"
        f"WHERE s.item_id = f.item_id\n{_LAST}",
        relations=("favorite_items",),
        plotted="stores",
    ),
    "q4": DemoQuery(
        "Revenue by favourite item in favourite stores",
        "SELECT fi.name, COUNT(*) AS sales, SUM(s.price) AS total\n"
        "FROM favorite_items AS fi, sales AS s, favorite_stores AS fs\n"
        f"WHERE fi.item_id = s.item_id AND s.store_id = fs.store_id\nGROUP BY fi.name\n{_LAST}",
        relations=("favorite_items", "favorite_stores"),
        plotted="total",
    ),
    "q5": DemoQuery(
        "Prices of favourite items that occur in stream a but not in stream b",
        "SELECT f.name, COUNT(*) AS prices, SUM(s.price) AS total\n"
        "FROM favorite_items AS f, (SELECT item_id, price FROM sales_a MINUS SELECT item_id, price FROM sales_b) AS s\n"
        f"WHERE f.item_id = s.item_id\nGROUP BY f.name\n{_LAST}",
        streams=_BOTH,
        relations=("favorite_items",),
        plotted="prices",
        whole_prices=True,
    ),
}
