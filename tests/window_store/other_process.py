"""A reader in another process, told what to do line by line on its standard input; it answers with JSON lines."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from pathlib import Path

from sash.window_store.leases import Lease
from sash.window_store.locks import StoreLock
from sash.window_store.queries import WindowQueries


def main(root: Path) -> None:
    queries = WindowQueries(1)
    queries.attach("s", root)
    with ExitStack() as held:
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            said: object = word
            if word == "hold":
                held.enter_context(StoreLock(root).shared())
            elif word == "release":
                held.close()
            elif word == "lease":
                Lease(root, int(rest))
            elif word == "ask":
                isolation, _, sql = rest.partition(" ")
                (answer,) = queries.snapshot(sql, isolation=isolation)
                said = {"rows": answer.to_pylist(), "as_of": answer.as_of, "built": answer.summaries_built}
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
