"""Ask a live window while a stream flows into it: snapshots, a periodic query, and the answer of a standing query.

Run it with `python examples/snapshots.py`; it takes about half a minute and needs nothing but Sash.
"""

from __future__ import annotations

import threading

import sash


def main() -> None:
    engine = sash.Engine()
    sales = engine.spark.readStream.format("rate").option("rowsPerSecond", 1_000).load()
    engine.stream(
        "sales", sales.selectExpr("timestamp AS ts", "value % 7 AS item", "CAST(value % 100 AS DOUBLE) AS price")
    )

    # The last 10 seconds, moved on by one second at a time; a replaced second stays for queries that have read it.
    kept = engine.keep("sales", window="10 seconds", every="1 second", retain=1)
    standing = engine.sql("SELECT item, SUM(price) AS total FROM sales [RANGE 5 SECONDS] GROUP BY item")
    totals = engine.keep(standing, window="10 seconds", every="1 second", name="totals")
    pause = threading.Event()
    while min(kept.progress()["sub_windows"], totals.progress()["sub_windows"]) < 3:
        pause.wait(0.5)

    # Again after every second update, beside whatever else is asked.
    with engine.periodic("SELECT PERCENTILE(price, 0.9) AS high FROM sales [RANGE 8 SECONDS]", every=2) as highs:
        answer = engine.snapshot(
            "SELECT item, COUNT(*) AS n, AVG(price) AS usual FROM sales [RANGE 2500 MILLISECONDS] GROUP BY item"
        )
        print(answer.explain)
        print(answer.to_pandas())
        print(f"as of {answer.as_of} us, {answer.freshness:.2f} s old, in {answer.response_time * 1000:.0f} ms")
        print("three best:", engine.snapshot("SELECT item, total FROM totals ORDER BY total DESC LIMIT 3").to_pylist())
        about = engine.snapshot(
            "SELECT APPROX_COUNT_DISTINCT(price) AS prices FROM sales", isolation="window-serializable"
        )
        print("about", about.to_pylist(), about.errors)
        for _ in range(3):
            (high,) = next(highs)
            print(f"update {high.update}: {high.to_pylist()}, {high.sub_windows_read} sub-windows read")

    kept.stop()
    totals.stop()
    engine.windows.close()
    engine.spark.stop()


if __name__ == "__main__":
    main()
