"""The worked costs of paper 4: Tables 5, 6 and 7, Appendices A and B, and what its Figures 2 and 3 say."""

from __future__ import annotations

import itertools
import math

import pytest

from bench.paper4.costs import general_cost, lazy_cost, naive_cost
from sash.errors import StatisticsError
from sash.optimizer.cost import JoinCosts, JoinGraph, eager_cost
from tests.optimizer.join_tables import TABLE_5, TABLE_6, TABLE_7, Streams, every_order


@pytest.mark.parametrize(
    ("streams", "order", "cost"),
    [
        (TABLE_5, (1, 2, 3, 4), 16_000),
        (TABLE_5, (2, 1, 3, 4), 19_600),
        (TABLE_6, (2, 1, 3, 4), 80_400),
        (TABLE_6, (1, 2, 3, 4), 120_000),
        (TABLE_6, (2, 3, 1, 4), 123_150),
        (TABLE_6, (2, 3, 4, 1), 248_450),
        (TABLE_7, (3, 1, 4, 2), 47_977),
        (TABLE_7, (3, 4, 1, 2), 49_542),
        (TABLE_7, (3, 1, 2, 4), 51_954),
        (TABLE_7, (1, 2, 3, 4), 68_200),
        (TABLE_7, (2, 1, 3, 4), 79_000),
    ],
)
def test_eager_costs_of_the_tables(streams: Streams, order: tuple[int, ...], cost: float) -> None:
    assert eager_cost(order, *streams) == pytest.approx(cost, abs=0.5)


def test_ranks_in_the_tables() -> None:
    first, second, third = (every_order(streams) for streams in (TABLE_5, TABLE_6, TABLE_7))
    assert min(first.values()) == first[1, 2, 3, 4]
    assert sorted(first.values())[4] == first[2, 1, 3, 4]
    assert max(first.values()) == pytest.approx(86_850)
    assert min(second.values()) == second[2, 1, 3, 4]
    assert max(second.values()) == pytest.approx(646_050)
    assert min(third.values()) == third[3, 1, 4, 2]
    assert sum(third.values()) / 24 == pytest.approx(63_362, abs=0.5)


@pytest.mark.parametrize(
    ("windows", "size"),
    [
        ((1, 2), 200),
        ((1, 3), 400),
        ((1, 4), 600),
        ((2, 3), 400),
        ((2, 4), 600),
        ((3, 4), 1_500),
        ((1, 2, 3), 800),
        ((1, 2, 4), 1_200),
    ],
)
def test_intermediate_results_of_appendix_b(windows: tuple[int, ...], size: float) -> None:
    """Tables 10 and 11; the size does not depend on the order."""
    rates, lengths, distinct = TABLE_5
    costs = JoinCosts(rates, lengths, JoinGraph.on_common_attribute(distinct))
    for order in itertools.permutations(windows):
        assert costs.result(order) == pytest.approx(size)


@pytest.mark.parametrize(("origin", "cost"), [(1, 3_800), (2, 3_800), (3, 2_400), (4, 6_000)])
def test_costs_by_origin_of_appendix_b(origin: int, cost: float) -> None:
    rates, lengths, distinct = TABLE_5
    costs = JoinCosts(rates, lengths, JoinGraph.on_common_attribute(distinct))
    path = costs.graph.from_origin((1, 2, 3, 4), origin)
    assert path == (origin, *(stream for stream in (1, 2, 3, 4) if stream != origin))
    assert costs.of_origin(path, origin) == pytest.approx(cost)


def _sizes(streams: Streams, tau: float) -> tuple[list[float], float, float]:
    """Appendix A's window sizes and intermediate results of 1, 2 and of 1, 2, 3."""
    rates, lengths, distinct = streams
    rows = [rate * (length + tau) for rate, length in zip(rates, lengths, strict=True)]
    two = rows[0] * rows[1] / max(distinct[:2])
    return rows, two, two * rows[2] / max(min(distinct[:2]), distinct[2])


def test_eager_naive_costs_of_appendix_a() -> None:
    """G3 and G4 as printed; G1 and G2 are the eager join's."""
    rates, _, distinct = TABLE_5
    (one, two, three, four), pairs, triples = _sizes(TABLE_5, 0)
    third = rates[2] * (one * two + pairs + pairs * four / max(min(distinct[:2]), distinct[2]))
    fourth = rates[3] * (one * two + pairs * three + triples)
    assert naive_cost((1, 2, 3, 4), *TABLE_5) == pytest.approx(3_800 + 3_800 + third + fourth)


def test_lazy_costs_of_appendix_a() -> None:
    """L is C with windows tau longer; H3 and H4 as printed, H1 and H2 are the lazy join's."""
    tau = 7.0
    rates, lengths, distinct = TABLE_5
    longer = [length + tau for length in lengths]
    for order in ((1, 2, 3, 4), (3, 1, 4, 2)):
        assert lazy_cost(order, *TABLE_5, tau) == pytest.approx(eager_cost(order, rates, longer, distinct))
    (one, two, three, four), pairs, triples = _sizes(TABLE_5, tau)
    third = one * two / tau + pairs * rates[2] + pairs * rates[2] * four / max(min(distinct[:2]), distinct[2])
    fourth = one * two / tau + pairs * three / tau + triples * rates[3]
    costs = JoinCosts(rates, lengths, JoinGraph.on_common_attribute(distinct), tau)
    first, second = costs.of_origin((1, 2, 3, 4), 1), costs.of_origin((2, 1, 3, 4), 2)
    assert naive_cost((1, 2, 3, 4), *TABLE_5, tau) == pytest.approx(first + second + third + fourth)


def test_general_join_takes_in_the_others() -> None:
    naive = [(1, 2, 3, 4)] * 4
    assert general_cost(naive, *TABLE_5, 5) == pytest.approx(naive_cost((1, 2, 3, 4), *TABLE_5, 5))
    lazy = [(1, 2, 3, 4), (2, 1, 3, 4), (3, 1, 2, 4), (4, 1, 2, 3)]
    assert general_cost(lazy, *TABLE_5, 5) == pytest.approx(lazy_cost((1, 2, 3, 4), *TABLE_5, 5))


def test_equal_buckets_divide_every_cost() -> None:
    """So the ordering problem is that of nested loops (5.3)."""
    five = [5] * 4
    orders = [(1, 2, 3, 4), (2, 1, 3, 4), (3, 1, 2, 4), (4, 3, 2, 1)]
    for order in orders:
        assert eager_cost(order, *TABLE_7, five) == pytest.approx(eager_cost(order, *TABLE_7) / 5)
        assert lazy_cost(order, *TABLE_7, 3, five) == pytest.approx(lazy_cost(order, *TABLE_7, 3) / 5)
        assert naive_cost(order, *TABLE_7, buckets=five) == pytest.approx(naive_cost(order, *TABLE_7) / 5)
    assert general_cost(orders, *TABLE_7, 3, five) == pytest.approx(general_cost(orders, *TABLE_7, 3) / 5)


def test_buckets_shorten_scans_not_results() -> None:
    """One window of 100 rows, 50 values, in 10 buckets: 10 rows looked at, 2 matches, each scanning 100 rows."""
    streams = ([1, 1, 1], [100, 100, 100], [50, 50, 50])
    costs = JoinCosts(streams[0], streams[1], JoinGraph.on_common_attribute(streams[2]), buckets=[10, 10, 1])
    assert costs.scans((1, 2, 3), 1) == pytest.approx({2: 10, 3: 200})


def test_tests_are_made_on_rows_that_are_equal() -> None:
    """100 rows, 50 values: a scan of 100, and two rows that are put to a test worth 5; then one of two passes."""
    graph = JoinGraph(JoinGraph.on_common_attribute([50, 50, 50]).equalities, {(2, 1): 0.5}, {(2, 1): 5.0})
    costs = JoinCosts([1, 1, 1], [100, 100, 100], graph)
    assert costs.scans((1, 2, 3), 1) == pytest.approx({2: 100 + 2 * 5, 3: 100})
    assert costs.scans((1, 3, 2), 1) == pytest.approx({3: 100, 2: 2 * (100 + 2 * 5)})
    assert costs.scans((3, 2, 1), 3) == pytest.approx({2: 100, 1: 2 * (100 + 2 * 5)})


def test_lists_per_key_are_as_many_buckets_as_values() -> None:
    """And where attributes differ, as many as the attribute has that is known."""
    graph = JoinGraph(({1: 10.0, 2: 10.0}, {2: 50.0, 3: 50.0}), listed=True)
    costs = JoinCosts([1, 1, 1], [100, 100, 100], graph)
    assert costs.scans((1, 2, 3), 1) == pytest.approx({2: 10, 3: 10 * 2})
    assert costs.scans((3, 2, 1), 3) == pytest.approx({2: 2, 1: 2 * 10})


@pytest.mark.parametrize("count", range(3, 8))
def test_new_rows_first_scale_better_than_naive(count: int) -> None:
    """Figure 2's streams: each window more multiplies the naive cost by about twice what it adds to the other."""
    streams = ([1.0] * count, [100.0] * count, [50.0] * count)
    order = range(1, count + 1)
    assert naive_cost(order, *streams) > 2 * eager_cost(order, *streams)


def test_where_new_rows_belong_depends_on_tau() -> None:
    """Figure 3: first while tau is small; with a fast fourth stream and a large tau its new rows belong last."""
    slow: Streams = ([1, 1, 1, 1], [100] * 4, [50] * 4)
    fast: Streams = ([1, 1, 1, 10], [100] * 4, [50] * 4)
    first = [(1, 2, 3, 4), (2, 1, 3, 4), (3, 1, 2, 4), (4, 1, 2, 3)]
    last = [*first[:3], (1, 2, 3, 4)]
    for tau in (1, 10, 50):
        assert general_cost(first, *slow, tau) < general_cost(last, *slow, tau)
    assert general_cost(first, *fast, 1) < general_cost(last, *fast, 1)
    assert general_cost(first, *fast, 50) > general_cost(last, *fast, 50)


def test_join_graph() -> None:
    """1 and 2 on one attribute, 2 and 3 on another, 1 and 4 by a test that passes a tenth."""
    graph = JoinGraph(({1: 20.0, 2: 10.0}, {2: 5.0, 3: 4.0}), {(1, 4): 0.1})
    costs = JoinCosts([1.0] * 4, [100.0] * 4, graph, buckets=[2] * 4)
    assert graph.from_origin((1, 2, 3, 4), 3) == (3, 2, 1, 4)
    assert graph.from_origin((4, 3, 2, 1), 2) == (2, 3, 1, 4)
    assert costs.result((1, 2, 3, 4)) == pytest.approx(1e8 / 20 / 5 / 10)
    assert costs.scans((3, 2, 1, 4), 3) == pytest.approx({2: 50, 1: 20 * 50, 4: 20 * 5 * 100}), (
        "4 has no bucket to find"
    )


@pytest.mark.parametrize(
    ("order", "rates", "windows", "distinct"),
    [
        ((1, 2, 2), [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        ((0, 1, 2), [1, 1, 1], [1, 1, 1], [1, 1, 1]),
        ((1, 2), [1, -1], [1, 1], [1, 1]),
        ((1, 2), [1, 1], [1, math.inf], [1, 1]),
        ((1, 2), [1, 1], [1, 1], [0, 1]),
        ((1, 2), [1, 1], [1, 1], [1]),
        ((1, 2), [1, 1], [1], [1, 1]),
    ],
)
def test_figures_that_cannot_be(
    order: tuple[int, ...], rates: list[float], windows: list[float], distinct: list[float]
) -> None:
    with pytest.raises(StatisticsError):
        eager_cost(order, rates, windows, distinct)
