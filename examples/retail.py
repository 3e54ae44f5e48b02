"""Retail: revenue by favourite item over the last minute, in a dict that every batch updates, as a cache would be."""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path
from typing import Any

import sash

SQL = """
SELECT i.name, COUNT(*) AS sales, SUM(s.price * s.quantity) AS revenue
FROM sales [RANGE 1 MINUTE] AS s JOIN favourites AS i ON s.item_id = i.item_id
GROUP BY i.name
"""


def sell(folder: Path, minutes: range) -> None:
    """Write one file of random sales per minute; in the last one only item 0 sells."""
    rnd = random.Random(1)  # noqa: S311  (random sales)
    for minute in minutes:
        items = [0] if minute == minutes[-1] else range(10)
        lines = [
            f"2026-01-01 12:{minute:02d}:{second:02d},{rnd.choice(items)},{rnd.randint(100, 2000) / 100},{rnd.randint(1, 5)}"
            for second in range(60)
        ]
        file = folder / f"{minute:02d}.csv"
        file.write_text("\n".join(lines) + "\n")
        os.utime(file, (10**9 + minute, 10**9 + minute))  # Spark reads files in the order of their modification times


def main() -> None:
    """Update the dict through three batches of one minute of sales each."""
    folder = Path(tempfile.mkdtemp(prefix="sash-retail-"))
    sell(folder, range(3))
    engine = sash.Engine()
    schema = "ts TIMESTAMP, item_id INT, price DOUBLE, quantity INT"
    sales = engine.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).csv(str(folder))
    engine.stream("sales", sales, rate=1)
    names = [(0, "apples"), (3, "dates"), (7, "honey")]
    engine.relation("favourites", engine.spark.createDataFrame(names, "item_id INT, name STRING"), key=["item_id"])

    revenue: dict[str, float] = {}

    def apply(batch: Any, number: int) -> None:
        """Apply a batch: in mode upsert it has one change per key, the new row (`+`) or its deletion (`-`)."""
        for row in batch.collect():
            if row["_op"] == "+":
                revenue[row["name"]] = row["revenue"]
            else:
                del revenue[row["name"]]
        shown = ", ".join(f"{name} {money:.2f}" for name, money in sorted(revenue.items()))
        print(f"after batch {number}: {shown}")

    running = engine.sql(SQL).start(apply, mode="upsert", trigger="available_now")
    running.await_termination()
    progress = running.progress()
    print(f"{progress['total_rows_in']} sales read, {progress['total_late']} of them too late")
    engine.close()


if __name__ == "__main__":
    main()
