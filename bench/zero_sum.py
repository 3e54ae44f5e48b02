"""Zero-sum at scale: transfers between ten accounts, out of order, in a job that is killed at random.

Every transfer adds to one account and takes from another, in two streams that are shuffled on their own. Over the rows of the
last minute, the balances add up to zero at every instant, and each of them is known: both are checked at every instant at which
a row comes or goes, from the changelog that the job has written.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from bench.killing import killed, start
from bench.report import Figures
from bench.runs import scratch
from sash.errors import SashError
from tests.test_zero_sum import ACCOUNTS, SECOND, SLACK, SQL, WINDOW, Check, transfers

_PER_FILE = 100_000
_END = 3_600 * SECOND
"""A time after the last row has left its window."""


def measure(count: int, kills: int, seed: int) -> Figures:
    """Write the transfers, run the job and kill it so many times, and check every instant of what it has written."""
    rnd = random.Random(seed)
    console = Console(stderr=True)
    with scratch() as home:
        with console.status("writing the transfers"):
            streams = transfers(count, seed)
            for name, (ts, account) in streams.items():
                _write(home / name, ts, account)
        (home / "job.sql").write_text(_script(home))
        begun = time.monotonic()
        with console.status("the job, killed at random"):
            moments = [killed(home, rnd) for _ in range(kills)]
            if start(home).wait():
                raise SashError((home / "log").read_text()[-2_000:])
        seconds = time.monotonic() - begun
        with console.status("checking every instant"):
            checked = Check(streams)
            for part in _parts(home / "out"):
                checked.take(*part)
            checked.end()
    return {
        "transfers": count,
        "accounts": ACCOUNTS,
        "window_s": WINDOW // SECOND,
        "out_of_order_s": SLACK // SECOND,
        "rows_per_batch": 2 * _PER_FILE,
        "seed": seed,
        "killed_after_batches": moments,
        "seconds": round(seconds, 1),
        "changes": checked.changes,
        "instants": checked.instants,
    }


def _write(folder: Path, ts: Any, account: Any) -> None:
    """Write a stream as files; its last row moves its clock to the end."""
    folder.mkdir()
    for number, first in enumerate(range(0, len(ts) + _PER_FILE, _PER_FILE)):
        times, accounts = ts[first : first + _PER_FILE], account[first : first + _PER_FILE]
        if not len(times):
            times, accounts = np.array([_END + SLACK]), np.array([0])
        rows = {"ts": times, "account": accounts, "amount": np.ones(len(times), np.int64)}
        path = folder / f"{number:05d}.parquet"
        pq.write_table(pa.table(rows), path)
        os.utime(path, (10**9 + number, 10**9 + number))


def _script(home: Path) -> str:
    made = [
        f"CREATE STREAM {name} (ts BIGINT, account BIGINT, amount BIGINT) USING parquet OPTIONS (path '{home / name}', "
        f"maxFilesPerTrigger 1, maxFileAge '36500d') SLACK '{SLACK // SECOND} seconds';"
        for name in ("credits", "debits")
    ]
    sink = f"INTO changelog (path '{home / 'out'}', compact 0) MODE changes TRIGGER 'available_now';"
    return "\n".join([*made, f"CREATE QUERY balances AS {SQL.strip()} {sink}"]) + "\n"


def _parts(log: Path) -> Iterator[tuple[Any, Any, Any, Any]]:
    """The changes of every batch in order: times, signs, accounts and balances."""
    numbers = sorted(int(path.name.removeprefix("batch=")) for path in log.glob("batch=*"))
    for number in numbers:
        files = sorted((log / f"batch={number}").glob("*.parquet"))
        table = pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])
        sign = np.where(pc.equal(table["_op"], "+").to_numpy(), 1, -1).astype(np.int8)
        ts = table["_ts"].cast(pa.int64()).to_numpy()
        order = np.lexsort((sign, ts))
        yield ts[order], sign[order], table["account"].to_numpy()[order], table["balance"].to_numpy()[order]


def table(found: Figures) -> Table:
    """The figures as a table."""
    shown = Table("", "", title="Zero-sum")
    for name, value in found.items():
        shown.add_row(re.sub("_", " ", name), f"{value:,}" if isinstance(value, int) else str(value))
    return shown


def page(found: Figures) -> str:
    """The page of the experiment."""
    killed_after = ", ".join(str(batch) for batch in found["killed_after_batches"]) or "never"
    return f"""# Zero-sum

{found["transfers"]:,} transfers between {found["accounts"]} accounts, as two streams of credits and debits, each shuffled on its \
own by up to {found["out_of_order_s"]} seconds. A query adds up the balances over the last {found["window_s"]} seconds:

```sql
{SQL.strip()}
```

Whatever arrives when, all balances together are 0 at every instant, and each balance is the sum of the transfers that are \
valid then. The job ran on Spark and wrote its changes to a changelog. Its processes were killed by SIGKILL \
{len(found["killed_after_batches"])} times, at random moments of a batch, and started again from the checkpoint.

Every one of the {found["changes"]:,} changes was checked: at each of {found["instants"]:,} instants the balances add up to 0, \
every balance that is told is the expected one, and no movement is missing.

| | |
|---|---:|
| transfers | {found["transfers"]:,} |
| rows per batch | {found["rows_per_batch"]:,} |
| killed after batches | {killed_after} |
| seconds, with restarts | {found["seconds"]:,} |
| instants checked | {found["instants"]:,} |

Repeat it with `python -m bench zero-sum --transfers {found["transfers"]} --kills {len(found["killed_after_batches"])} \
--seed {found["seed"]} --save`.
"""
