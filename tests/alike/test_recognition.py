"""Which queries are recognised as alike, and what their plan shares."""

from __future__ import annotations

import pytest

from sash.alike import Candidate, alike_query, number_of, plan_alike
from sash.plan.alike import LEAST, find_alike
from sash.plan.catalog import Catalog
from sash.plan.nodes import Aggregate, Alike, walk
from sash.plan.options import Options
from sash.plan.templates import shape_of
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.sql import parse

COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS] WHERE k = {}"


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    made.add_stream("s", parse_schema("ts BIGINT, k INT, v BIGINT, t STRING, d DOUBLE"), "ts")
    made.add_stream("r", parse_schema("ts BIGINT, k INT"), "ts")
    return made


def _groups(catalog: Catalog, queries: list[str], least: int = LEAST) -> list[tuple[int, ...]]:
    found = find_alike([(shape_of(parse(sql, catalog)), False, "") for sql in queries], least)
    return [group.members for group in found]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM s WHERE k = {}",
        "SELECT k, SUM(v) AS n FROM s [RANGE 5 SECONDS] WHERE v > {} GROUP BY k",
        "SELECT k, SUM(v * {}) AS n FROM s [RANGE 5 SECONDS] GROUP BY k",
        "SELECT k, v FROM s [RANGE 5 SECONDS] WHERE k = {} ORDER BY v LIMIT 3",
        "SELECT k FROM s [RANGE 5 SECONDS] WHERE k = {} EXCEPT SELECT k FROM r [RANGE 5 SECONDS]",
        "SELECT s.k FROM s [RANGE 5 SECONDS] JOIN r [RANGE 5 SECONDS] ON s.k = r.k WHERE v = {}",
        "SELECT t, SUM(CAST(t AS INT)) AS n FROM s [RANGE 5 SECONDS] WHERE k = {} GROUP BY t",
        "SELECT SUM(n) AS n FROM (SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS] WHERE k = {})",
        "SELECT k FROM s [RANGE {} SECONDS] WHERE v > 3",
        "SELECT t FROM s [RANGE 5 SECONDS] WHERE t LIKE 'a{}%'",
    ],
)
def test_differences_that_cannot_be_lifted_leave_queries_separate(catalog: Catalog, sql: str) -> None:
    assert _groups(catalog, [sql.format(n) for n in range(1, 11)]) == []


def test_few_queries_stay_separate(catalog: Catalog) -> None:
    queries = [COUNT.format(n) for n in range(LEAST)]
    assert _groups(catalog, queries[1:]) == []
    assert _groups(catalog, queries) == [tuple(range(LEAST))]


def test_queries_that_agree_on_what_cannot_be_lifted_are_alike(catalog: Catalog) -> None:
    sql = "SELECT k, SUM(v * {}) AS n FROM s [RANGE 5 SECONDS] GROUP BY k HAVING COUNT(*) > {}"
    queries = [sql.format(factor, least) for least in range(3) for factor in (1, 2)]
    assert _groups(catalog, queries, 3) == [(0, 2, 4), (1, 3, 5)]


def test_constants_are_values_of_one_type(catalog: Catalog) -> None:
    """17, 17.0 and 15 + 2 are the same constant of a column of doubles; and what all have in common is no difference."""
    texts = ["17", "17.5", "15 + 2", "CAST('3' AS INT)"]
    queries = [f"SELECT k FROM s [RANGE 5 SECONDS] WHERE d > {text} AND t = 'x'" for text in texts]
    candidates = [Candidate(f"q{n}", plan_query(sql, catalog), "net", None) for n, sql in enumerate(queries)]
    (found,) = find_alike([(shape_of(one.planned.written), True, one.agreed) for one in candidates], 2)
    rows = [query.values for one in candidates if (query := alike_query(one, found.template)) is not None]
    assert rows == [(17.0,), (17.5,), (17.0,), (3.0,)]
    assert len(found.template.constants) == 1


def test_what_is_shared_is_below_the_constants(catalog: Catalog) -> None:
    queries = [COUNT.format(n) for n in range(10)]
    candidates = [Candidate(f"q{n}", plan_query(sql, catalog), "net", None) for n, sql in enumerate(queries)]
    (planned,) = plan_alike(candidates, 2)
    (alike,) = [node for node in walk(planned.planned.optimized) if isinstance(node, Alike)]
    assert alike.net
    assert alike.otherwise is not None
    (aggregate,) = [node for node in walk(alike) if isinstance(node, Aggregate)]
    assert len(aggregate.keys) == 1
    assert planned.key == (0,)
    assert [query.number for query in planned.queries] == [number_of(f"q{n}") for n in range(10)]
    assert len(planned.planned.physical.stages) == 1


def test_queries_with_other_modes_or_options_are_not_alike(catalog: Catalog) -> None:
    plans = [plan_query(COUNT.format(n), catalog) for n in range(10)]
    slow = [plan_query(COUNT.format(n), catalog, options=Options(tau=1_000_000)) for n in range(10)]
    mixed = [Candidate(f"q{n}", plan, "net" if n % 2 else "changes", None) for n, plan in enumerate(plans)]
    assert plan_alike(mixed) == []
    both = [Candidate(f"q{n}", plan, "net", None) for n, plan in enumerate((*plans[:4], *slow[:4]))]
    assert plan_alike(both) == []
    assert len(plan_alike([Candidate(f"q{n}", plan, "net", None) for n, plan in enumerate(slow)])) == 1


def test_a_template_of_the_checkpoint_is_kept_while_a_query_fits(catalog: Catalog) -> None:
    candidates = [Candidate(f"q{n}", plan_query(COUNT.format(n), catalog), "net", None) for n in range(10)]
    (before,) = plan_alike(candidates)
    kept = {before.name: before.template.parameters}
    (after,) = plan_alike(candidates[3:4], kept=kept)
    assert after.name == before.name
    assert after.template.plan == before.template.plan
    assert [query.name for query in after.queries] == ["q3"]
    assert plan_alike(candidates[3:4]) == []
