"""CORR, COVAR_*, REGR_*, SKEWNESS and KURTOSIS from exact sums of products, as VAR_* from those of x and x^2."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sash.operators.aggregates.arguments import ArgumentColumns, Pairs
from sash.operators.aggregates.base import Accumulator, Versions, Work, fixed_versions
from sash.operators.aggregates.sums import LimbTable, double_bits
from sash.operators.kernels.limbs import BIAS, span
from sash.operators.kernels.moments import FACTORS, Products, Terms, sum_products
from sash.operators.kernels.touches import Mask
from sash.plan.expressions import AggregateCall
from sash.state.memory import Ints, Memory

Floats = npt.NDArray[np.float64]
_NOTHING = np.zeros(0, np.uint64)


@dataclass(frozen=True)
class Scaled:
    """Numbers by version as mantissa * 2^exponent, beyond the range of doubles."""

    mantissa: Floats
    exponent: Ints

    def __truediv__(self, other: Scaled) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return _scaled(self.mantissa / other.mantissa, self.exponent - other.exponent)

    def __mul__(self, other: Scaled) -> Scaled:
        return Scaled(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def root(self) -> Scaled:
        """The square root."""
        odd = self.exponent & 1
        return Scaled(np.sqrt(np.where(odd, 2 * self.mantissa, self.mantissa)), (self.exponent - odd) >> 1)

    def over(self, divisor: Floats) -> Floats:
        """The quotient as doubles."""
        return _scaled(self.mantissa / divisor, self.exponent)

    @property
    def is_zero(self) -> Mask:
        zero: Mask = self.mantissa == 0.0
        return zero


def _scaled(mantissa: Floats, exponent: Ints) -> Floats:
    with np.errstate(over="ignore"):
        result: Floats = np.ldexp(mantissa, np.clip(exponent, -(2**20), 2**20).astype(np.int32))
    return result


class _Moments(Accumulator):
    """Subclasses name the sums (powers of x and y), and the polynomials of them, each with its order and its terms:
    the coefficient, the power of the number of rows, and the sums that are multiplied."""

    sums: tuple[tuple[int, int], ...]
    polynomials: tuple[tuple[int, tuple[tuple[int, int, tuple[int, ...]], ...]], ...]

    def __init__(self, memory: Memory, arguments: ArgumentColumns, columns: Sequence[int], distinct: bool) -> None:
        super().__init__()
        self._values = Pairs(arguments, columns, distinct)
        self._tables = [LimbTable(memory.scope(f"sum{x}{y}")) for x, y in self.sums]
        self._terms = self._encoded()

    def _encoded(self) -> Terms:
        rows, of_x, of_y = [], [], []
        for result, (_, terms) in enumerate(self.polynomials):
            used = {factor for _, _, factors in terms for factor in factors}
            of_x.append(any(self.sums[factor][0] for factor in used))
            of_y.append(any(self.sums[factor][1] for factor in used))
            for coefficient, counts, factors in terms:
                row = [result, coefficient, counts, *factors]
                rows.append(row + [-1] * (FACTORS + 4 - len(row)))
        return Terms(np.array(rows, np.int64), np.array(of_x), np.array(of_y))

    def apply(self, work: Work) -> list[Versions]:
        columns, skip = self._values.load(work)
        bits = [double_bits(column) for column in columns]
        spans = [tuple(map(int, span(part, skip))) for part in bits]
        for table, powers in zip(self._tables, self.sums, strict=True):
            used = [(power, bounds) for power, bounds in zip(powers, spans, strict=False) if power]
            some = all(largest >= 0 for _, (_, largest) in used)
            low = sum(power * smallest for power, (smallest, _) in used)
            high = sum(power * largest for power, (_, largest) in used)
            limbs = 2 * sum(powers) + 1
            table.cover(low >> 5 if some else 0, (high >> 5) + limbs if some else 0, work.groups)
        size = len(self.polynomials) * work.versions
        mantissas, exponents = np.empty(size, np.float64), np.empty(size, np.int64)
        counts = np.empty(work.versions, np.int64)
        products = Products(
            np.array([x for x, _ in self.sums]),
            np.array([y for _, y in self.sums]),
            tuple(table.cells for table in self._tables),
            np.array([table.low for table in self._tables]),
            np.array([table.width for table in self._tables]),
        )
        second = bits[1] if len(bits) > 1 else _NOTHING
        sum_products(work.events, bits[0], second, skip, products, self._terms, mantissas, exponents, counts)
        shape = (len(self.polynomials), work.versions)
        numbers = [
            Scaled(mantissa, exponent - order * BIAS)
            for (order, _), mantissa, exponent in zip(
                self.polynomials, mantissas.reshape(shape), exponents.reshape(shape), strict=True
            )
        ]
        results = []
        for call in self._calls:
            values, nulls = self._value(call, numbers, counts)
            results.append(fixed_versions((values + 0.0).view(np.int64), nulls, call.dtype))
        return results

    def _value(self, call: AggregateCall, numbers: list[Scaled], counts: Ints) -> tuple[Floats, Mask]:
        """The values of an aggregate by version, and the mask of NULLs."""
        raise NotImplementedError


class Comoments(_Moments):
    """CORR, COVAR_* and REGR_* of pairs (x, y) in which neither is NULL. Results that would divide by zero are NULL."""

    sums = ((1, 0), (0, 1), (2, 0), (0, 2), (1, 1))
    polynomials = (
        (2, ((1, 1, (2,)), (-1, 0, (0, 0)))),  # n^2 var_pop(x)
        (2, ((1, 1, (3,)), (-1, 0, (1, 1)))),  # n^2 var_pop(y)
        (2, ((1, 1, (4,)), (-1, 0, (0, 1)))),  # n^2 covar_pop(x, y)
        (3, ((1, 0, (1, 2)), (-1, 0, (0, 4)))),  # n^2 var_pop(x) times the intercept of y, without the n
    )

    def _value(self, call: AggregateCall, numbers: list[Scaled], counts: Ints) -> tuple[Floats, Mask]:
        of_x, of_y, both, above = numbers
        n = np.maximum(counts, 1).astype(np.float64)
        none, few = counts == 0, counts < 2
        match call.function:
            case "covar_pop":
                return both.over(n * n), none
            case "covar_samp":
                return both.over(n * np.maximum(n - 1, 1)), few
            case "corr":
                return both / (of_x * of_y).root(), few | of_x.is_zero | of_y.is_zero
            case "regr_r2":
                squared = (both * both) / (of_x * of_y)
                return np.where(of_y.is_zero, 1.0, squared), few | of_x.is_zero
            case "regr_slope":
                return both / of_x, few | of_x.is_zero
            case "regr_intercept":
                return above / of_x, few | of_x.is_zero
            case "regr_sxx":
                return of_x.over(n), none
            case "regr_syy":
                return of_y.over(n), none
            case _:
                return both.over(n), none


class Shape(_Moments):
    """SKEWNESS and KURTOSIS (less 3) of any numbers; NULL if all are equal."""

    sums = ((1, 0), (2, 0), (3, 0), (4, 0))
    polynomials = (
        (2, ((1, 1, (1,)), (-1, 0, (0, 0)))),  # n m2, with the central moments m2, m3, m4 as sums
        (3, ((1, 2, (2,)), (-3, 1, (0, 1)), (2, 0, (0, 0, 0)))),  # n^2 m3
        (4, ((1, 3, (3,)), (-4, 2, (0, 2)), (6, 1, (0, 0, 1)), (-3, 0, (0, 0, 0, 0)))),  # n^3 m4
    )

    def _value(self, call: AggregateCall, numbers: list[Scaled], counts: Ints) -> tuple[Floats, Mask]:
        second, third, fourth = numbers
        nulls = (counts == 0) | second.is_zero
        if call.function == "skewness":
            return third / (second * second * second).root(), nulls
        return fourth / (second * second) - 3.0, nulls
