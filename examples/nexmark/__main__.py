"""Runs NEXMark queries over generated events: `python -m examples.nexmark q5 --events 5000`, or `all`."""

from __future__ import annotations

import argparse

from examples.nexmark.generator import SCHEMAS, Generator
from examples.nexmark.queries import SIDE_INPUT, names, text
from sash.testing import replay


def main() -> None:
    """Print the changes of each query and its answer at the end of the events."""
    arguments = argparse.ArgumentParser(prog="python -m examples.nexmark", description=__doc__)
    arguments.add_argument("queries", nargs="+", metavar="QUERY", help="q0 to q22, or all")
    arguments.add_argument("--events", type=int, default=1000)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--runtime", choices=("local", "spark"), default="local")
    given = arguments.parse_args()
    streams = Generator(given.seed).streams(given.events)
    end = max(row["ts"] for rows in streams.values() for row in rows)
    for name in names() if "all" in given.queries else given.queries:
        result = replay(
            text(name), streams, {"side_input": SIDE_INPUT}, schemas=SCHEMAS, until=end, runtime=given.runtime
        )
        print(f"{name}: {len(result.changes)} changes, {len(result.at(end))} rows at the end")
        for row in result.at(end)[:3]:
            print(f"    {row}")


if __name__ == "__main__":
    main()
