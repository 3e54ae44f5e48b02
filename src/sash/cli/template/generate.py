"""Writes random orders into the folder orders, a file per second: python generate.py --seconds 60."""

from __future__ import annotations

import argparse
import json
import random
import time
from datetime import UTC, datetime
from pathlib import Path

SHARES = {"ada": 45, "bo": 30, "cy": 15, "dee": 8, "eli": 2}
"""The customers with their percent of the orders: those of few are silent for ten seconds now and then."""


def orders(chosen: random.Random, at: float, count: int) -> list[dict[str, object]]:
    """Random orders of one second."""
    return [
        {
            "ts": datetime.fromtimestamp(at + number / count, UTC).isoformat(),
            "customer": chosen.choices(list(SHARES), list(SHARES.values()))[0],
            "amount": round(chosen.uniform(1, 100), 2),
        }
        for number in range(count)
    ]


def main() -> None:
    """Write a file per second, each under its final name at once, so that no reader sees a part of it."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--seconds", type=int, default=60, help="how long")
    arguments.add_argument("--rate", type=int, default=5, help="orders per second")
    arguments.add_argument("--pause", type=float, default=1, help="seconds between two files")
    arguments.add_argument("--seed", type=int, default=0, help="the same orders for the same seed")
    given = arguments.parse_args()
    chosen, folder, start = random.Random(given.seed), Path("orders"), time.time()
    folder.mkdir(exist_ok=True)
    for second in range(given.seconds):
        rows = orders(chosen, start + second, given.rate)
        name = f"{int(start * 1000)}-{second:06}.json"
        draft = folder / f".{name}"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
        draft.replace(folder / name)
        time.sleep(given.pause)


if __name__ == "__main__":
    main()
