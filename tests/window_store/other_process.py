"""A reader in another process. It executes the commands on its standard input and replies with JSON lines."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sash.window_store.options import SnapshotOptions
from sash.window_store.queries import WindowQueries
from sash.window_store.store.locks import Lease, StoreLock


def main(root: Path) -> None:
    queries = WindowQueries(1)
    queries.attach("s", root)
    with ExitStack() as held:
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            reply: object = word
            if word == "hold":
                held.enter_context(StoreLock(root).shared())
            elif word == "release":
                held.close()
            elif word == "lease":
                Lease(root, int(rest))
            elif word == "snapshot":
                isolation: Any
                isolation, _, sql = rest.partition(" ")
                (answer,) = queries.submit(sql, SnapshotOptions(isolation)).result()
                reply = {"rows": answer.to_pylist(), "as_of": answer.as_of, "built": answer.summaries_built}
            sys.stdout.write(json.dumps(reply) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
