"""Runs alike queries as one plan in the local runtime, with queries added and removed between batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from sash.alike import constant_values
from sash.plan.alike import AlikeQueries, Template, find_alike
from sash.plan.catalog import Catalog
from sash.plan.templates import shape_of
from sash.planning import plan_template
from sash.rows import to_dicts
from sash.runtime.legs import static_tables
from sash.runtime.local import LocalRun
from sash.sql import parse
from sash.state.changes import ChangeBatch
from sash.testing import replay
from sash.testing.inputs import Inputs, micro_batches
from sash.testing.times import TimeUnit
from sash.time import BEGINNING, FOREVER

Row = dict[str, Any]


@dataclass
class Run:
    """The changes of every query by number, as (ts, sign, row), and the clocks after every batch."""

    changes: dict[int, list[tuple[int, int, Row]]] = field(default_factory=dict)
    clocks: list[int] = field(default_factory=list)
    state_rows: int = 0
    operators: tuple[str, ...] = ()

    def instants(self, number: int) -> set[int]:
        """The instants at which the answer of a query changes, and those just before."""
        times = {ts for ts, _, _ in self.changes.get(number, [])}
        return times | {ts - 1 for ts in times}

    def at(self, number: int, ts: int) -> Counter[str]:
        """The answer of a query at an instant."""
        folded: Counter[str] = Counter()
        for when, sign, row in self.changes.get(number, []):
            if when <= ts:
                folded[_text(row)] += sign
                assert folded[_text(row)] >= 0, f"query {number}: {row} is removed at {when} but not there"
        return +folded


def _text(row: Row) -> str:
    return repr(sorted((name, round(v, 6) if isinstance(v, float) else v) for name, v in row.items()))


def answers_alone(sql: str, given: Mapping[str, Any], until: int) -> Run:
    """The changes of one query alone, as those of query 0."""
    result = replay(sql, **given, unit="us", until=until)
    return Run({0: [(int(change.ts), 1 if change.op == "+" else -1, change.row) for change in result.changes]})


def one_template(queries: Sequence[str], catalog: Catalog, *, net: bool = False) -> Template:
    """The template of these queries, which must be all alike."""
    (found,) = find_alike([(shape_of(parse(sql, catalog)), net, "") for sql in queries], least=1)
    assert isinstance(found, AlikeQueries)
    assert found.members == tuple(range(len(queries)))
    return found.template


def run_alike(
    queries: Sequence[str],
    given: Mapping[str, Any],
    until: int,
    *,
    batch: int | None = None,
    added: Mapping[int, Sequence[int]] | None = None,
    removed: Mapping[int, Sequence[int]] | None = None,
    net: bool = False,
    shards: int = 2,
) -> Run:
    """Run the queries as one. `added` and `removed` list, by batch, the positions of queries; by default all are in the first."""
    units = TimeUnit("us")
    inputs = Inputs.of(given["streams"], given.get("relations"), None)
    catalog, streams, tables = inputs.read(units, given.get("schemas"), 0, given.get("keys"), None)
    template = one_template(queries, catalog, net=net)
    constants = []
    for sql in queries:
        values = template.constants_of(parse(sql, catalog))
        assert values is not None
        constants.append(constant_values(values))
    planned = plan_template(template, shards)
    local = LocalRun(planned.physical, static_tables(planned.physical, tables), shards)
    added = {0: range(len(queries))} if added is None else added
    removed = removed or {}
    name, run = template.relation.name, Run()
    batches = micro_batches(streams, batch)
    ends = dict.fromkeys((*planned.streams, *planned.changing), until + 1)
    for index, (rows, clocks) in enumerate([*((one.rows, one.clocks) for one in batches), ({}, ends)]):
        updates = [(n, 1) for n in added.get(index, ())] + [(n, -1) for n in removed.get(index, ())]
        more = {name: _updates(template, constants, updates, index)} if updates else {}
        clock = {name: index} if updates else {}
        out = local.advance({**rows, **more}, {**clock, **clocks})
        run.clocks.append(min((v for k, v in clocks.items() if k != name), default=BEGINNING))
        for ts, sign, row in zip(
            out.ts.tolist(), out.sign.tolist(), to_dicts(planned.schema, out.columns), strict=True
        ):
            run.changes.setdefault(row.pop("_query"), []).append((ts, sign, row))
    run.state_rows, run.operators = local.state_rows, tuple(local.counts)
    return run


def _updates(
    template: Template, constants: Sequence[tuple[Any, ...]], updates: list[tuple[int, int]], at: int
) -> ChangeBatch:
    """The updates of the constants in a batch; their time is the number of the batch."""
    rows = [(n, *constants[n]) for n, _ in updates]
    columns = [
        pa.array([row[position] for row in rows], column.dtype)
        for position, column in enumerate(template.relation.schema)
    ]
    times = np.full(len(rows), at, np.int64)
    signs = np.array([sign for _, sign in updates], np.int8)
    return ChangeBatch(times, np.full(len(rows), FOREVER), signs, (*columns, pa.array(times)))
