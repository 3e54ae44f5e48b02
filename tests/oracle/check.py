"""Whether an engine's change stream folds to the oracle's answer at every instant, and keeps its promises."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, Protocol

from tests.oracle.case import Case
from tests.oracle.duck import Bag, Oracle, Row, bag_of

TOLERANCE = 1e-9


class Change(Protocol):
    """One element of a change stream."""

    @property
    def ts(self) -> float: ...
    @property
    def op(self) -> str: ...
    @property
    def row(self) -> Row: ...
    @property
    def released(self) -> float | None: ...


class Result(Protocol):
    """What replay gives back."""

    @property
    def changes(self) -> Sequence[Change]: ...
    @property
    def late(self) -> int: ...
    @property
    def state_rows(self) -> int: ...

    def at(self, instant: int, /) -> Sequence[Row]: ...


Engine = Callable[..., Any]


def _replay() -> Engine:
    from sash.testing import replay

    return replay


def run(case: Case, engine: Engine | None = None, **options: Any) -> Result:
    """The case through replay, or through another engine with its signature."""
    chosen = engine or _replay()
    inputs = {"relations": case.relations, "nrrs": case.nrrs, "schemas": case.schemas, "keys": case.keys}
    given = {name: dict(rows) for name, rows in inputs.items() if rows}
    streams = {name: [dict(row) for row in rows] for name, rows in case.streams.items()}
    result: Result = chosen(case.sql, streams=streams, unit=case.unit, until=until_of(case), **given, **options)
    return result


@functools.lru_cache(maxsize=1024)
def oracle_of(case: Case) -> Oracle:
    """The case's oracle; it remembers its answers from one run of the case to the next."""
    tables = {**case.relations, **case.nrrs}
    return Oracle(case.duck, case.streams, case.views, tables, case.schemas, case.unit, case.keys)


def until_of(case: Case) -> int:
    """The end of the case's input: as it says, or a little past the last expiry."""
    return case.until if case.until is not None else oracle_of(case).last_edge() + 3


def assert_oracle(case: Case, engine: Engine | None = None, **options: Any) -> Result:
    """Run the case, compare Q(T) at every instant with the oracle's, and check what holds for every change stream."""
    result = run(case, engine, **options)
    assert result.late == 0, f"{case.name}: {result.late} rows counted as late\n{describe(case, options)}"
    assert_answers(case, result, until_of(case), options)
    assert_invariants(
        result,
        # Where joins purge at intervals, the last expired rows may still be there.
        drained=case.drains and until_of(case) > oracle_of(case).last_edge() and not options.get("purge"),
        netted=options.get("shards") == 1,
    )
    return result


def assert_answers(case: Case, result: Result, until: int, options: dict[str, Any]) -> None:
    """Compare Q(T) with the oracle's at every instant up to the last one."""
    oracle = oracle_of(case)
    fold = Fold(result)
    for instant in oracle.instants(until):
        answer = oracle.at(instant)
        for source, rows in (("at", result.at(instant)), ("changes", fold.to(instant))):
            for row in rows:
                names = tuple(row)
                assert names == answer.columns, f"{case.name}: columns {names}, expected {answer.columns}"
            missing, surplus = difference(answer.bag, bag_of(row.values() for row in rows), case.scale)
            assert (missing, surplus) == (Counter(), Counter()), (
                f"{case.name}: Q({instant}) by `{source}` is wrong\n"
                f"missing: {plain(missing)}\nsurplus: {plain(surplus)}\n"
                f"expected: {plain(answer.bag)}\n{describe(case, options)}"
            )


def assert_invariants(result: Result, *, drained: bool = False, netted: bool = True) -> None:
    """What every change stream keeps, whatever the query.

    No `-` without its `+`, value for value; time never goes back; a change is released at its instant or later; with
    `netted`, no row is both added and removed at one instant; with `drained`, nothing is left in state.
    """
    live: Bag = Counter()
    previous = -math.inf
    for ts, changes in groupby(result.changes, key=lambda change: change.ts):
        assert ts >= previous, f"time goes back from {previous} to {ts}"
        previous = ts
        net: Counter[tuple[Any, ...]] = Counter()
        added: set[tuple[Any, ...]] = set()
        removed: set[tuple[Any, ...]] = set()
        for change in changes:
            assert change.op in ("+", "-"), f"unknown op {change.op!r} at {ts}"
            assert change.released is None or change.released >= ts, f"{change} is released before its instant"
            (row,) = bag_of([change.row.values()])
            net[row] += 1 if change.op == "+" else -1
            (added if change.op == "+" else removed).add(row)
        assert not netted or not added & removed, f"added and removed at {ts}: {plain(added & removed)}"
        for row, count in net.items():
            live[row] += count
            assert live[row] >= 0, f"removed at {ts} without being there: {plain([row])}"
    assert not drained or result.state_rows == 0, f"{result.state_rows} rows of state left after the last expiry"


class Fold:
    """The change stream folded up to growing instants, by code of its own."""

    def __init__(self, result: Result) -> None:
        self._changes = list(result.changes)
        self._next = 0
        self._rows: list[Row] = []

    def to(self, instant: int) -> list[Row]:
        """The rows that changes up to and including the instant leave."""
        removals: list[Row] = []
        while self._next < len(self._changes) and self._changes[self._next].ts <= instant:
            change = self._changes[self._next]
            (self._rows if change.op == "+" else removals).append(change.row)
            self._next += 1
        gone = bag_of(row.values() for row in removals)
        left: list[Row] = []
        for row in self._rows:
            (key,) = bag_of([row.values()])
            if gone[key] > 0:
                gone[key] -= 1
            else:
                left.append(row)
        self._rows = left
        assert not +gone, f"removed without being there by {instant}: {plain(+gone)}"
        return list(left)


def difference(expected: Bag, actual: Bag, scale: float) -> tuple[Bag, Bag]:
    """What is missing and what is surplus; doubles match within 1e-9 of their size or of `scale`."""
    missing, surplus = expected - actual, actual - expected
    for row in list(missing.elements()):
        match = next((other for other in surplus if surplus[other] and close(row, other, scale)), None)
        if match is not None:
            missing[row] -= 1
            surplus[match] -= 1
    return +missing, +surplus


def close(one: tuple[Any, ...], other: tuple[Any, ...], scale: float) -> bool:
    """Whether two canonical rows agree but for the last digits of their doubles."""
    return len(one) == len(other) and all(
        a == b
        or (
            a[0] == b[0] == "double"
            and "NaN" not in (a[1], b[1])
            and abs(a[1] - b[1]) <= TOLERANCE * max(scale, abs(a[1]), abs(b[1]))
        )
        for a, b in zip(one, other, strict=True)
    )


def plain(rows: Any) -> list[tuple[Any, ...]]:
    """Canonical rows as a reader wants to see them."""
    listed = rows.elements() if isinstance(rows, Counter) else rows
    return sorted((tuple(value for _, value in row) for row in listed), key=repr)


def describe(case: Case, options: dict[str, Any]) -> str:
    """Everything needed to run a failing case again."""
    lines = [f"sash: {case.sql}", f"duck: {case.duck}", f"unit: {case.unit}, until: {until_of(case)}, {options}"]
    for kind in ("streams", "relations", "nrrs"):
        for name, rows in getattr(case, kind).items():
            lines += [f"{kind[:-1]} {name}:", *(f"  {dict(row)}" for row in rows)]
    return "\n".join(lines)
