from __future__ import annotations

import json

import duckdb
import numpy as np
import pytest

from bench import growth, throughput
from bench.data import SCHEMA
from bench.queries import QUERIES, WorkloadQuery
from bench.runs import Timing
from sash.cli.catalog import declared_catalog
from sash.errors import SashError
from sash.planning import Planned, plan_query
from tests.cli.command import python

KEYS = {
    "query",
    "events_per_s",
    "limit_events_per_s",
    "ratio",
    "batch_rows",
    "peak_rss_bytes",
    "processor_s_per_million",
}


def planned(query: WorkloadQuery) -> Planned:
    favourites = ["favorite_items(item_id INT)", "favorite_stores(store_id INT)"]
    return plan_query(
        query.sql, declared_catalog([f"{name}({SCHEMA})" for name in query.streams], favourites), query.disable
    )


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_every_query_plans_over_its_streams(query: WorkloadQuery) -> None:
    assert set(planned(query).streams) == set(query.streams)


def test_q2_as_planned_has_its_distinct_below_the_join() -> None:
    plans = {query.name: planned(query) for query in QUERIES}
    assert "push_distinct_below_join" in plans["q2"].rules
    assert "push_distinct_below_join" not in plans["q2-join-first"].rules


@pytest.mark.parametrize(("name", "share"), [("q1", 0.25), ("q3", 0.1), ("q4", 0.1), ("q5", 0.1)])
def test_selectivities_are_those_of_the_paper(name: str, share: float) -> None:
    query = next(query for query in QUERIES if query.name == name)
    sales = query.sales.table(100_000, 0, np.random.default_rng(0))
    (kept,) = duckdb.sql(f"SELECT AVG(CASE WHEN {query.keeps} THEN 1.0 ELSE 0 END) FROM sales").fetchall()[0]
    assert sales.num_rows == 100_000
    assert kept == pytest.approx(share, abs=0.01)


def test_figures_are_of_the_steady_state() -> None:
    timing = Timing((9.0, 8.0, 1.0, 3.0))
    assert throughput._events_per_second(timing, rows=100, skipped=2) == 50


def test_too_few_batches_are_refused() -> None:
    with pytest.raises(SashError, match="increase --batches"):
        throughput._events_per_second(Timing((9.0, 8.0)), rows=100, skipped=2)


@pytest.mark.parametrize("choose", [throughput._chosen, growth._chosen])
def test_unknown_names_are_refused(choose: object) -> None:
    assert callable(choose)
    with pytest.raises(SashError, match="q9"):
        choose("q9")


@pytest.mark.spark
@pytest.mark.slow
def test_throughput_prints_json() -> None:
    settings = ("--queries", "q2-join-first", "--rows-per-batch", "60000", "--batches", "1", "--warm-up", "2")
    done = python("-m", "bench", "throughput", *settings, "--json")
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["queries"]
    assert result.keys() == KEYS
    assert result["query"] == "q2-join-first"
    assert result["events_per_s"] > 0
    assert result["ratio"] == pytest.approx(result["events_per_s"] / result["limit_events_per_s"], rel=0.01)
    assert result["peak_rss_bytes"] > 100_000_000
    assert result["processor_s_per_million"] > 0
