"""The choice of accumulators for aggregates; aggregates share one where possible."""

from __future__ import annotations

import hashlib

import pyarrow as pa

from sash.errors import UnsupportedSqlError
from sash.operators.aggregates.arguments import ArgumentColumns
from sash.operators.aggregates.base import Accumulator, fits_word
from sash.operators.aggregates.bits import Bits
from sash.operators.aggregates.collected import Collected
from sash.operators.aggregates.counts import Count, Nothing, RowCount
from sash.operators.aggregates.extremes import QueueExtreme, StepExtreme
from sash.operators.aggregates.histograms import Histogram
from sash.operators.aggregates.modes import Mode
from sash.operators.aggregates.moments import Comoments, Shape
from sash.operators.aggregates.ranks import RankedRows, RankedValues
from sash.operators.aggregates.sums import DecimalSum, DoubleSum, IntegerSum, Variance
from sash.operators.aggregates.user import Recomputed, Removing, Stacks
from sash.operators.aggregates.weighted import WeightedPercentiles
from sash.operators.base import Expiry
from sash.plan.expressions import BITS, COLLECTED, COMOMENTS, PERCENTILES, SHAPES, SPREADS, SUMS, AggregateCall
from sash.plan.types import is_numeric, type_name
from sash.plan.user_code import way_of
from sash.state.memory import Memory


class Accumulators:
    """The accumulators of one operator, each under a name of its own in memory."""

    def __init__(self, memory: Memory, arguments: ArgumentColumns, timed: bool, time: int | None) -> None:
        self._memory = memory
        self._arguments = arguments
        self._timed = timed
        self._time = time
        self.by_name: dict[str, Accumulator] = {}

    def add(self, call: AggregateCall) -> tuple[str, int]:
        """The name of the accumulator that computes the call, and the number of the call's column in its result."""
        name = _name(call, self._arguments.edge.expiry)
        if name not in self.by_name:
            self.by_name[name] = self._make(call, name, self._memory.scope(name))
        return name, self.by_name[name].want(call)

    def _make(self, call: AggregateCall, name: str, memory: Memory) -> Accumulator:
        kind = name.split(".", 1)[0]
        columns = [column.index for column in call.arguments]
        match kind:
            case "rows":
                return RowCount()
            case "count":
                return Count(memory, self._arguments, columns, call.distinct)
            case "nothing":
                return Nothing()
            case "integers":
                return IntegerSum(memory, self._arguments, columns[0], call.distinct)
            case "doubles":
                return DoubleSum(memory, self._arguments, columns[0], call.distinct)
            case "decimals":
                return DecimalSum(memory, self._arguments, columns[0], call.distinct)
            case "spread":
                return Variance(memory, self._arguments, columns[0], call.distinct)
            case "comoments":
                return Comoments(memory, self._arguments, columns, call.distinct)
            case "shape":
                return Shape(memory, self._arguments, columns, call.distinct)
            case "bits":
                return Bits(memory, self._arguments, columns[0], call.distinct)
            case "mode":
                descending = call.detail is not None and call.detail.descending
                return Mode(memory, self._arguments, columns[0], call.distinct, descending)
            case "queue":
                return QueueExtreme(memory, columns[0], call.function == "max")
            case "steps":
                return StepExtreme(memory, columns[0], call.function == "max")
            case "values":
                distinct = call.distinct and call.function not in ("min", "max")
                return RankedValues(memory, self._arguments, columns[0], distinct, "value")
            case "places":
                return RankedValues(memory, self._arguments, columns[0], call.distinct, "double")
            case "user":
                return self._user(call, memory, columns)
            case "histogram":
                return Histogram(memory, self._arguments, columns, call, False, None)
            case "weighted":
                return WeightedPercentiles(memory, self._arguments, columns, call, False, None)
            case "rows_of":
                return Collected(memory, self._arguments, columns, call, self._timed, self._time)
            case "by":
                return RankedRows(memory, self._arguments, columns[0], columns[1], self._timed, self._time)
            case _:
                condition = columns[1] if len(columns) > 1 else None
                return RankedRows(memory, self._arguments, columns[0], None, self._timed, self._time, condition)

    def _user(self, call: AggregateCall, memory: Memory, columns: list[int]) -> Accumulator:
        assert call.detail is not None
        assert call.detail.user is not None
        way = way_of(call.detail.user, self._arguments.edge.expiry, distinct=call.distinct)
        if way == "remove":
            return Removing(memory, self._arguments, columns, call)
        if way == "merge":
            return Stacks(memory, self._arguments, columns, call)
        return Recomputed(memory, self._arguments, columns, call, self._timed, self._time)


def _name(call: AggregateCall, expiry: Expiry) -> str:
    """The kind of the accumulator and its parameters, as a name in memory."""
    function = call.function
    columns = ".".join(str(column.index) for column in call.arguments)
    distinct = ".distinct" if call.distinct else ""
    dtype = call.arguments[0].dtype if call.arguments else pa.null()
    detail = call.detail
    if detail is not None and detail.user is not None:
        filtered = ".filtered" if detail.filtered else ""
        settings = "".join(f".{setting}" for setting in detail.user.settings)
        return f"user.{detail.user.name.lower()}{settings}.{columns}{filtered}{distinct}"
    if function == "count_star" or (function == "count" and not call.arguments):
        return "rows"
    if function == "count":
        return f"count.{columns}{distinct}"
    if pa.types.is_null(dtype) or (function in ("min_by", "max_by") and pa.types.is_null(call.arguments[1].dtype)):
        return "nothing"
    if function == "percentile_value":
        return f"values.{columns}{distinct}"
    if function in ("min", "max"):
        if not fits_word(dtype) or expiry == "explicit":
            return f"values.{columns}"
        return f"{'queue' if expiry == 'fifo' else 'steps'}.{function}.{columns}"
    if function == "histogram_numeric":
        return f"histogram.{columns}{distinct}.{0 if detail is None else detail.limit}"
    if function in COLLECTED or (detail is not None and detail.limit is not None):
        orders = "" if detail is None else "".join(f".{int(down)}{int(first)}" for down, first in detail.order)
        text = "" if detail is None else f".{hashlib.sha256(detail.separator).hexdigest()[:12]}"
        limit = "" if detail is None or detail.limit is None else f".first{detail.limit}"
        return f"rows_of.{function}.{columns}{distinct}{orders}{text}{limit}"
    if function in ("min_by", "max_by"):
        return f"by.{columns}"
    if function in ("first", "last"):
        return f"time.{columns}"
    if function == "mode":
        return f"mode.{columns}{distinct}{'.descending' if detail is not None and detail.descending else ''}"
    if not is_numeric(dtype):
        raise UnsupportedSqlError(f"{function.upper()} needs numbers, not {type_name(dtype)}: cast its argument")
    if function in SUMS:
        if pa.types.is_decimal(dtype):
            return f"decimals.{function}.{call.dtype.precision}.{call.dtype.scale}.{columns}{distinct}"
        return f"{'integers' if pa.types.is_integer(dtype) else 'doubles'}.{columns}{distinct}"
    if function == "percentile" and len(call.arguments) == 2:
        places = hashlib.sha256(repr((call.parameter, detail)).encode()).hexdigest()[:12]
        return f"weighted.{columns}{distinct}.{places}"
    if function in PERCENTILES:
        return f"places.{columns}{distinct}"
    if function in SPREADS:
        return f"spread.{columns}{distinct}"
    if function in SHAPES:
        return f"shape.{columns}{distinct}"
    if function in COMOMENTS:
        return f"comoments.{columns}{distinct}"
    if function in BITS:
        return f"bits.{columns}{distinct}"
    raise UnsupportedSqlError(f"{function.upper()} is not a supported aggregate")
