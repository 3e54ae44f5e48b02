"""Which edges between stages may have rows that end by calendar (paper 5, 5.3.2), and that this changes no name of state."""

from __future__ import annotations

import pytest

from sash.physical import planner
from sash.physical.nodes import PhysicalPlan
from sash.physical.plan_channels import channels_of
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.options import Options
from sash.planning import PlannedJob, plan_query, plan_together
from sash.rows import parse_schema

SCHEMA = parse_schema("ts BIGINT, k BIGINT, g BIGINT, v BIGINT")
CATALOG = Catalog({name: StreamEntry(name, SCHEMA, "ts") for name in ("s", "r")})
HELD = frozenset({"pull_up_negation", "push_down_negation"})
NEGATION = "SELECT a.k, a.g, a.v FROM s [RANGE 9 SECONDS] AS a LEFT ANTI JOIN r [RANGE 1 SECOND] AS b ON a.k = b.k"
JOINED = f"SELECT t.k, c.v FROM ({NEGATION} WHERE a.v > 2) AS t JOIN r [RANGE 5 SECONDS] AS c ON t.g = c.g"


def plan(sql: str, strategy: str = "auto") -> PhysicalPlan:
    return plan_query(sql, CATALOG, HELD, options=Options(strategy)).physical  # type: ignore[arg-type]


def together(*queries: str) -> PhysicalPlan:
    plans = {f"q{number}": plan_query(sql, CATALOG, HELD, shards=2) for number, sql in enumerate(queries)}
    found: PlannedJob = plan_together(plans, 2)
    return found.physical


def sent(plan: PhysicalPlan) -> list[str]:
    """How the rows end that stages read of others."""
    return [given.leaf.expiry for stage in plan.stages for given in stage.inputs if given.leaf.stage is not None]


@pytest.mark.parametrize(
    "sql",
    [
        JOINED,
        JOINED.replace("ANTI", "SEMI"),
        JOINED.replace("JOIN r [RANGE 5", "LEFT JOIN r [RANGE 5"),
        f"SELECT t.k FROM ({NEGATION}) AS t LEFT ANTI JOIN r [RANGE 5 SECONDS] AS c ON t.g = c.g",
        JOINED.replace("s [RANGE 9 SECONDS]", "(SELECT k, g, v FROM s [RANGE 9 SECONDS] UNION ALL SELECT k, g, v FROM r [RANGE 2 SECONDS])"),
    ],
)  # fmt: skip
def test_joins_by_other_columns_may_read_expiration_times(sql: str) -> None:
    assert "strict" in sent(plan(sql))


@pytest.mark.parametrize(
    ("sql", "strategy"),
    [
        (f"SELECT t.g, COUNT(*) AS n FROM ({NEGATION}) AS t GROUP BY t.g", "auto"),
        (f"SELECT t.g, t.k FROM ({NEGATION}) AS t EXCEPT SELECT g, k FROM r [RANGE 5 SECONDS] ORDER BY k LIMIT 3", "auto"),
        (JOINED.replace("s [RANGE 9 SECONDS]", "(SELECT DISTINCT k, g, v FROM s [RANGE 9 SECONDS])"), "auto"),
        (JOINED.replace("s [RANGE 9 SECONDS]", "s [ROWS 9]"), "auto"),
        (JOINED, "direct"),
        (JOINED, "negative-tuple"),
        (JOINED, "time-message"),
    ],
)  # fmt: skip
def test_elsewhere_all_rows_end_as_before(sql: str, strategy: str) -> None:
    """Where rows are counted only, or would not expire at the same times again, or another strategy is wanted."""
    assert "strict" not in sent(plan(sql, strategy))


def test_all_readers_must_keep_the_rows() -> None:
    by_v = JOINED.replace("t.g = c.g", "t.v = c.v")
    assert sent(together(JOINED, by_v)) == ["strict", "strict"]
    counted = f"SELECT t.g, COUNT(*) AS n FROM ({NEGATION} WHERE a.v > 2) AS t GROUP BY t.g"
    assert "strict" not in sent(together(JOINED, counted))
    assert "strict" not in sent(together(JOINED, f"SELECT t.k, t.g FROM ({NEGATION} WHERE a.v > 2) AS t"))


def test_state_is_named_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of earlier versions go on: they know negative tuples only, with which every run begins."""
    now = channels_of(plan(JOINED), share=False)
    assert [channel.may_expire for channel in now.channels] == [False, False, True, False]
    monkeypatch.setattr(planner, "allow_strict_stages", lambda plan, _settings: plan)
    before = channels_of(plan(JOINED), share=False)
    assert [channel.may_expire for channel in before.channels] == [False] * 4
    assert now.stages == before.stages
    assert [channel.identity for channel in now.channels] == [channel.identity for channel in before.channels]


def test_explain_says_how_rows_begin() -> None:
    found = plan_query(JOINED, CATALOG, HELD).explain()
    assert "ends by negative tuples at first, as another stage reads it" in found
