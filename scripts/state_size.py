"""Measures working state and checkpoint per row in the window: `python scripts/state_size.py [rows]`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import sash

QUERIES = {
    "GROUP BY, SUM of a double, 1,000 groups": "SELECT g, SUM(x) AS t FROM s [RANGE 1 HOUR] GROUP BY g",
    "GROUP BY, MEDIAN of a double, 1,000 groups": "SELECT g, MEDIAN(x) AS m FROM s [RANGE 1 HOUR] GROUP BY g",
    "DISTINCT, all values different": "SELECT DISTINCT k FROM s [RANGE 1 HOUR]",
    "DISTINCT, 1,000 values": "SELECT DISTINCT g FROM s [RANGE 1 HOUR]",
    "join of two streams, one match per row": (
        "SELECT s.k, s.x, r.x AS y FROM s [RANGE 1 HOUR], r [RANGE 1 HOUR] WHERE s.k = r.k"
    ),
    "EXCEPT of two streams": "SELECT k FROM s [RANGE 1 HOUR] EXCEPT SELECT k FROM r [RANGE 1 HOUR]",
}


def write(folder: Path, rows: int, seed: int) -> None:
    """One file of rows within half an hour: none expires."""
    random = np.random.default_rng(seed)
    folder.mkdir()
    ts = pa.array(np.linspace(0, 1_800_000_000, rows).astype(np.int64), pa.timestamp("us", tz="UTC"))
    columns = {"ts": ts, "k": random.permutation(rows), "g": random.integers(0, 1000, rows), "x": random.random(rows)}
    pq.write_table(pa.table(columns), folder / "rows.parquet")


def main(rows: int) -> None:
    """Run each query over all rows once, and say what it keeps."""
    with tempfile.TemporaryDirectory() as home:
        engine = sash.Engine()
        for seed, name in enumerate(("s", "r")):
            write(Path(home) / name, rows, seed)
            schema = "ts TIMESTAMP, k BIGINT, g BIGINT, x DOUBLE"
            engine.stream(name, engine.spark.readStream.schema(schema).parquet(f"{home}/{name}"))
        print("| query | state, bytes per row | checkpoint, bytes per row |\n|---|---|---|")
        for number, (name, sql) in enumerate(QUERIES.items()):
            place = Path(home) / f"checkpoint{number}"
            running = engine.sql(sql).start("noop", checkpoint=str(place))
            running.process_all()
            progress = running.progress()
            running.stop()
            size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
            read = progress["total_rows_in"]
            print(f"| {name} | {progress['state_bytes'] / read:.0f} | {size / read:.0f} |", flush=True)
        engine.close()
        engine.spark.stop()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
