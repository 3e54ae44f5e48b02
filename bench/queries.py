"""The five workload queries of paper 1 (Table 1), three with window functions, and for each the part that Spark runs below
the first state.

Selectivities are the paper's: 0.25 for the filters of Q1 and Q2, 0.1 for the joins with the favourites. Q4 has two such
joins with a combined selectivity of 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import sqrt

from bench.data import Sales

WINDOW = "1 MINUTE"
WINDOW_SECONDS = 60
SALES = Sales(rate=20_000)
"""The default sales of each stream."""

_Q2 = (
    "SELECT DISTINCT a.item_id FROM sales_a AS a, sales_b AS b "
    "WHERE a.item_id = b.item_id AND a.price >= 15 WINDOW " + WINDOW
)
_Q2_LIMIT = "SELECT item_id, ts FROM sales_a WHERE price >= 15 UNION ALL SELECT item_id, ts FROM sales_b"


@dataclass(frozen=True)
class WorkloadQuery:
    """A query, the streams it reads, the share of items and stores that are favourites, and its limit.

    `limit` is the stateless part of the query in Spark SQL: scan, filters, joins with tables. `key` is the key of the
    query's state, and `keeps` the condition for a sale to reach it, without a join, because favourites come first.
    """

    name: str
    sql: str
    limit: str
    key: str
    streams: tuple[str, ...] = ("sales",)
    favourite_items: float = 0.0
    favourite_stores: float = 0.0
    sales: Sales = SALES
    where: str = "TRUE"
    disable: frozenset[str] = field(default=frozenset())

    @property
    def items(self) -> int:
        """The number of favourite items: 0, 1, 2 ..."""
        return round(self.favourite_items * self.sales.items)

    @property
    def stores(self) -> int:
        """The number of favourite stores: 0, 1, 2 ..."""
        return round(self.favourite_stores * self.sales.stores)

    @property
    def keeps(self) -> str:
        """The query's filter and joins with tables, as one condition on a sale."""
        items = f" AND item_id < {self.items}" if self.items else ""
        stores = f" AND store_id < {self.stores}" if self.stores else ""
        return self.where + items + stores


QUERIES: tuple[WorkloadQuery, ...] = (
    WorkloadQuery(
        "q1",
        f"SELECT SUM(price) AS total FROM sales WHERE item_id >= 37500 WINDOW {WINDOW}",
        "SELECT price, ts FROM sales WHERE item_id >= 37500",
        "0",
        where="item_id >= 37500",
    ),
    WorkloadQuery("q2", _Q2, _Q2_LIMIT, "item_id", ("sales_a", "sales_b")),
    WorkloadQuery(
        "q2-join-first",
        _Q2,
        _Q2_LIMIT,
        "item_id",
        ("sales_a", "sales_b"),
        sales=Sales(rate=1_000),
        disable=frozenset({"push_distinct_below_join"}),
    ),
    WorkloadQuery(
        "q3",
        "SELECT COUNT(DISTINCT s.store_id) AS stores FROM sales AS s, favorite_items AS f "
        f"WHERE s.item_id = f.item_id WINDOW {WINDOW}",
        "SELECT s.store_id, s.ts FROM sales AS s JOIN favorite_items AS f ON s.item_id = f.item_id",
        "store_id",
        favourite_items=0.1,
    ),
    WorkloadQuery(
        "q4",
        "SELECT s.item_id, SUM(s.price) AS total FROM favorite_items AS fi, sales AS s, favorite_stores AS fs "
        f"WHERE fi.item_id = s.item_id AND s.store_id = fs.store_id GROUP BY s.item_id WINDOW {WINDOW}",
        "SELECT s.item_id, s.price, s.ts FROM sales AS s JOIN favorite_items AS fi ON fi.item_id = s.item_id "
        "JOIN favorite_stores AS fs ON s.store_id = fs.store_id",
        "item_id",
        favourite_items=sqrt(0.1),
        favourite_stores=sqrt(0.1),
    ),
    WorkloadQuery(
        "q5",
        "SELECT s.item_id, SUM(s.price) AS total FROM favorite_items AS f, (SELECT item_id, price FROM sales_a MINUS "
        "SELECT item_id, price FROM sales_b) AS s WHERE f.item_id = s.item_id GROUP BY s.item_id "
        f"WINDOW {WINDOW}",
        "SELECT s.item_id, s.price, s.ts FROM (SELECT * FROM sales_a UNION ALL SELECT * FROM sales_b) AS s "
        "JOIN favorite_items AS f ON s.item_id = f.item_id",
        "item_id",
        ("sales_a", "sales_b"),
        favourite_items=0.1,
        sales=Sales(rate=20_000, whole_prices=True),
    ),
    WorkloadQuery(
        "top-n",
        "SELECT store_id, item_id, price FROM sales "
        f"QUALIFY ROW_NUMBER() OVER (PARTITION BY store_id ORDER BY price DESC) <= 3 WINDOW {WINDOW}",
        "SELECT store_id, item_id, price, ts FROM sales",
        "store_id",
    ),
    WorkloadQuery(
        "lag",
        "SELECT store_id, price - LAG(price) OVER (PARTITION BY store_id ORDER BY ts) AS step FROM sales "
        f"WINDOW {WINDOW}",
        "SELECT store_id, price, ts FROM sales",
        "store_id",
    ),
    WorkloadQuery(
        "frame",
        "SELECT store_id, AVG(price) OVER (PARTITION BY store_id ORDER BY ts ROWS 2 PRECEDING) AS smooth FROM sales "
        f"WINDOW {WINDOW}",
        "SELECT store_id, price, ts FROM sales",
        "store_id",
    ),
)
