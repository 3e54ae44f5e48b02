"""The cost of a change to a window function by the number of rows in its partition, and of one compared with an aggregate.

All rows are in one partition, and leave it in the order in which they came. A change is a row that arrives or ends, or a row
of the answer that changes with it: functions such as ROW_NUMBER change many rows at a time. The operator runs alone, without
Spark, so that nothing else is in the figures.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Console
from rich.table import Table

from bench.data import SCHEMA, Sales
from bench.report import Figures
from sash.cli.catalog import declared_catalog
from sash.errors import SashError
from sash.operators.base import Operator
from sash.physical.nodes import Leaf, Over, ScalarComparison, TopK, walk
from sash.planning import plan_query
from sash.runtime.build import build
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory
from sash.time import SECOND

_WINDOW = 60
_MOST_OUTPUT = 2_000_000
_MOST_ROWS = 20_000
_FLAT = 2


@dataclass(frozen=True)
class FunctionCase:
    """A query over `sales`, and whether a change to a row changes the answers of all rows behind it."""

    name: str
    sql: str
    far_reaching: bool = False


CASES = (
    FunctionCase("first 3 rows", "SELECT price FROM sales QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) <= 3"),
    FunctionCase("first 100 rows", "SELECT price FROM sales QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) <= 100"),
    FunctionCase("oldest 3 rows", "SELECT price FROM sales QUALIFY ROW_NUMBER() OVER (ORDER BY ts) <= 3"),
    FunctionCase("first 3 ranks", "SELECT price FROM sales QUALIFY RANK() OVER (ORDER BY price DESC) <= 3"),
    FunctionCase("first 3 dense ranks", "SELECT price FROM sales QUALIFY DENSE_RANK() OVER (ORDER BY price DESC) <= 3"),
    FunctionCase("LAG by time", "SELECT LAG(price) OVER (ORDER BY ts) AS x FROM sales"),
    FunctionCase("LAG by price", "SELECT LAG(item_id) OVER (ORDER BY price) AS x FROM sales"),
    FunctionCase("LEAD by price", "SELECT LEAD(item_id, 2) OVER (ORDER BY price) AS x FROM sales"),
    FunctionCase("AVG of 3 rows by time", "SELECT AVG(price) OVER (ORDER BY ts ROWS 2 PRECEDING) AS x FROM sales"),
    FunctionCase(
        "AVG of 3 rows by price", "SELECT AVG(quantity) OVER (ORDER BY price ROWS 2 PRECEDING) AS x FROM sales"
    ),
    FunctionCase("AVG of 500 rows by time", "SELECT AVG(price) OVER (ORDER BY ts ROWS 499 PRECEDING) AS x FROM sales"),
    FunctionCase(
        "SUM of 10 seconds",
        "SELECT SUM(price) OVER (ORDER BY ts RANGE INTERVAL 10 SECONDS PRECEDING) AS x FROM sales",
        far_reaching=True,
    ),
    FunctionCase(
        "SUM of near values",
        "SELECT SUM(price) OVER (ORDER BY item_id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x FROM sales",
    ),
    FunctionCase("ROW_NUMBER", "SELECT ROW_NUMBER() OVER (ORDER BY ts) AS x FROM sales", far_reaching=True),
    FunctionCase("RANK", "SELECT RANK() OVER (ORDER BY price) AS x FROM sales", far_reaching=True),
    FunctionCase("DENSE_RANK", "SELECT DENSE_RANK() OVER (ORDER BY price) AS x FROM sales", far_reaching=True),
    FunctionCase("PERCENT_RANK", "SELECT PERCENT_RANK() OVER (ORDER BY price) AS x FROM sales", far_reaching=True),
    FunctionCase("CUME_DIST", "SELECT CUME_DIST() OVER (ORDER BY price) AS x FROM sales", far_reaching=True),
    FunctionCase("NTILE", "SELECT NTILE(1000) OVER (ORDER BY price) AS x FROM sales", far_reaching=True),
    FunctionCase("SUM of all before", "SELECT SUM(price) OVER (ORDER BY ts) AS x FROM sales", far_reaching=True),
    FunctionCase("MAX of all before", "SELECT MAX(price) OVER (ORDER BY ts) AS x FROM sales"),
    FunctionCase(
        "MAX of 10 seconds", "SELECT MAX(price) OVER (ORDER BY ts RANGE INTERVAL 10 SECONDS PRECEDING) AS x FROM sales"
    ),
    FunctionCase("LAST_VALUE by price", "SELECT LAST_VALUE(item_id) OVER (ORDER BY price) AS x FROM sales"),
    FunctionCase("FIRST_VALUE", "SELECT FIRST_VALUE(price) OVER (ORDER BY ts) AS x FROM sales", far_reaching=True),
    FunctionCase("SUM of the partition", "SELECT SUM(price) OVER () AS x FROM sales", far_reaching=True),
    FunctionCase("above the average", "SELECT price FROM sales WHERE price > (SELECT AVG(price) FROM sales)"),
)


def measure(sizes: str, functions: str, repeats: int) -> Figures:
    """Measure the nanoseconds per change for every function and number of rows; the fastest of some runs counts."""
    rows = sorted(int(size) for size in sizes.split(","))
    console = Console(stderr=True)
    results = []
    for case in _chosen(functions):
        times = {}
        for size in rows:
            with console.status(f"{case.name}: {size:,} rows"):
                times[size] = nanoseconds(case, size, repeats)
        results.append(
            {
                "function": case.name,
                "sql": case.sql,
                "ns_per_change": {str(size): round(ns) for size, ns in times.items()},
                "ratio": round(times[rows[-1]] / times[rows[0]], 2),
            }
        )
    return {"windows": results}


def _chosen(names: str) -> tuple[FunctionCase, ...]:
    if names == "all":
        return CASES
    known = {case.name.lower(): case for case in CASES}
    wanted = [name.strip().lower() for name in names.split(",")]
    for name in wanted:
        if name not in known:
            raise SashError(f"unknown function {name!r}; use one of {', '.join(known)}")
    return tuple(known[name] for name in wanted)


class ComparedRows(Operator):
    """A comparison of rows with an aggregate of the same rows, both of which get each batch."""

    def __init__(self, comparison: Operator, aggregate: Operator) -> None:
        self._comparison, self._aggregate = comparison, aggregate

    def process(self, inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
        return self._comparison.process([*inputs, self._aggregate.process(inputs, clock)], clock)

    @property
    def state_rows(self) -> int:
        return self._comparison.state_rows


def operator_of(case: FunctionCase) -> tuple[Operator, list[str]]:
    """The operator that computes the function, and the columns that it takes."""
    planned = plan_query(f"{case.sql} WINDOW {_WINDOW} SECONDS", declared_catalog([f"sales({SCHEMA})"], []), shards=1)
    (stage,) = planned.physical.stages
    node = next(node for node in walk(stage.root) if isinstance(node, Over | TopK | ScalarComparison))
    operator = build(node, HeapMemory(), {})
    if isinstance(node, ScalarComparison):
        aggregate = node.inputs[1]
        assert not isinstance(aggregate, Leaf)
        operator = ComparedRows(operator, build(aggregate, HeapMemory(), {}))
    return operator, [field.name for field in node.inputs[0].output.schema]


def nanoseconds(case: FunctionCase, size: int, repeats: int) -> float:
    """Processor time per change in a window of so many rows, each of which replaces another."""
    operator, columns = operator_of(case)
    rate = size / _WINDOW
    sales = Sales(rate, items=max(size // 3, 1))
    random = np.random.default_rng(1)
    last = _step(operator, columns, sales, size, 0, random, together=True)[2]
    rows = max(1, min(_MOST_ROWS, _MOST_OUTPUT // size if case.far_reaching else _MOST_ROWS, size))
    last = _step(operator, columns, sales, rows, last, random)[2]
    best = float("inf")
    for _ in range(repeats):
        changes, seconds, last = _step(operator, columns, sales, rows, last, random)
        best = min(best, seconds / changes)
    return best * 1e9


def _step(
    operator: Operator,
    columns: list[str],
    sales: Sales,
    rows: int,
    after: int,
    random: np.random.Generator,
    *,
    together: bool = False,
) -> tuple[int, float, int]:
    """Process new rows and as many that end: the changes of input and output, the processor time, and the time reached.

    The first rows arrive `together`, so that each changes the answer once.
    """
    gap = round(SECOND / sales.rate)
    ts = after + gap * np.arange(1, rows + 1)
    made = sales.table(rows, after, random)
    table = made.set_column(made.column_names.index("ts"), "ts", pa.array(ts, made.column("ts").type))
    arrival = np.full(rows, ts[0]) if together else ts
    ends = ts + _WINDOW * SECOND + gap // 2
    batch = ChangeBatch.stamped(arrival, ends, tuple(_column(table, name) for name in columns))
    before = operator.state_rows
    start = time.process_time()
    output = operator.process([batch], int(ts[-1]) + 1)
    seconds = time.process_time() - start
    return 2 * rows + before - operator.state_rows + len(output), seconds, int(ts[-1])


def _column(table: pa.Table, name: str) -> pa.Array:
    """A column of the sales, or a bound of a RANGE frame: an item number or a time, with an offset."""
    if name in table.column_names:
        return table.column(name).combine_chunks()
    if name.startswith("timestamp_add_micros(ts, "):
        micros = table.column("ts").combine_chunks()
        added = int(name.removeprefix("timestamp_add_micros(ts, ").rstrip(")"))
        return pc.add(micros.view(pa.int64()), added).view(micros.type)
    items = table.column("item_id").cast(pa.int64()).combine_chunks()
    _, _, offset = name.partition(" AS BIGINT)")
    return pc.add(items, int(offset.replace(" ", "") or "0"))


def table(figures: Figures) -> Table:
    """The figures as a table."""
    results: list[dict[str, Any]] = figures["windows"]
    shown = Table(title="Nanoseconds per change of input and output, by rows in the partition")
    shown.add_column("function")
    for size in results[0]["ns_per_change"]:
        shown.add_column(f"{int(size):,}", justify="right")
    shown.add_column("largest / smallest", justify="right")
    for result in results:
        shown.add_row(
            result["function"], *(f"{ns:,}" for ns in result["ns_per_change"].values()), f"{result['ratio']:.2f}"
        )
    return shown


def page(figures: Figures) -> str:
    """The page of the experiment."""
    results: list[dict[str, Any]] = figures["windows"]
    sizes = list(results[0]["ns_per_change"])
    lines = [
        "# Window functions",
        "",
        (
            "`python -m bench windows` measures the processor time per change of a window function, by the number of rows in one "
            "partition. A change is a row that arrives or ends, or a row of the answer that changes with it. Rows leave the "
            "window in the order in which they came, and have random prices. The operator runs alone, without Spark."
        ),
        "",
        "Nanoseconds per change:",
        "",
        f"| function | query | {' | '.join(f'{int(size):,} rows' for size in sizes)} | largest / smallest |",
        f"|---|---|{'---:|' * len(sizes)}---:|",
    ]
    for result in results:
        figures_of = " | ".join(f"{ns:,}" for ns in result["ns_per_change"].values())
        sql = result["sql"].replace("SELECT ", "", 1).replace(" FROM sales", "").replace(" AS x", "")
        lines.append(f"| {result['function']} | `{sql}` | {figures_of} | {result['ratio']:.2f} |")
    steep = [f"{result['function']} ({result['ratio']:.2f})" for result in results if result["ratio"] > _FLAT]
    lines += [
        "",
        (
            f"Flat means here that a change costs at most {_FLAT} times as much with the most rows as with the fewest. "
            + (
                f"{len(results) - len(steep)} of {len(results)} functions are; the others are {', '.join(steep)}. "
                * bool(steep)
            )
            + "NTILE(1000) of 1,000 rows has one row per bucket, all of them at borders, and neighbours are cheap to find; with more "
            "rows every border is searched for. State of a million rows does not fit in the processor's caches: functions that "
            "read rows at random places, by price, show it most."
        ),
        "",
        (
            "The rows of a partition are in a tree of wide nodes, so the cost of a search hardly grows with their number. Where "
            "rows end in order of arrival, the first rows of a partition are kept without those that can never be among them. "
            "What a function costs in changes of its answer is under [window functions](../sql.md#window-functions): "
            "ROW_NUMBER changes the numbers of all rows behind a new one, and this cannot be avoided."
        ),
        "",
    ]
    return "\n".join(lines)
