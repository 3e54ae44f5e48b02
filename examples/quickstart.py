"""A continuous query over a folder of CSV files, in fifteen lines: `python examples/quickstart.py`."""

import tempfile
from pathlib import Path

import sash

folder = tempfile.mkdtemp()
Path(folder, "sales.csv").write_text("12:00:00,pen,6\n12:00:20,ink,9\n12:00:40,pen,5\n12:01:30,ink,8\n")
engine = sash.Engine()
sales = engine.spark.readStream.schema("ts TIMESTAMP, item STRING, price INT").csv(folder, timestampFormat="HH:mm:ss")
engine.stream("sales", sales)
query = engine.sql("SELECT item, SUM(price) AS total FROM sales [RANGE 1 MINUTE] GROUP BY item")
running = query.start(lambda changes, _: changes.show(), trigger="available_now")
running.await_termination()
