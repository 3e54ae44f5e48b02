"""GROUP BY and global aggregates against recomputation at every instant, with exact arithmetic."""

from __future__ import annotations

import datetime
import decimal
import itertools
import math
import random
import struct
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sash.errors import EvaluationError, StrategyError, UnsupportedSqlError
from sash.operators.aggregate import Aggregate
from sash.operators.base import Edge, Expiry
from sash.operators.expire import Expire
from sash.plan.expressions import AggregateCall, Column
from sash.state.changes import ChangeBatch
from sash.state.memory import HeapMemory, Memory
from sash.time import FOREVER

Row = tuple[Any, ...]
K, I, D, C, S, B, T, F, U, Z = range(10)
DTYPES = (
    pa.string(), pa.int32(), pa.float64(), pa.decimal128(10, 2), pa.string(), pa.bool_(), pa.date32(), pa.float32(),
    pa.timestamp("us", tz="UTC"), pa.binary(),
)  # fmt: skip
EXPIRIES: tuple[Expiry, ...] = ("fifo", "calendar", "explicit")


def call(
    function: str, *columns: int, dtype: pa.DataType | None = None, distinct: bool = False, p: float | None = None
) -> AggregateCall:
    arguments = tuple(Column(index, f"c{index}", DTYPES[index]) for index in columns)
    return AggregateCall(function, arguments, dtype or _dtype(function, columns), distinct, p)


def _dtype(function: str, columns: tuple[int, ...]) -> pa.DataType:
    if function.startswith("count"):
        return pa.int64()
    dtype = DTYPES[columns[0]]
    if function in ("min", "max", "min_by", "max_by", "first", "last"):
        return dtype
    if pa.types.is_decimal(dtype) and function in ("sum", "avg"):
        return pa.decimal128(20, 2) if function == "sum" else pa.decimal128(14, 6)
    return pa.int64() if function == "sum" and pa.types.is_integer(dtype) else pa.float64()


def bits(value: Any) -> Any:
    """A value such that equality is equality bit for bit."""
    if isinstance(value, float):
        return ("f", struct.pack("<d", math.nan if math.isnan(value) else value))
    return value


def one_zero(value: Any) -> Any:
    return value + 0.0 if isinstance(value, float) else value


def order_key(value: Any) -> tuple[Any, ...]:
    """NULL first, NaN last, strings by their bytes; -0.0 equals 0.0."""
    if value is None:
        return (0,)
    if isinstance(value, str):
        return (1, value.encode())
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value + 0.0)
    return (1, value)


def exact_key(value: Any) -> tuple[Any, ...]:
    """As `order_key`, but -0.0 is before 0.0."""
    key = order_key(value)
    return (*key, math.copysign(1.0, value)) if isinstance(value, float) and value == 0 else (*key, 1.0)


def total(values: list[float]) -> float:
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    return float(sum(map(Fraction, values), Fraction(0)))


def expected_value(aggregate: AggregateCall, rows: list[tuple[int, Row]], timed: bool) -> Any:
    """What the aggregate is over these (ts, row) pairs; ts breaks ties if `timed`."""
    function = aggregate.function
    if function == "count_star":
        return len(rows)
    at = [column.index for column in aggregate.arguments]
    if function in ("first", "last", "min_by", "max_by"):
        if function in ("first", "last"):
            keyed = [((ts,), row) for ts, row in rows]
        else:
            found_by = [(ts if timed else 0, row) for ts, row in rows if row[at[1]] is not None]
            keyed = [((order_key(row[at[1]]), ts), row) for ts, row in found_by]
        keyed = [((*key, *map(exact_key, row)), row[at[0]]) for key, row in keyed]
        if not keyed:
            return None
        return (max if function in ("last", "max_by") else min)(keyed, key=lambda pair: pair[0])[1]
    found = [tuple(row[index] for index in at) for _, row in rows]
    found = [values for values in found if None not in values]
    if aggregate.distinct and function not in ("min", "max"):
        found = list({tuple(map(order_key, values)): values for values in found}.values())
    if function == "count":
        return len(found)
    values = [value[0] for value in found]
    if aggregate.distinct and function not in ("min", "max"):
        values = list(map(one_zero, values))
    if not values:
        return None
    if function in ("min", "max"):
        return (min if function == "min" else max)(values, key=exact_key)
    n = len(values)
    if function in ("sum", "avg") and isinstance(values[0], decimal.Decimal):
        with decimal.localcontext(prec=60):
            exact = sum(values) if function == "sum" else sum(values) / n
            return exact.quantize(decimal.Decimal(1).scaleb(-aggregate.dtype.scale), decimal.ROUND_HALF_UP)
    if function in ("sum", "avg") and isinstance(values[0], int):
        return sum(values) if function == "sum" else float(sum(values)) / n
    numbers = sorted(map(float, values), key=exact_key)
    if function in ("sum", "avg"):
        return total(numbers) if function == "sum" else total(numbers) / n
    if function in ("median", "percentile"):
        position = (n - 1) * (0.5 if aggregate.parameter is None else aggregate.parameter)
        low, high = numbers[math.floor(position)], numbers[math.ceil(position)]
        share = position - math.floor(position)
        return low if exact_key(low) == exact_key(high) else (1.0 - share) * low + share * high
    sample = function.endswith("_samp")
    if sample and n == 1:
        return None
    if not all(map(math.isfinite, numbers)):
        return math.nan
    exact = list(map(Fraction, numbers))
    variance = float(n * sum(x * x for x in exact) - sum(exact) ** 2) / n / (n - 1 if sample else n)
    return math.sqrt(variance) if function.startswith("stddev") else variance


def expected_changes(
    events: list[tuple[int, int, Row]], keys: tuple[int, ...], calls: tuple[AggregateCall, ...], until: int,
    timed: bool,
) -> Counter[tuple[int, int, Row]]:  # fmt: skip
    """The change stream, as a multiset of (ts, sign, row), by recomputing every group at every instant."""
    instants = {ts for ts, _, _ in events} | {exp for _, exp, _ in events if exp < until}
    if not keys:
        instants.add(min([0, *instants]))
    before: dict[Row, Row] = {}
    result: Counter[tuple[int, int, Row]] = Counter()
    for instant in sorted(instants):
        groups: dict[Row, list[tuple[int, Row]]] = {} if keys else {(): []}
        for ts, exp, row in events:
            if ts <= instant < exp:
                groups.setdefault(tuple(bits(one_zero(row[key])) for key in keys), []).append((ts, row))
        after = {key: (*key, *(bits(expected_value(c, rows, timed)) for c in calls)) for key, rows in groups.items()}
        for key in before.keys() | after.keys():
            if before.get(key) != after.get(key):
                if key in before:
                    result[instant, -1, before[key]] += 1
                if key in after:
                    result[instant, 1, after[key]] += 1
        before = after
    return result


def batches(events: list[tuple[int, int, Row]], cuts: list[int], until: int) -> list[tuple[ChangeBatch, int]]:
    result = []
    start = -(2**40)
    for clock in sorted({*cuts, until}):
        part = [event for event in events if start <= event[0] < clock]
        columns = [pa.array([row[index] for _, _, row in part], dtype) for index, dtype in enumerate(DTYPES)]
        ts = np.array([event[0] for event in part], np.int64)
        exp = np.array([event[1] for event in part], np.int64)
        result.append((ChangeBatch.stamped(ts, exp, columns), clock))
        start = clock
    return result


def run(
    events: list[tuple[int, int, Row]], cuts: list[int], until: int, expiry: Expiry,
    keys: tuple[int, ...], calls: tuple[AggregateCall, ...], memory: Memory | None = None, timed: bool = True,
) -> Counter[tuple[int, int, Row]]:  # fmt: skip
    """The change stream of the operator, made anew on its memory for every batch."""
    memory = memory or HeapMemory()
    result: Counter[tuple[int, int, Row]] = Counter()
    last = (-(2**62), -1)
    for stamped, clock in batches(events, cuts, until):
        batch = stamped
        if expiry == "explicit":
            batch = Expire(memory.scope("expire"), (Edge(DTYPES, "calendar", 8, 3),)).process([stamped], clock)
        operator = Aggregate(memory.scope("aggregate"), (Edge(DTYPES, expiry, 8, 3),), keys, calls, timed=timed)
        output = operator.process([batch], clock)
        dtypes = [DTYPES[key] for key in keys] + [c.dtype for c in calls]
        assert [column.type for column in output.columns] == dtypes
        assert (output.exp == FOREVER).all()
        for column in output.columns:
            column.validate(full=True)
        rows = zip(*(column.to_pylist() for column in output.columns), strict=True)
        for ts, sign, row in zip(output.ts.tolist(), output.sign.tolist(), rows, strict=True):
            assert last <= (ts, sign)
            assert ts < clock
            last = (ts, sign)
            result[ts, sign, tuple(map(bits, row))] += 1
    return result


def check(
    events: list[tuple[int, int, Row]], cuts: list[int], keys: tuple[int, ...], calls: tuple[AggregateCall, ...],
    expiries: tuple[Expiry, ...] = EXPIRIES, timed: bool = True,
) -> None:  # fmt: skip
    until = max([ts for ts, _, _ in events] + [exp for _, exp, _ in events if exp != FOREVER] + [0]) + 1
    events = sorted(events, key=lambda event: event[0])
    expected = expected_changes(events, keys, calls, until, timed)
    ordered = all(a[1] <= b[1] for a, b in itertools.pairwise(events))
    for expiry in expiries:
        if expiry == "fifo" and not ordered:
            continue
        assert run(events, cuts, until, expiry, keys, calls, timed=timed) == expected


doubles = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([0.1, -0.0, 1e16, -1e16, 1e-12, 5e-324, 1e300, math.inf, -math.inf, math.nan]),
    st.floats(-1e3, 1e3, width=32),
)
decimals = st.integers(-(10**10) + 1, 10**10 - 1).map(lambda n: decimal.Decimal(n).scaleb(-2))
texts = st.sampled_from(["", "a", "a\0", "ab", "b", "é", "a long string of 20", "a long string of 20+", "z" * 40])


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values, values, values)


row_values = st.tuples(
    maybe(st.sampled_from(["x", "y"])), maybe(st.integers(-3, 3)), maybe(doubles), maybe(decimals), maybe(texts),
    maybe(st.booleans()), maybe(st.integers(-5, 5).map(lambda n: datetime.date(2020, 1, 1) + datetime.timedelta(n))),
    maybe(st.sampled_from([0.5, -2.0, 3.25, -0.0])),
    maybe(st.integers(0, 5).map(lambda n: datetime.datetime(2020, 1, 1, microsecond=n, tzinfo=datetime.UTC))),
    maybe(st.sampled_from([b"", b"\0", b"\0\1", b"\xff"])),
)  # fmt: skip
same_life = st.lists(st.tuples(st.integers(-2, 12), st.just(5), row_values), max_size=14)
any_life = st.lists(st.tuples(st.integers(-2, 12), st.integers(1, 9), row_values), max_size=14)
lives = st.one_of(same_life, any_life).map(lambda rows: [(ts, ts + life, row) for ts, life, row in rows])
cutting = st.lists(st.integers(-3, 22), max_size=4)
keying = st.sampled_from([(), (K,), (I, K), (D,)])

COUNTS = (call("count_star"), call("count", S), call("count", I, K), call("count", S, distinct=True),
          call("count", I, K, distinct=True), call("count", D, distinct=True))  # fmt: skip
SUMS = (call("sum", I), call("avg", I), call("sum", D), call("avg", D), call("sum", C), call("avg", C), call("sum", F))
DISTINCT_SUMS = tuple(call(function, column, distinct=True) for function in ("sum", "avg") for column in (I, D, C))
SPREADS = tuple(
    call(function, column, distinct=distinct)
    for function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")
    for column, distinct in ((I, False), (C, False), (F, True))
)
EXTREMES = tuple(call(function, column) for function in ("min", "max") for column in (I, D, C, S, B, T, F, U, Z))
PLACES = (call("median", D), call("percentile", D, p=0.25), call("percentile", I, p=1.0), call("median", C),
          call("median", I, distinct=True), call("percentile", F, p=0.9))  # fmt: skip
BY = (call("min_by", S, D), call("max_by", S, D), call("max_by", D, I), call("min_by", C, S), call("max_by", B, U))
ENDS = tuple(call(function, column) for function in ("first", "last") for column in (S, D, I, Z))


@pytest.mark.parametrize(
    "calls", [COUNTS, SUMS, DISTINCT_SUMS, SPREADS, EXTREMES, PLACES],
    ids=["counts", "sums", "distinct_sums", "spreads", "extremes", "places"],
)  # fmt: skip
@settings(max_examples=40)
@given(events=lives, cuts=cutting, keys=keying)
@example(events=[], cuts=[], keys=())
@example(events=[], cuts=[0, 5], keys=(K,))
def test_oracle_every_instant(
    calls: tuple[AggregateCall, ...], events: list[tuple[int, int, Row]], cuts: list[int], keys: tuple[int, ...]
) -> None:
    check(events, cuts, keys, calls)


@settings(max_examples=40)
@given(events=lives, cuts=cutting, keys=keying)
def test_oracle_min_by_and_max_by(events: list[tuple[int, int, Row]], cuts: list[int], keys: tuple[int, ...]) -> None:
    check(events, cuts, keys, BY, timed=False)
    check(events, cuts, keys, BY, ("fifo", "calendar"))


@settings(max_examples=40)
@given(events=lives, cuts=cutting, keys=keying)
def test_oracle_first_and_last(events: list[tuple[int, int, Row]], cuts: list[int], keys: tuple[int, ...]) -> None:
    check(events, cuts, keys, ENDS, ("fifo", "calendar"))


def row(k: str | None = None, i: int | None = None, d: float | None = None, c: Any = None) -> Row:
    return (k, i, d, c, None, None, None, None, None, None)


def test_global_aggregate_starts_at_zero_with_one_row() -> None:
    calls = (call("count_star"), call("sum", I))
    assert run([], [-5], 0, "fifo", (), calls) == Counter()
    assert run([], [-5, 1, 2], 3, "fifo", (), calls) == Counter({(0, 1, (0, None)): 1})
    # Rows at instant 0 are in the first row already.
    assert run([(0, 9, row(i=2))], [], 5, "fifo", (), calls) == Counter({(0, 1, (1, 2)): 1})
    assert run([(-3, 9, row(i=2))], [], 5, "fifo", (), calls) == Counter({(-3, 1, (1, 2)): 1})


def test_a_change_that_changes_nothing_is_not_said() -> None:
    events = [(1, 4, row("x", 7)), (4, 9, row("x", 7)), (5, 9, row("x", 7))]
    assert run(events, [], 9, "fifo", (K,), (call("max", I),)) == Counter({(1, 1, ("x", 7)): 1})


@pytest.mark.parametrize("expiry", EXPIRIES)
def test_emptied_groups_leave_no_state(expiry: Expiry) -> None:
    memory = HeapMemory()
    calls = (*COUNTS, *SUMS, *EXTREMES, *PLACES, *BY, *SPREADS)
    values = (None, 3, 0.1, decimal.Decimal("1.25"), "text", True, None, 0.5, None, b"b" * 30)
    sizes = []
    for turn in range(40):
        start = 1000 * turn
        events = [(start + i, start + i + 10, (f"{turn}.{i}", *values[1:])) for i in range(100)]
        run(events, [start + 50], start + 500, expiry, (K,), calls, memory)
        sizes.append(memory.nbytes)
    assert sizes[-1] == sizes[5]
    operator = Aggregate(memory.scope("aggregate"), (Edge(DTYPES, expiry, 8, 3),), (K,), calls)
    assert operator.state_rows == 0


def test_sums_of_doubles_do_not_drift() -> None:
    """A million slides over values from 1e-12 to 1e16, compared with the sum of the live rows, rounded once."""
    rng = np.random.default_rng(7)
    slides, window, step = 1_000_000, 50, 100_000
    values = rng.choice([1e16, -1e16, 1e-12, 0.1, 3.7e5, -2.5], slides) * rng.uniform(0.5, 2, slides)
    ts = np.arange(slides)
    memory = HeapMemory()
    edge = Edge((pa.float64(),), "fifo")
    calls = (AggregateCall("sum", (Column(0, "x", pa.float64()),), pa.float64()),)
    for start in range(0, slides, step):
        stop = start + step
        batch = ChangeBatch.stamped(ts[start:stop], ts[start:stop] + window, [pa.array(values[start:stop])])
        output = Aggregate(memory, (edge,), (), calls).process([batch], stop)
        plus = output.sign > 0
        changed, sums = output.ts[plus], output.columns[0].filter(pa.array(plus))
        for at in (start + 60, start + 5_000, stop - 1):
            live = values[at - window + 1 : at + 1]
            assert sums[int(np.searchsorted(changed, at, side="right")) - 1].as_py() == math.fsum(live)
    empty = ChangeBatch.empty((pa.float64(),))
    output = Aggregate(memory, (edge,), (), calls).process([empty], slides + window + 1)
    assert output.columns[0].to_pylist()[-1] is None


def test_wide_ranges_of_doubles_round_once() -> None:
    rng = random.Random(3)
    for _ in range(20):
        values = [rng.uniform(-1, 1) * 2.0 ** rng.randint(-1070, 1015) for _ in range(12)]
        values += [-v for v in rng.sample(values, 6)]
        events = [(1, 9, row("x", d=v)) for v in values]
        ((_, _, (_, result)),) = run(events, [], 5, "fifo", (K,), (call("sum", D),))
        assert result == bits(math.fsum(values))


def test_bigint_overflow_is_an_error_only_where_the_sum_overflows() -> None:
    dtypes = (pa.int64(),)
    calls = (AggregateCall("sum", (Column(0, "x", pa.int64()),), pa.int64()),)
    largest = 2**63 - 1

    def process(values: list[int]) -> ChangeBatch:
        batch = ChangeBatch.stamped(np.ones(len(values), np.int64), np.full(len(values), 9), [pa.array(values)])
        return Aggregate(HeapMemory(), (Edge(dtypes, "fifo"),), (), calls).process([batch], 2)

    assert process([largest, 5, -5]).columns[0].to_pylist()[-1] == largest
    assert process([-largest - 1, -5, 5]).columns[0].to_pylist()[-1] == -largest - 1
    with pytest.raises(EvaluationError, match="BIGINT"):
        process([largest, 1])


def test_decimal_overflow_is_an_error() -> None:
    events = [(1, 9, row("x", c=decimal.Decimal("99.00"))), (1, 9, row("x", c=decimal.Decimal("-1.00")))]
    narrow = call("sum", C, dtype=pa.decimal128(4, 2))
    assert run(events, [], 2, "fifo", (K,), (narrow,)) == Counter({(1, 1, ("x", decimal.Decimal("98.00"))): 1})
    with pytest.raises(EvaluationError, match=r"DECIMAL\(4,2\)"):
        run([*events, (1, 9, row("x", c=decimal.Decimal("2.00")))], [], 2, "fifo", (K,), (narrow,))


def test_constant_values_have_no_variance() -> None:
    events = [(1, 9, row("x", d=0.1)) for _ in range(1000)]
    assert run(events, [], 2, "fifo", (K,), (call("stddev_samp", D),)) == Counter({(1, 1, ("x", bits(0.0))): 1})


def test_void_columns_give_null() -> None:
    dtypes = (pa.null(),)
    column = Column(0, "x", pa.null())
    calls = tuple(
        AggregateCall(f, (column,), t) for f, t in (("sum", pa.float64()), ("min", pa.null()), ("count", pa.int64()))
    )
    batch = ChangeBatch.stamped(np.array([1]), np.array([5]), [pa.nulls(1)])
    output = Aggregate(HeapMemory(), (Edge(dtypes, "fifo"),), (), calls).process([batch], 9)
    assert [column.to_pylist()[-1] for column in output.columns] == [None, None, 0]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(StrategyError, match="FIRST"):
        Aggregate(HeapMemory(), (Edge(DTYPES, "explicit"),), (), (call("first", I),))
    with pytest.raises(UnsupportedSqlError, match="numbers"):
        Aggregate(HeapMemory(), (Edge(DTYPES, "fifo"),), (), (call("sum", S),))
    with pytest.raises(UnsupportedSqlError, match="SKETCH"):
        Aggregate(HeapMemory(), (Edge(DTYPES, "fifo"),), (), (call("sketch", I),))
