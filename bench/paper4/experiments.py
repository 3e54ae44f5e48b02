"""Paper 4's experiments on the operator: Table 8 and Figures 2, 3 and 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench.figures import Measured
from bench.paper4.costs import lazy_cost, naive_cost
from bench.paper4.operator import Setting, Speed, first, measure, plans
from bench.paper4.streams import TABLE_5, Streams, alike
from sash.arguments import check_word
from sash.optimizer.cost import eager_cost
from sash.optimizer.join_order import choose_orders
from sash.plan.options import JOINS, JoinForm

Report = Callable[[str], None]

PAPER: dict[str, tuple[int, int]] = {
    "eager-nlj": (1614, 333),
    "lazy-nlj 5": (1446, 296),
    "lazy-nlj 10": (1332, 274),
    "eager-hash": (11540, 2524),
    "lazy-hash 5": (8420, 2041),
    "lazy-hash 10": (7947, 1848),
}
"""Tuples per second of the best and of the worst plan in Table 8, by form and tau."""

PER_KEY = "eager-hash, a list per key"
BUCKETS = 5
_TAUS = (1, 2, 5, 10, 15, 20, 30, 40, 50)


def form_and_tau(name: str) -> tuple[JoinForm, float | None]:
    """The form and tau of a row of Table 8."""
    form, *tau = name.split()
    return check_word("join", form, JOINS), float(tau[0]) if tau else None


def table_8(rows: int, repeats: int, report: Report) -> list[dict[str, Any]]:
    """The highest rates of the best and of the worst plan, with five buckets per hash table."""
    results = []
    for name, (paper_best, paper_worst) in PAPER.items():
        form, tau = form_and_tau(name)
        buckets = (BUCKETS if "hash" in form else 1,) * len(TABLE_5.rates)
        speeds: list[Speed] = []
        for which, order in zip(("best", "worst"), plans(TABLE_5, tau), strict=True):
            report(f"Table 8: {name}, {which} plan")
            share = 1 if "hash" in form else BUCKETS
            speeds.append(measure(TABLE_5, Setting(first(order, 4), buckets, tau), rows // share, repeats))
        best, worst = speeds
        results.append(
            {
                "form": name,
                "best_per_s": best.rates,
                "worst_per_s": worst.rates,
                "best_probes": best.counts,
                "worst_probes": worst.counts,
                "results_per_row": best.results,
                "paper_best_per_s": paper_best,
                "paper_worst_per_s": paper_worst,
            }
        )
    report("Table 8: a list for every key")
    exact = measure(TABLE_5, Setting(first(plans(TABLE_5, None)[0], 4), None), rows, repeats)
    results.append({"form": PER_KEY, "best_per_s": exact.rates, "best_probes": exact.counts})
    return results


Lines = dict[str, list[tuple[float, Sequence[float]]]]


def _per_unit(streams: Streams, speed: Speed) -> list[float]:
    """Probes per unit of time, by run."""
    return [round(count * streams.unit) for count in speed.counts]


def figure_2(rows: int, most: int, repeats: int, report: Report) -> Measured:
    """Probes per unit of time of the naive and the eager join, by number of windows."""
    lines: Lines = {"multi-way": [], "naive": [], "multi-way, model": [], "naive, model": []}
    for count in range(2, most + 1):
        report(f"Fig 2: {count} windows")
        streams = alike(count)
        order = tuple(range(1, count + 1))
        same = tuple(range(count))
        for name, orders in (("multi-way", first(order, count)), ("naive", (same,) * count)):
            speed = measure(streams, Setting(orders, (1,) * count), rows, repeats)
            lines[name].append((count, _per_unit(streams, speed)))
        lines["multi-way, model"].append((count, [round(eager_cost(order, *streams.figures))]))
        lines["naive, model"].append((count, [round(naive_cost(order, *streams.figures))]))
    return Measured("paper4-fig2", "Fig 2: scaling with the number of windows", "windows", "probes per unit", lines)


def figure_3(rows: int, fast: int, repeats: int, report: Report) -> Measured:
    """Probes per unit of time of the lazy joins, each in its best orders, by tau."""
    streams = alike(4, fast)
    names = ("naive", "lazy", "general")
    lines: Lines = {name: [] for name in (*names, *(f"{name}, model" for name in names))}
    for tau in _TAUS:
        report(f"Fig 3, last stream {fast} times as fast: tau {tau}")
        fixed, shared = plans(streams, tau, naive=True)[0], plans(streams, tau)[0]
        own = choose_orders(*streams.figures, tau=tau)
        naive = tuple(number - 1 for number in fixed)
        general = tuple(tuple(number - 1 for number in order) for order in own.orders)
        lines["naive, model"].append((tau, [round(naive_cost(fixed, *streams.figures, tau=tau))]))
        lines["lazy, model"].append((tau, [round(lazy_cost(shared, *streams.figures, tau))]))
        lines["general, model"].append((tau, [round(own.cost)]))
        for name, orders in (
            ("naive", (naive,) * 4),
            ("lazy", first(shared, 4)),
            ("general", general),
        ):
            speed = measure(streams, Setting(orders, (1,) * 4, tau), rows, repeats)
            lines[name].append((tau, _per_unit(streams, speed)))
    part = "a" if fast == 1 else "b"
    title = f"Fig 3({part}): naive, lazy and general joins"
    return Measured(f"paper4-fig3{part}", title, "tau", "probes per unit", lines)


def figure_4a(rows: int, repeats: int, report: Report) -> Measured:
    """The highest rate by tau and number of buckets."""
    streams = alike(4)
    lines: Lines = {}
    for name, buckets in (("NLJ", 1), ("HASH2", 2), ("HASH10", 10), ("HASH30", 30)):
        lines[name] = []
        for tau in _TAUS:
            report(f"Fig 4(a): {name}, tau {tau}")
            setting = Setting(first((1, 2, 3, 4), 4), (buckets,) * 4, tau)
            lines[name].append((tau, measure(streams, setting, rows, repeats).rates))
    return Measured("paper4-fig4a", "Fig 4(a): re-execution interval and hash sizes", "tau", "tuples/s", lines)


def figure_4b(rows: int, repeats: int, report: Report) -> Measured:
    """The highest rate by the number of buckets that the three slow streams have; tau is 5."""
    streams = alike(4, fast=50)
    lines: Lines = {"equal": [], "1 to slow": [], "5 to slow": [], "10 to slow": []}
    order = plans(streams, 5)[0]
    for mean in (2, 4, 6, 8, 10, 12, 14):
        for name, line in lines.items():
            slow = mean if name == "equal" else int(name.split()[0])
            fast = 4 * mean - 3 * slow
            if fast < slow:
                continue
            report(f"Fig 4(b): {name}, {mean} buckets on average")
            setting = Setting(first(order, 4), (slow, slow, slow, fast), 5)
            line.append((mean, measure(streams, setting, rows, repeats).rates))
    return Measured(
        "paper4-fig4b", "Fig 4(b): buckets to slow and fast streams", "buckets per window", "tuples/s", lines
    )
