"""Joins of three and more streams in every form, split in every way, against the oracle."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.errors import StrategyError
from sash.plan.options import JOINS, STRATEGIES
from sash.testing import replay
from tests.oracle.case import Case, case, table
from tests.oracle.check import assert_oracle, run
from tests.oracle.duck import Row, View
from tests.oracle.fixed.counts import last
from tests.oracle.fixed.multi_joins import CASES, CHAIN, COMMON, HYBRID, P
from tests.test_oracle_splits import compositions, stream_of

FORMS = [(join, tau) for join in JOINS for tau in (None, 3) if ("lazy" in join) <= (tau is not None)]
FORMS = [(join, tau) for join, tau in FORMS if not (join.startswith("eager") and tau)]
NAMES = [f"{join}-{tau}" if tau else join for join, tau in FORMS]


@pytest.mark.parametrize(("join", "tau"), FORMS, ids=NAMES)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_form(case: Case, join: str, tau: int | None) -> None:
    shards = {"auto": 3, "binary": 2, "hybrid": 5}.get(join, 1)
    assert_oracle(case, join=join, tau=tau, shards=shards, batch=3)


@pytest.mark.parametrize(("join", "tau"), [("auto", None), ("lazy-hash", 3)])
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_few_buckets(case: Case, join: str, tau: int | None) -> None:
    assert_oracle(case, join=join, tau=tau, buckets=7, shards=2, batch=4)


@pytest.mark.parametrize(("join", "tau"), FORMS, ids=NAMES)
@pytest.mark.parametrize("purge", [2, 9])
def test_lazy_expiration_of_every_form(join: str, tau: int | None, purge: int) -> None:
    """Expired rows stay for a while, also where evaluation is eager, and join nothing any more (paper 4, 3.2)."""
    for query, batch in ((COMMON, 1), (CHAIN, 5), (HYBRID, 2)):
        assert_oracle(query, join=join, tau=tau, purge=purge, batch=batch, shards=1)


LAST = {"s": last(3), "r": last(2, "r"), "q": last(4, "q"), "p": last(1, "p", "k")}
_COUNTED = (
    "SELECT a.ts AS x, b.ts AS y, c.ts AS z FROM {s} AS a, {r} AS b, {q} AS c, {p} AS d WHERE a.k = b.k AND b.k = c.k"
)
COUNTED = (
    case("counted", _COUNTED + " AND c.k = d.k", LAST, streams={"p": P}),
    case("counted_and_filtered", _COUNTED + " AND c.k = d.k AND a.v < 8 AND c.v > 1", LAST, streams={"p": P}),
    case("counted_by_comparison", _COUNTED + " AND c.v <= d.v", LAST, streams={"p": P}),
    case("counted_and_timed", _COUNTED + " AND c.k = d.k", {**LAST, "r": 6, "p": 7}, streams={"p": P}),
    case("counted_values", _COUNTED.replace("a.ts AS x", "a.v AS x") + " AND c.k = d.k", LAST, streams={"p": P}),
)


@pytest.mark.parametrize(("join", "tau"), FORMS, ids=NAMES)
@pytest.mark.parametrize("case", COUNTED, ids=[case.name for case in COUNTED])
def test_every_form_over_count_windows(case: Case, join: str, tau: int | None) -> None:
    """Lazily, the counters of rows are compared as of each new row (ComputeCountJoin, paper 4, 3.6)."""
    for batch in (1, 7):
        assert_oracle(case, join=join, tau=tau, batch=batch, shards=1)


@pytest.mark.parametrize("case", COUNTED, ids=[case.name for case in COUNTED])
@pytest.mark.parametrize("join", ["lazy-hash", "lazy-nlj", "general-lazy-nlj"])
def test_lazy_joins_of_count_windows_wait_for_their_re_execution(case: Case, join: str) -> None:
    """Rows that have left their windows stay until then: more are looked at, and the answer is the same."""
    options: dict[str, Any] = {"shards": 1, "batch": None, "join": join}
    (seldom, often) = (run(case, tau=tau, **options) for tau in (100, 1))
    joined = [name for name in seldom.counts if name.endswith("MultiJoin")]
    assert seldom.state_rows == often.state_rows
    looked = [sum(result.counts[name].rows_examined for name in joined) for result in (often, seldom)]
    assert looked[0] < looked[1]


def compute_count_join(streams: dict[str, list[Row]], sizes: dict[str, int], tau: int) -> Counter[tuple[int, ...]]:
    """ComputeCountJoin with its counters, as paper 4, 3.6 has it: every row has its number in its stream.

    At a re-execution, every new row k joins the rows of each other window whose counter is larger than that of the last row
    up to k's time, less the window's length. Rows of one instant join once (`docs/paper-map.md`).
    """
    results: Counter[tuple[int, ...]] = Counter()
    counted = [
        [(row["ts"], place, row["k"], cnt) for cnt, row in enumerate(rows)]
        for place, rows in enumerate(streams.values())
    ]
    for until in range(tau, max(row[0] for rows in counted for row in rows) + 2 * tau, tau):
        for place, rows in enumerate(counted):
            for k in (row for row in rows if until - tau <= row[0] < until):
                found = []
                for other, (window, size) in enumerate(zip(counted, sizes.values(), strict=True)):
                    tmp = max((u[3] for u in window if u[0] <= k[0]), default=-1) - size
                    found.append(
                        [k] if other == place else [u for u in window if u[3] > tmp and u[:2] < k[:2] and u[2] == k[2]]
                    )
                results.update(tuple(row[0] for row in joined) for joined in product(*found))
    return results


@pytest.mark.parametrize("join", ["lazy-hash", "lazy-nlj", "general-lazy-nlj"])
def test_differential_lazy_joins_of_count_windows_are_compute_count_join(join: str) -> None:
    """Comparing the time of a row's n-th follower is comparing its counter with that of the last row up to then."""
    random, sizes = Random(2003), {"s": 3, "r": 6, "q": 2}
    for tau in (1, 7, 40):
        streams = {
            name: [{"ts": ts, "k": random.randrange(2)} for ts in sorted(random.sample(range(150), 50))]
            for name in sizes
        }
        windows = ", ".join(f"{name} [ROWS {size}]" for name, size in sizes.items())
        sql = f"SELECT s.ts AS x, r.ts AS y, q.ts AS z FROM {windows} WHERE s.k = r.k AND r.k = q.k"
        changes = replay(sql, streams, join=join, tau=tau, batch=20, shards=1).changes
        made = Counter(tuple(change.row.values()) for change in changes if change.op == "+")
        assert made == compute_count_join(streams, sizes, tau)
        assert len(made) > 100
        for change in changes:
            if change.op == "-":
                followers = zip(change.row.values(), streams.values(), sizes.values(), strict=True)
                ends = [[row["ts"] for row in rows if row["ts"] > ts][size - 1 : size] for ts, rows, size in followers]
                assert change.ts == min(end for found in ends for end in found)


NOT_LAZY = ("auto", "clock-triggered", "re-evaluation")


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in NOT_LAZY])
@pytest.mark.parametrize("case", [*COUNTED, COMMON, HYBRID], ids=lambda case: case.name)
def test_every_strategy_joins_lazily(case: Case, strategy: str) -> None:
    assert_oracle(case, strategy=strategy, join="lazy-hash", tau=4, purge=3, batch=5, shards=2)


@pytest.mark.parametrize("shards", [1, 2, 3, 5])
@pytest.mark.parametrize("batch", [None, 1, 4])
@pytest.mark.parametrize("case", [COMMON, CHAIN, HYBRID], ids=lambda case: case.name)
def test_shards_and_batches(case: Case, batch: int | None, shards: int) -> None:
    assert_oracle(case, shards=shards, batch=batch)


SHORT = {
    "s": table("ts k v", (1, 1, 4), (2, 1, 5), (4, 2, 7)),
    "r": table("ts k v", (2, 1, 4), (4, 1, 7)),
    "q": table("ts k v", (2, 1, 1), (3, 2, 6), (5, 1, 9)),
}
SPLIT = case(
    "split",
    "SELECT a.ts AS x, b.ts AS y, c.ts AS z FROM {s} AS a, {r} AS b, {q} AS c WHERE a.k = b.k AND b.k = c.k AND a.v <= b.v",
    {"s": 3, "r": 2, "q": 4},
    streams=SHORT,
)


@pytest.mark.parametrize(("join", "tau"), [("auto", None), ("lazy-hash", 2), ("general-lazy-nlj", 3)])
def test_every_split_gives_the_same_change_stream(join: str, tau: int | None) -> None:
    options: dict[str, Any] = {"join": join, "tau": tau, "shards": 2}
    assert_oracle(SPLIT, **options)
    whole = stream_of(SPLIT, **options)
    assert whole == stream_of(SPLIT, join="binary")
    for sizes in compositions(8):
        assert stream_of(SPLIT, batch=sizes, **options) == whole, f"split {sizes}"


ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from([None, 1, 1, 2]), st.integers(0, 3)).map(
        lambda row: dict(zip(("ts", "k", "v"), row, strict=True))
    ),
    max_size=8,
).map(lambda rows: sorted(rows, key=lambda row: row["ts"]))
CONDITIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["{}.k = {}.k", "{}.k = {}.k", "{}.v = {}.v", "{}.v < {}.v", "{}.k <> {}.v", "{}.v + 1 >= {}.k"]
        ),
        st.permutations("abcd"),
    ).map(lambda drawn: drawn[0].format(*drawn[1][:2])),
    max_size=5,
)


@settings(max_examples=60)
@given(
    streams=st.fixed_dictionaries(dict.fromkeys("srqp", ROWS)),
    windows=st.tuples(*[st.integers(1, 6) | st.integers(1, 4).map(lambda rows: View("", rows=rows))] * 4),
    conditions=CONDITIONS,
    form=st.sampled_from(FORMS),
    shards=st.sampled_from((1, 2, 3, 5)),
    batch=st.sampled_from((None, 1, 3)),
    purge=st.sampled_from((None, 1, 4, 30)),
)
def test_random_join_of_four(
    streams: Any,
    windows: tuple[int | View, ...],
    conditions: list[str],
    form: tuple[str, int | None],
    shards: int,
    batch: Any,
    purge: int | None,
) -> None:
    where = " AND ".join(["a.k = b.k", *conditions])
    text = (
        "SELECT a.ts AS w, b.ts AS x, c.ts AS y, d.ts AS z, c.v AS v FROM {s} AS a, {r} AS b, {q} AS c, {p} AS d WHERE "
    )
    schemas = dict.fromkeys("srqp", "ts BIGINT, k BIGINT, v BIGINT")
    views = {
        name: replace(window, stream=name) if isinstance(window, View) else window
        for name, window in zip("srqp", windows, strict=True)
    }
    drawn = case("random", text + where, views, streams=streams, schemas=schemas, empties=purge is None)
    assert_oracle(drawn, join=form[0], tau=form[1], shards=shards, batch=batch, purge=purge)


WORKED = {
    "s": table("ts k", (90, 1), (100, 1)),
    "r": table("ts k", (150, 1), (180, 1)),
    "q": table("ts k", (195, 1), (205, 1)),
}
QUERY = (
    "SELECT a.ts AS x, b.ts AS y, c.ts AS z FROM s [RANGE 100 SECONDS] AS a, r [RANGE 100 SECONDS] AS b, "
    "q [RANGE 100 SECONDS] AS c WHERE a.k = b.k AND b.k = c.k"
)


@pytest.mark.parametrize(
    ("tau", "until", "released"),
    [
        (None, None, (195, 200)),
        (210, None, (210, 210)),
        (30, None, (210, 210)),
        (15, None, (195, 210)),
        (7, 200, (196, None)),
    ],
    ids=["eager", "at 210", "every 30", "boundary", "ended before"],
)
@pytest.mark.parametrize("batch", [None, 1])
def test_worked_example_is_released_at_its_re_execution(
    tau: int | None, until: int | None, released: tuple[int, int | None], batch: int | None
) -> None:
    changes = replay(QUERY, WORKED, unit="s", tau=tau, until=until, batch=batch).changes
    rows = [(100, 150, 195), (100, 180, 195)]
    expected = [(195, "+", row, released[0]) for row in rows] + [(200, "-", row, released[1]) for row in rows]
    assert Counter((c.ts, c.op, tuple(c.row.values()), c.released) for c in changes) == Counter(expected)


@pytest.mark.parametrize(
    "options",
    [
        {"join": "sideways"},
        {"join": "lazy-hash"},
        {"join": "eager-nlj", "tau": 1},
        {"tau": 0},
        {"buckets": 0},
        {"buckets": 9, "join": "eager-nlj"},
        {"buckets": 9, "join": "binary"},
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(StrategyError):
        replay(QUERY, WORKED, unit="s", **options)
