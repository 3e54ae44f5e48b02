"""Network monitoring: the sources that send most on a link, and the sources that are on one link but not on the other.

The second query needs exact expiration: a source enters its answer not when it sends a packet, but when its last packet
on the other link becomes a minute old.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import sash

TALKERS = """
SELECT source, SUM(bytes) AS sent FROM link_a [RANGE 1 MINUTE]
GROUP BY source ORDER BY sent DESC LIMIT 3
"""
ONLY_HERE = """
SELECT source FROM link_a [RANGE 1 MINUTE]
EXCEPT
SELECT source FROM link_b [RANGE 1 MINUTE]
"""


def packets(folder: Path, seed: int, sources: range, seconds: range) -> None:
    """Write a file of random packets of a link; a few sources send most of them."""
    rnd = random.Random(seed)  # noqa: S311  (random packets)
    folder.mkdir()
    weights = [1 / (n + 1) for n in range(len(sources))]
    lines = [
        f"2026-01-01 12:{second // 60:02d}:{second % 60:02d},10.0.0.{source},{rnd.randint(40, 1500)}"
        for second in seconds
        for source in rnd.choices(sources, weights, k=5)
    ]
    (folder / "packets.csv").write_text("\n".join(lines) + "\n")


class Answer:
    """The answer of a query, maintained from its changes; a function sink."""

    def __init__(self) -> None:
        self.rows: Counter[tuple[Any, ...]] = Counter()
        self.history: list[tuple[str, Any, tuple[Any, ...]]] = []

    def __call__(self, changes: Any, batch: int) -> None:
        """Apply a batch of changes in the order of time."""
        for op, ts, *row in changes.sort("_ts").collect():
            self.rows[tuple(row)] += 1 if op == "+" else -1
            self.history.append((op, ts, tuple(row)))


def main() -> None:
    """Run both queries over two and a half minutes of packets; link b is silent after the first minute."""
    home = Path(tempfile.mkdtemp(prefix="sash-network-"))
    engine = sash.Engine()
    for number, (name, sources, seconds) in enumerate(
        [("link_a", range(1, 20), range(150)), ("link_b", range(1, 15), range(60))]
    ):
        packets(home / name, number, sources, seconds)
        schema = "ts TIMESTAMP, source STRING, bytes INT"
        engine.stream(name, engine.spark.readStream.schema(schema).csv(str(home / name)))
    with (home / "link_b" / "packets.csv").open("a") as file:
        file.write("2026-01-01 12:02:29,10.0.0.99,40\n")  # a query's clock is that of its slowest stream
    talkers, alone = Answer(), Answer()
    running = [engine.sql(TALKERS).start(talkers, trigger="available_now")]
    running += [engine.sql(ONLY_HERE).start(alone, trigger="available_now")]
    for query in running:
        query.await_termination()
    print("top talkers of link a:")
    for source, sent in sorted(+talkers.rows, key=lambda row: -row[1]):
        print(f"  {source:10} {sent:7,} bytes")
    appeared = [(ts, row[0]) for op, ts, row in alone.history if op == "+"]
    quiet = [entry for entry in appeared if f"{entry[0]:%H:%M:%S}" > "12:01:00"]
    print(f"sources only on link a: {len(+alone.rows)} now; {len(quiet)} became so after link b fell silent, such as")
    for ts, source in quiet[:3]:
        print(f"  {source} at {ts:%H:%M:%S}")
    engine.close()


if __name__ == "__main__":
    main()
