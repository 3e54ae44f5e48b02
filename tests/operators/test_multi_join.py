"""The multi-way join, in every form, against the product of the live rows at every instant (paper 4, section 3)."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.operators.base import Edge
from sash.operators.join_program import Attribute, Graph, Operand, Theta
from sash.operators.multi_join import MultiJoin
from sash.plan.expressions import Column
from sash.state.memory import HeapMemory, Memory
from tests.operators.reference import JOINED, Bag, Life, Row, check, clocks, drive, edge, lives, rows_of, stamped

K, V = (Column(index, name, pa.int64()) for index, name in enumerate("kv"))
DTYPES = (pa.int64(), pa.int64())
HOLDS = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
FORMS: dict[str, dict[str, Any]] = {
    "naive": {"first": False, "buckets": 1},
    "eager-nlj": {"buckets": 1},
    "eager-hash": {},
    "eager-hash-of-two": {"buckets": 2},
    "lazy-nlj": {"buckets": 1, "tau": 4},
    "lazy-hash": {"tau": 7},
    "lazy-naive": {"first": False, "buckets": 1, "tau": 4},
    "general-lazy-nlj": {"first": None, "buckets": 1, "tau": 5},
}


def common(inputs: int) -> Attribute:
    return ((0,),) * inputs


def graphs(inputs: int) -> st.SearchStrategy[Graph]:
    """Joins on a common attribute, along a chain of two attributes, on comparisons alone, and of all these."""
    number = st.integers(0, inputs - 1)
    operand = st.builds(Operand, number, st.sampled_from([K, V]))
    theta = st.builds(Theta, st.sampled_from(sorted(HOLDS)), operand, operand)
    thetas = st.lists(theta.filter(lambda t: t.left.input != t.right.input), max_size=2).map(tuple)
    some = st.tuples(*[st.sampled_from([None, (0,), (1,), (0, 1)])] * inputs)
    linked = some.filter(lambda columns: len({c and len(c) for c in columns} - {None}) == 1)
    linked = linked.filter(lambda columns: sum(c is not None for c in columns) > 1)
    attributes = st.one_of(st.just((common(inputs),)), st.lists(linked, max_size=2).map(tuple))
    return st.builds(Graph, st.just(inputs), attributes, thetas)


def matches(graph: Graph, rows: tuple[Row, ...]) -> bool:
    for attribute in graph.attributes:
        keys = [tuple(row[c] for c in columns) for row, columns in zip(rows, attribute, strict=True) if columns]
        if any(None in key for key in keys) or len(set(keys)) > 1:
            return False
    for theta in graph.thetas:
        values = [rows[side.input][side.value.index] for side in (theta.left, theta.right)]  # type: ignore[union-attr]
        if None in values or not HOLDS[theta.comparison](*values):
            return False
    return True


def answer(graph: Graph, *bags: Bag) -> Bag:
    result: Bag = Counter()
    for rows in product(*bags):
        if matches(graph, rows):
            copies = 1
            for row, bag in zip(rows, bags, strict=True):
                copies *= bag[row]
            result[tuple(value for row in rows for value in row)] += copies
    return result


def orders(graph: Graph, order: tuple[int, ...], first: bool | None, turns: tuple[int, ...]) -> tuple[Any, ...]:
    """An order per origin: the origin first, or the same for all, or the same with the origin somewhere else."""
    if first:
        return tuple(graph.follow(order, origin) for origin in range(graph.inputs))
    if first is False:
        return (order,) * graph.inputs
    others = [[j for j in order if j != origin] for origin in range(graph.inputs)]
    return tuple(
        (*rest[: turns[origin]], origin, *rest[turns[origin] :]) for origin, rest in enumerate(others)
    )  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=60)
@given(data=st.data(), inputs=st.sampled_from([2, 3, 3, 4, 5]))
def test_oracle_multi_join(form: str, data: st.DataObject, inputs: int) -> None:
    options = FORMS[form]
    graph = data.draw(graphs(inputs))
    kinds = data.draw(st.tuples(*[st.sampled_from(JOINED if data.draw(st.booleans()) else JOINED[:2])] * inputs))
    values = st.tuples(st.sampled_from([None, 0, 0, 1]), st.sampled_from([None, 0, 1, 2]))
    entries = [data.draw(lives(kind, values, size=9 if inputs < 5 else 6)) for kind in kinds]
    order = tuple(data.draw(st.permutations(range(inputs))))
    turns = data.draw(st.tuples(*[st.integers(0, inputs - 1)] * inputs))
    chosen = orders(graph, order, options.get("first", True), turns)
    buckets = (options["buckets"],) * inputs if "buckets" in options else None
    columns = tuple((j, c) for j in range(inputs) for c in (0, 1))

    def make(memory: Memory, edges: tuple[Edge, ...]) -> MultiJoin:
        return MultiJoin(memory, edges, graph, columns, chosen, options.get("tau"), buckets)

    edges = [edge(kind, DTYPES) for kind in kinds]
    output = drive(make, edges, entries, data.draw(clocks()), {*kinds} <= {"fifo", "calendar"})
    check(output, entries, lambda *bags: answer(graph, *bags))


COMMON = Graph(3, (common(3),))
FIRST = tuple(COMMON.follow((0, 1, 2), origin) for origin in range(3))


def three(memory: Memory | None = None, **options: Any) -> MultiJoin:
    edges = tuple(edge("fifo", DTYPES) for _ in range(3))
    columns = ((0, 1), (1, 1), (2, 1))
    return MultiJoin(memory or HeapMemory(), edges, COMMON, columns, FIRST, **options)


def rows(*values: tuple[int, int | None, int], window: int = 100) -> Any:
    return stamped([Life(ts, ts + window, (key, number)) for ts, key, number in values], DTYPES)


@pytest.mark.parametrize("options", [{}, {"buckets": (1, 1, 1)}, {"tau": 210}], ids=["hash", "nlj", "lazy"])
def test_table_2_and_3_of_the_paper(options: dict[str, Any]) -> None:
    """The new rows of the third stream give two results, valid until the oldest row goes; one comes too late."""
    output = three(**options).process(
        [rows((90, 1, 90), (100, 1, 100)), rows((150, 1, 150), (180, 1, 180)), rows((195, 1, 195), (205, 1, 205))], 300
    )
    assert sorted(rows_of(output)) == [(100, 150, 195), (100, 180, 195)]
    assert (output.ts.tolist(), output.exp.tolist()) == ([195, 195], [200, 200])


@pytest.mark.parametrize("options", [{}, {"tau": 10}], ids=["eager", "lazy"])
def test_rows_of_one_instant_join_once(options: dict[str, Any]) -> None:
    """Erratum 4: rows with equal timestamps in different streams join once, not three times."""
    output = three(**options).process([rows((3, 1, 0)), rows((3, 1, 1)), rows((3, 1, 2))], 300)
    assert rows_of(output) == [(0, 1, 2)]


@pytest.mark.parametrize("options", [{}, {"tau": 100}], ids=["eager", "lazy"])
def test_a_row_that_expires_as_its_partner_comes_does_not_join(options: dict[str, Any]) -> None:
    """Erratum 4: windows are half open."""
    output = three(**options).process([rows((0, 1, 0)), rows((50, 1, 1)), rows((100, 1, 2))], 300)
    assert len(output) == 0


def test_expired_rows_and_null_keys_leave_nothing() -> None:
    operator = three()
    given = rows(*((0, key, 7) for key in (*range(20), None)))
    operator.process([given, given, rows()], 50)
    assert operator.state_rows == 40
    operator.process([rows(), rows(), rows()], 300)
    assert operator.state_rows == 0
    assert all(keys.live == 0 for keys in operator._keys)


def test_probes_are_the_rows_that_loops_look_at() -> None:
    """Ten rows in the first window, of which one has the key: a scan looks at all, a bucket of five keys at two."""
    first = rows(*((0, key, key) for key in range(10)))
    for buckets, probes in ((None, 1), ((1, 1, 1), 10), ((5, 5, 5), 2)):
        operator = three(buckets=buckets)
        operator.process([first, rows(), rows()], 1)
        before = operator.rows_examined
        operator.process([rows(), rows((1, 3, 3)), rows()], 2)
        assert operator.rows_examined - before == probes


def test_the_output_grows_as_results_ask_for() -> None:
    given = rows(*((0, 1, number) for number in range(30)))
    for tau in (None, 7):
        output = three(tau=tau).process([given, given, given], 50)
        assert len(output) == 30**3 == len(set(rows_of(output)))
