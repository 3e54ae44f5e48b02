"""The ordering heuristic against all orders, and the scenarios of paper 4, 5.2 to 5.4 and 6.5."""

from __future__ import annotations

import itertools
import random

import pytest

from bench.paper4.costs import general_cost, lazy_cost
from sash.errors import StatisticsError
from sash.optimizer.cost import JoinCosts, JoinGraph, eager_cost
from sash.optimizer.join_order import PRUDENCE, allocate_buckets, choose_order, choose_orders, most_orders
from tests.optimizer.join_tables import TABLE_5, TABLE_6, TABLE_7, Streams, every_order


@pytest.mark.parametrize("streams", [TABLE_5, TABLE_6, TABLE_7], ids=["table 5", "table 6", "table 7"])
def test_finds_the_best_order_of_the_tables(streams: Streams) -> None:
    chosen = choose_order(*streams)
    assert chosen.cost == pytest.approx(min(every_order(streams).values()))
    assert chosen.cost == eager_cost(chosen.order, *streams)
    assert chosen.considered < 24


def test_random_streams() -> None:
    """Within 1.2 times the best in 95 of 100, costing at most 2 n^2 orders."""
    draw = random.Random(2003)
    good, sets = 0, 500
    for _ in range(sets):
        size = draw.choice((4, 5, 6))
        streams: Streams = (
            draw.choices((1, 2, 3, 5, 10, 50, 100), k=size),
            draw.choices((50, 100, 200, 400), k=size),
            draw.choices((2, 5, 20, 50, 100, 200, 500), k=size),
        )
        chosen = choose_order(*streams)
        assert chosen.considered <= 2 * size**2
        assert chosen.cost == eager_cost(chosen.order, *streams)
        good += chosen.cost <= 1.2 * _best(streams)
    assert good >= 0.95 * sets


def _best(streams: Streams) -> float:
    """The lowest cost of any order, over sets of streams: what a window costs after others depends on their set only.

    That holds since the size of a partial result does not depend on the order in which it was joined.
    """
    rates, windows, distinct = streams
    costs = JoinCosts(rates, windows, JoinGraph.on_common_attribute(distinct))
    best: dict[frozenset[int], float] = {frozenset(): 0.0}
    for size in costs.streams:
        for subset in map(frozenset, itertools.combinations(costs.streams, size)):
            best[subset] = min(best[subset - {last}] + _step(costs, subset - {last}, last) for last in subset)
    return best[frozenset(costs.streams)]


def _step(costs: JoinCosts, before: frozenset[int], stream: int) -> float:
    """What the scans of a window cost, for new rows of all other streams, if it follows the given ones."""
    total = 0.0
    for origin in costs.streams:
        if origin != stream:
            partial = costs.result((origin, *(before - {origin}))) / costs.windows[origin - 1]
            total += partial * costs.rows(stream)
    return total


@pytest.mark.parametrize("streams", [TABLE_5, TABLE_6, TABLE_7])
def test_best_over_sets_is_the_best_of_all_orders(streams: Streams) -> None:
    assert _best(streams) == pytest.approx(min(every_order(streams).values()))


@pytest.mark.parametrize("size", [1, 2, 10])
def test_any_number_of_streams(size: int) -> None:
    chosen = choose_order([1.0] * size, [100.0] * size, [50.0] * size)
    assert sorted(chosen.order) == list(range(1, size + 1))
    assert chosen.considered <= 2 * size**2


def test_equal_counts_go_by_window_size() -> None:
    """With equal numbers of values, windows ascend by rows (5.1)."""
    assert choose_order([4, 3, 2, 1], [100] * 4, [50] * 4).order == (4, 3, 2, 1)


def test_buckets_discount_the_window() -> None:
    """The slowest stream goes first, but last once a bucket of its window is the least to look at."""
    streams: Streams = ([4, 3, 2, 1], [100] * 4, [50] * 4)
    assert choose_order(*streams).order == (4, 3, 2, 1)
    chosen = choose_order(*streams, buckets=[1, 1, 1, 50])
    assert chosen.order == (3, 2, 1, 4)
    assert chosen.cost < eager_cost((4, 3, 2, 1), *streams, [1, 1, 1, 50])
    assert choose_order(*streams, buckets=[20] * 4).order == (4, 3, 2, 1), "equal buckets change no order (5.3)"


def test_hashed_windows_are_innermost_in_the_hybrid() -> None:
    """1 and 2 only pass a test and must be scanned; 3 and 4 are found by hash, and their loops run most often."""
    graph = JoinGraph(({1: 50.0, 3: 50.0, 4: 50.0},), {(1, 2): 0.05})
    chosen = choose_order([1] * 4, [100] * 4, graph=graph, buckets=[1, 1, 25, 25])
    assert set(chosen.order[2:]) == {3, 4}


def test_dear_tests_come_early_where_results_grow() -> None:
    """Every loop doubles the results, so an expensive test between 3 and 4 is made in the first loops."""
    streams: Streams = ([1, 1, 1, 1], [100] * 4, [50] * 4)
    equalities = JoinGraph.on_common_attribute(streams[2]).equalities
    expensive = choose_order(*streams[:2], graph=JoinGraph(equalities, {(3, 4): 1.0}, {(3, 4): 40.0}))
    assert set(expensive.order[:2]) == {3, 4}
    assert set(choose_order(*streams).order[:2]) != {3, 4}


def test_dear_tests_come_late_where_results_shrink() -> None:
    """Of a window's 100 rows one in five has a match in the next."""
    streams: Streams = ([1, 1, 1, 1], [100] * 4, [500] * 4)
    equalities = JoinGraph.on_common_attribute(streams[2]).equalities
    expensive = choose_order(*streams[:2], graph=JoinGraph(equalities, {(1, 2): 1.0}, {(1, 2): 4000.0}))
    assert set(expensive.order[:2]) != {1, 2}


def test_lazy_order_is_that_of_longer_windows() -> None:
    chosen = choose_order(*TABLE_7, tau=20)
    assert chosen.cost == lazy_cost(chosen.order, *TABLE_7, 20)
    assert chosen.cost == min(lazy_cost(order, *TABLE_7, 20) for order in itertools.permutations(range(1, 5)))


@pytest.mark.parametrize("tau", [1, 10, 50])
@pytest.mark.parametrize("rate", [1, 10])
def test_general_orders(tau: float, rate: float) -> None:
    """One order per origin, the best of all for each (Figure 3's streams)."""
    streams: Streams = ([1, 1, 1, rate], [100] * 4, [50] * 4)
    chosen = choose_orders(*streams, tau=tau)
    assert chosen.cost == pytest.approx(general_cost(chosen.orders, *streams, tau))
    assert chosen.cost <= choose_order(*streams, tau=tau).cost * (1 + 1e-12)
    costs = JoinCosts(streams[0], streams[1], JoinGraph.on_common_attribute(streams[2]), tau)
    best = sum(
        min(costs.of_origin(order, origin) for order in itertools.permutations(costs.streams))
        for origin in costs.streams
    )
    assert chosen.cost == pytest.approx(best)


def test_new_rows_of_a_fast_stream_come_last_when_tau_is_large() -> None:
    streams: Streams = ([1, 1, 1, 10], [100] * 4, [50] * 4)
    assert choose_orders(*streams, tau=1).orders[3][0] == 4
    assert choose_orders(*streams, tau=50).orders[3][-1] == 4


def test_joins_on_different_attributes_follow_the_graph() -> None:
    """A chain 1-2-3-4: whatever the origin, each next stream is connected with those before."""
    graph = JoinGraph(({1: 10.0, 2: 10.0}, {2: 30.0, 3: 30.0}, {3: 5.0, 4: 5.0}))
    chosen = choose_order([1, 2, 3, 4], [100] * 4, graph=graph)
    for origin in range(1, 5):
        path = graph.from_origin(chosen.order, origin)
        assert all(graph.links(path[:place], path[place]) for place in range(1, 4)), path


def test_fast_windows_get_more_buckets() -> None:
    """6.5: three slow streams and one fifty times as fast, twelve buckets each on average."""
    streams: Streams = ([1, 1, 1, 50], [100] * 4, [50] * 4)
    equal = [12] * 4
    spread = allocate_buckets(48, *streams)
    assert sum(spread) == 48
    assert spread[3] > max(spread[:3])
    order = choose_order(*streams).order
    assert eager_cost(order, *streams, spread) < eager_cost(order, *streams, equal)


def test_only_what_is_looked_up_gets_buckets() -> None:
    """1 and 2 are equal on an attribute; 3 is only compared, so no bucket would shorten its scans."""
    graph = JoinGraph(({1: 50.0, 2: 50.0},), {(2, 3): 0.1})
    one, two, three = allocate_buckets(30, [1, 1, 100], [100] * 3, graph=graph)
    assert three == 1
    assert one + two == 29


def test_bucket_limits() -> None:
    streams: Streams = ([1, 1, 1, 50], [100] * 4, [2, 2, 2, 3])
    assert allocate_buckets(1_000, *streams) == (2, 2, 2, 3), "no more buckets than values"
    assert allocate_buckets(4, *streams) == (1, 1, 1, 1)
    assert allocate_buckets(1_000, *streams, upkeep=1e12) == (1, 1, 1, 1)
    with pytest.raises(StatisticsError, match="at least one"):
        allocate_buckets(3, *streams)


def test_best_spread_of_buckets() -> None:
    """No other way to spread ten buckets over three windows costs less for the same order."""
    streams: Streams = ([3, 1, 8], [100, 50, 200], [50, 20, 30])
    order = choose_order(*streams).order
    spread = allocate_buckets(10, *streams)
    others = [sizes for sizes in itertools.product(range(1, 9), repeat=3) if sum(sizes) == 10]
    assert eager_cost(order, *streams, spread) == pytest.approx(
        min(eager_cost(order, *streams, sizes) for sizes in others)
    )


def test_the_search_is_bounded_for_many_streams() -> None:
    rates = [1.0 + stream % 7 for stream in range(40)]
    chosen = choose_order(rates, [60.0] * 40, [100.0] * 40)
    assert sorted(chosen.order) == list(range(1, 41))
    assert chosen.considered <= most_orders(40) < most_orders(10)


@pytest.mark.parametrize(
    ("distinct", "fluctuating", "order"),
    [
        ((60, 50, 40, 30), {4: 8.0}, (4, 1, 2, 3)),
        ((60, 55, 50, 45), {3: 3.0, 4: 8.0}, (4, 3, 1, 2)),
        ((500, 100, 50, 20), {3: 8.0}, (1, 3, 2, 4)),
    ],
    ids=["to the top", "the one that fluctuates most above the other", "near the top, where the top costs too much"],
)
def test_streams_that_fluctuate_go_near_the_top(
    distinct: tuple[int, ...], fluctuating: dict[int, float], order: tuple[int, ...]
) -> None:
    """Paper 4, 5.4: of an order that cannot change, at no more than `PRUDENCE` times the lowest cost."""
    streams: Streams = ([1.0] * 4, [100.0] * 4, list(distinct))
    bursts = [fluctuating.get(stream, 1.0) for stream in range(1, 5)]
    best, chosen = choose_order(*streams), choose_order(*streams, bursts=bursts)
    assert best.order == (1, 2, 3, 4)
    assert chosen.order == order
    assert best.cost < chosen.cost == eager_cost(order, *streams) <= PRUDENCE * best.cost
    on_top = eager_cost(sorted(best.order, key=lambda one: one not in fluctuating), *streams)
    assert (order[0] in fluctuating) == (on_top <= PRUDENCE * best.cost)
    lazy = choose_orders(*streams, tau=10, bursts=bursts)
    lowest = choose_orders(*streams, tau=10)
    assert lazy.cost <= PRUDENCE * lowest.cost
    places = [sum(given.index(stream) for given in found.orders) for stream in fluctuating for found in (lazy, lowest)]
    assert sum(places[::2]) < sum(places[1::2])
