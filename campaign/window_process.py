"""A writer or a reader of a window store, as a process that a campaign kills. Commands and replies are lines of JSON."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sash.window_store.options import SnapshotOptions
from sash.window_store.queries import WindowQueries
from sash.window_store.store.writer import WindowWriter
from tests.window_store.feeding import Rows, layout, made_up, table


def rows_of(seed: int, length: int, number: int) -> tuple[Rows, int]:
    """The rows of a batch, and the clock after it: sometimes less than a sub-window, sometimes several."""
    start, stop = clock_before(seed, length, number), clock_before(seed, length, number + 1)
    return made_up(seed, start, stop, min(stop - start, 30)), stop


def clock_before(seed: int, length: int, number: int) -> int:
    """The clock before a batch."""
    steps = random.Random(seed)
    return sum(steps.randint(1, 2 * length) for _ in range(number))


def _writer(root: Path, length: int, count: int, retain: int, seed: int) -> Callable[[dict[str, Any]], Any]:
    writer = WindowWriter(root, layout(length, count, retain=retain))

    def apply(command: dict[str, Any]) -> Any:
        rows, clock = rows_of(seed, length, command["batch"])
        return {"updates": writer.apply(command["batch"], table(rows), clock)}

    return apply


def _reader(root: Path) -> Callable[[dict[str, Any]], Any]:
    queries = WindowQueries(2)
    queries.attach("s", root)

    def snapshot(command: dict[str, Any]) -> Any:
        (answer,) = queries.submit(command["sql"], SnapshotOptions(command["isolation"])).result()
        return {
            "rows": answer.to_pylist(),
            "as_of": answer.as_of,
            "restarts": answer.restarts,
            "rescans": answer.rescans,
        }

    return snapshot


def main(role: str, root: Path, numbers: list[int]) -> None:
    """Execute the commands on standard input."""
    execute = _reader(root) if role == "reader" else _writer(root, *numbers)
    for line in sys.stdin:
        print(json.dumps(execute(json.loads(line))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [int(number) for number in sys.argv[3:]])
