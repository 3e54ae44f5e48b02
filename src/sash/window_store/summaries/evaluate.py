"""Evaluates aggregates from merged summaries. The values are bit for bit those of the operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sash.errors import EvaluationError
from sash.operators.aggregates.base import NO_MASK, as_doubles, fixed_versions, validity_of
from sash.operators.kernels.limbs import BIAS, HEADER
from sash.operators.kernels.spreads import spread
from sash.operators.kernels.sums import sum_decimals, sum_doubles, sum_integers
from sash.operators.kernels.touches import Events
from sash.plan.expressions import AggregateCall, Column
from sash.plan.types import type_name
from sash.state.memory import Ints
from sash.state.ordering import ordered_bits, turn_floats
from sash.window_store.store.tables import columns_of
from sash.window_store.summaries.additive import COUNT, AdditiveSummary, Flavor
from sash.window_store.summaries.base import Groups, RowBatch, Summary
from sash.window_store.summaries.extremes import VALUE, Extreme
from sash.window_store.summaries.sketches import Sketch

_NONE = np.empty(0, np.int64)
_FRACTIONS = {"median": 0.5}


def evaluate(call: AggregateCall, summary: Summary, table: pa.Table, keys: Sequence[pa.Array], groups: int) -> pa.Array:
    """The aggregate for every group, given a summary of its kind and the groups' keys."""
    if isinstance(summary, AdditiveSummary) and summary.flavor == "values":
        return _from_values(call, summary, table, keys, groups)
    positions = Groups(summary.key_columns(table), table.num_rows).find(keys, groups)
    if isinstance(summary, Sketch):
        assert call.parameter is not None
        return summary.evaluate(table, positions.tolist(), call.parameter, call.dtype)
    if isinstance(summary, Extreme):
        (value,) = columns_of(table.select([VALUE]))
        return value.take(pa.array(positions, mask=positions < 0))
    assert isinstance(summary, AdditiveSummary)
    return _from_sums(call, summary.flavor, _aligned(table, positions))


def _aligned(table: pa.Table, positions: Ints) -> dict[str, Ints]:
    """The columns of the summary by group, 0 for groups without a row."""
    present = positions >= 0
    at = np.maximum(positions, 0)
    found = {}
    for name in table.schema.names:
        if name[0] != "k":
            values = np.array(table.column(name).to_numpy(), np.int64)
            found[name] = np.where(present, values[at], 0) if len(values) else np.zeros(len(positions), np.int64)
    return found


def _from_sums(call: AggregateCall, flavor: str, columns: dict[str, Ints]) -> pa.Array:
    counts = columns.get(COUNT, _NONE)
    groups = len(counts)
    every = np.arange(groups)
    events = Events(_NONE, np.empty(0, np.int8), _NONE, _NONE, every, every)
    match flavor:
        case "integers":
            flat = _flat(columns, [COUNT, "i0", "i1"])
            sums, averages, seen = np.empty(groups, np.int64), np.empty(groups), np.empty(groups, np.int64)
            sum_integers(events, _NONE, NO_MASK, flat, sums, averages, seen, np.empty(groups, np.bool_))
            if call.function == "avg":
                return fixed_versions(averages.view(np.int64), counts == 0, call.dtype).array
            high = flat.reshape(groups, 3)[:, 2]
            if ((high < -(2**31)) | (high >= 2**31)).any():
                raise EvaluationError(
                    "SUM left the range of BIGINT: sum a DECIMAL or a DOUBLE, as in SUM(CAST(x AS DOUBLE))"
                )
            return fixed_versions(sums, counts == 0, call.dtype).array
        case "decimals":
            return _decimal(call, events, columns, counts)
        case "doubles":
            low, names = _limbs(columns, "l")
            totals, seen = np.empty(groups), np.empty(groups, np.int64)
            flat = _flat(columns, [COUNT, "plus", "minus", "nan", *names])
            sum_doubles(events, np.empty(0, np.uint64), NO_MASK, flat, low, len(names), totals, seen)
            values = totals / np.maximum(counts, 1) if call.function == "avg" else totals
            return fixed_versions(values.view(np.int64), counts == 0, call.dtype).array
        case "spread":
            return _spread(call, events, columns, counts)
        case _:
            return pa.array(counts)


def _decimal(call: AggregateCall, events: Events, columns: dict[str, Ints], counts: Ints) -> pa.Array:
    groups, average = len(counts), call.function == "avg"
    flat = _flat(columns, [COUNT, "d0", "d1", "d2", "d3"])
    bound = 10**call.dtype.precision
    limit = np.array([bound & (2**64 - 1), bound >> 64], np.uint64)
    dtype = call.arguments[0].dtype
    factor = 10 ** (call.dtype.scale - dtype.scale) if average else 1
    out, seen, none = np.empty(2 * groups, np.uint64), np.empty(groups, np.int64), np.empty(0, np.uint64)
    sum_decimals(events, none, none, NO_MASK, flat, factor, limit, average, out, seen, np.empty(groups, np.bool_))
    validity, missing = validity_of(counts == 0)
    found = pa.Array.from_buffers(call.dtype, groups, [validity, pa.py_buffer(out)], missing)
    if _too_large(out, bound):
        raise EvaluationError(
            f"{call.function.upper()} does not fit in {type_name(call.dtype)}: "
            "cast the argument to a DECIMAL of fewer digits, or to DOUBLE"
        )
    return found


def _too_large(words: npt.NDArray[np.uint64], bound: int) -> bool:
    """Whether the magnitude of one of the 128-bit integers reaches the bound."""
    high = words[1::2].view(np.int64)
    rough = np.abs(high.astype(np.float64)) * 2.0**64
    near = np.flatnonzero(rough >= bound / 2)
    return any(abs((int(high[at]) << 64) + int(words[2 * at])) >= bound for at in near.tolist())


def _spread(call: AggregateCall, events: Events, columns: dict[str, Ints], counts: Ints) -> pa.Array:
    groups = len(counts)
    low, names = _limbs(columns, "l")
    first, squares = _limbs(columns, "q")
    zeros = {"zero": np.zeros(groups, np.int64)}
    mantissas, exponents, seen = np.empty(groups), np.empty(groups, np.int64), np.empty(groups, np.int64)
    spread(
        events, np.empty(0, np.uint64), NO_MASK,
        _flat(columns, [COUNT, "plus", "minus", "nan", *names]), low, len(names),
        _flat({**columns, **zeros}, ["zero"] * HEADER + squares), first, len(squares),
        mantissas, exponents, seen,
    )  # fmt: skip
    sample = call.function.endswith("_samp")
    n = np.maximum(counts, 2 if sample else 1).astype(np.float64)
    share = mantissas / n / (n - 1 if sample else n)
    values = np.ldexp(share, np.clip(exponents - 2 * BIAS, -(2**20), 2**20).astype(np.int32))
    if call.function.startswith("stddev"):
        values = np.sqrt(values)
    return fixed_versions(values.view(np.int64), counts < (2 if sample else 1), call.dtype).array


def _limbs(columns: Mapping[str, Ints], letter: str) -> tuple[int, list[str]]:
    """The lowest limb, and the names of the limbs from there to the highest."""
    limbs = [int(name[1:]) for name in columns if name[0] == letter and name[1:].isdigit()]
    if not limbs:
        return 0, []
    return min(limbs), [f"{letter}{limb}" for limb in range(min(limbs), max(limbs) + 1)]


def _flat(columns: Mapping[str, Ints], names: Sequence[str]) -> Ints:
    groups = len(next(iter(columns.values())))
    table = np.zeros((groups, len(names)), np.int64)
    for index, name in enumerate(names):
        if name in columns:
            table[:, index] = columns[name]
    return table.reshape(-1)


def _from_values(
    call: AggregateCall, summary: AdditiveSummary, table: pa.Table, keys: Sequence[pa.Array], groups: int
) -> pa.Array:
    """Aggregates of the distinct values, and aggregates by rank."""
    *own, value = summary.key_columns(table)
    counts = np.array(table.column(COUNT).to_numpy(), np.int64)
    group = Groups(keys, groups).find(own, len(value))
    # The codes of `keys`, which are distinct, are their positions.
    keep = np.flatnonzero((group >= 0) & (counts > 0))
    group, counts, value = group[keep], counts[keep], value.take(pa.array(keep))
    if call.function == "count":
        return pa.array(np.bincount(group, minlength=groups).astype(np.int64))
    if call.function in ("min", "max"):
        extreme = Extreme((), (Column(0, "group", pa.int64()),), Column(1, "value", value.type), Column(1, "value", value.type),
                    (), False, call.function == "max")  # fmt: skip
        rows = RowBatch([pa.array(group), value], len(group))
        return evaluate(call, extreme, extreme.build(rows), [pa.array(np.arange(groups))], groups)
    if call.function in ("sum", "avg"):
        flavored = replace(
            summary, filters=(), keys=(Column(0, "group", pa.int64()),), flavor=sum_flavor(value.type),
            argument=Column(1, "value", value.type),
        )  # fmt: skip
        sums = flavored.build(RowBatch([pa.array(group), value], len(group)))
        positions = Groups(flavored.key_columns(sums), sums.num_rows).find([pa.array(np.arange(groups))], groups)
        return _from_sums(call, flavored.flavor, _aligned(sums, positions))
    fraction = _FRACTIONS[call.function] if call.parameter is None else call.parameter
    return _from_ranks(call, group, counts, value, fraction, groups)


def _from_ranks(
    call: AggregateCall, group: Ints, counts: Ints, value: pa.Array, fraction: float, groups: int
) -> pa.Array:
    """The value at a fraction of each group's ordered values (0 the first, 1 the last), interpolated between neighbours."""
    bits = ordered_bits(as_doubles(value))
    order = np.lexsort((bits, group))
    group, counts, bits = group[order], counts[order], bits[order]
    ends = np.cumsum(counts)
    sizes = np.zeros(groups, np.int64)
    np.add.at(sizes, group, counts)
    starts = np.cumsum(sizes) - sizes
    exact = np.maximum(sizes - 1, 0).astype(np.float64) * fraction
    index = np.floor(exact).astype(np.int64)
    share = exact - index
    nulls = sizes == 0
    if not len(bits):
        return pa.nulls(groups, call.dtype)
    low = bits[np.minimum(np.searchsorted(ends, starts + index, side="right"), len(bits) - 1)]
    upper = np.minimum(index + 1, np.maximum(sizes - 1, 0))
    high = bits[np.minimum(np.searchsorted(ends, starts + upper, side="right"), len(bits) - 1)]
    high = np.where(share > 0.0, high, low)
    small, large = turn_floats(low).view(np.float64), turn_floats(high).view(np.float64)
    with np.errstate(invalid="ignore"):
        values = np.where(low == high, small, (1.0 - share) * small + share * large)
    return fixed_versions(np.array(values).view(np.int64), nulls, call.dtype).array


def sum_flavor(dtype: pa.DataType) -> Flavor:
    """The flavor of a sum of values of this type."""
    if pa.types.is_decimal(dtype):
        return "decimals"
    return "integers" if pa.types.is_integer(dtype) else "doubles"


def groups_with_rows(table: pa.Table, summary: AdditiveSummary) -> tuple[list[pa.Array], int]:
    """The keys and number of the groups that have rows. A global aggregate always has one group."""
    if not summary.keys:
        return [], 1
    rows = table.filter(pc.greater(table.column(COUNT), 0))
    return summary.key_columns(rows), rows.num_rows
