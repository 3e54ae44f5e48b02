"""A writer or a reader of a window store, as a process that a campaign kills. Commands and replies are lines of JSON.

`python -m campaign.window_process` is a process that has loaded what these need, and forks one for every line that it reads. So
a process that was killed is there again at once, and a campaign kills hundreds in a minute.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sash.window_store.options import SnapshotOptions
from sash.window_store.queries import WindowQueries
from sash.window_store.store.writer import WindowWriter
from tests.window_store.feeding import Rows, layout, made_up, table, truth


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


def run(role: str, root: Path, numbers: list[int], commands: Path, replies: Path) -> None:
    """Execute the commands from one pipe, and reply to the other."""
    with commands.open() as lines, replies.open("w") as output:
        execute = _reader(root) if role == "reader" else _writer(root, *numbers)
        for line in lines:
            output.write(json.dumps(execute(json.loads(line))) + "\n")
            output.flush()


def warm_up() -> None:
    """Load what writers and readers need."""
    with tempfile.TemporaryDirectory(prefix="sash-campaign-") as root:
        write = _writer(Path(root), 10, 2, 0, 1)
        for batch in range(4):
            write({"batch": batch})
        rows, clock = rows_of(1, 10, 0)
        truth(rows, "SELECT COUNT(*) AS n FROM s [RANGE 10 MICROSECONDS]", clock)


def main() -> None:
    """Fork a process for every line on standard input, and tell its number."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    warm_up()
    for line in sys.stdin:
        wanted = json.loads(line)
        child = os.fork()
        if not child:
            with Path(wanted["errors"]).open("a") as errors:
                os.dup2(errors.fileno(), 2)
            os.dup2(2, 1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                places = [Path(wanted[name]) for name in ("root", "commands", "replies")]
                run(wanted["role"], places[0], wanted["numbers"], *places[1:])
            except BaseException:  # noqa: BLE001  (told in the file of errors)
                traceback.print_exc()
            os._exit(0)
        print(child, flush=True)


if __name__ == "__main__":
    main()
