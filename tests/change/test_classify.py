"""What is kept, derived or new when a job changes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from sash.change.classify import classify
from sash.change.diff import JobDiff, diff_jobs
from sash.change.stored import Answer, Completeness, JobPlan, StoredLog, StoredStage, StoredState
from sash.errors import OptionError
from sash.physical.channels import StageRows, needs_snapshots
from sash.physical.plan_channels import channels_of
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.options import DEFAULT
from sash.planning import plan_query, plan_together
from sash.rows import parse_schema
from tests.physical.together import plans_together

SECOND = 1_000_000
CLOCK = 1_000 * SECOND
SALES = StreamEntry("sales", parse_schema("ts BIGINT, item BIGINT, shop BIGINT, price BIGINT, code STRING"), "ts")
WIDER = StreamEntry(
    "sales", parse_schema("ts BIGINT, a STRING, item BIGINT, shop BIGINT, price BIGINT, code STRING"), "ts"
)
VIEWS = StreamEntry("views", parse_schema("ts BIGINT, item BIGINT, shop BIGINT"), "ts")
SHOPS = RelationEntry("shops", parse_schema("shop BIGINT, city STRING"), key=(0,))
PRICES = RelationEntry("prices", parse_schema("item BIGINT, price BIGINT"), key=(0,), changes=True)
CATALOG = Catalog({"sales": SALES, "views": VIEWS}, {"shops": SHOPS, "prices": PRICES})

BY_ITEM = "SELECT item, SUM(price) AS total FROM sales [RANGE {0} SECONDS] {1} GROUP BY item"


def job(queries: Mapping[str, str], shards: int = 2, catalog: Catalog = CATALOG, slack: int = 0) -> JobPlan:
    planned = {name: plan_query(sql, catalog, shards=shards, options=DEFAULT) for name, sql in queries.items()}
    physical = plans_together({name: one.physical for name, one in planned.items()})
    answers = {
        name: Answer(one.sql, tuple(f"{field.name}:{field.dtype}" for field in one.schema), name)
        for name, one in planned.items()
    }
    return JobPlan(physical, channels_of(physical, share=True), shards, answers, {"sales": slack})


def together(queries: Mapping[str, str]) -> JobPlan:
    """The plan of a job whose queries share operators."""
    planned = {name: plan_query(sql, CATALOG, shards=2, options=DEFAULT) for name, sql in queries.items()}
    physical = plan_together(planned, 2).physical
    return replace(job(queries), physical=physical, channels=channels_of(physical, share=True))


def stored(plan: JobPlan, snapshots: bool = False) -> StoredState:
    logs = {channel.identity: StoredLog(CLOCK, 1 << 20) for channel in plan.channels.channels}
    stages = {
        identity: StoredStage(snapshots and needs_snapshots(plan.physical, stage))
        for identity, stage in zip(plan.channels.stages, plan.physical.stages, strict=True)
    }
    return StoredState(logs, stages)


def change(old: Mapping[str, str], new: Mapping[str, str], shards: int = 2) -> JobDiff:
    before = job(old)
    return diff_jobs(before, job(new, shards), stored(before))


def verdicts(diff: JobDiff) -> dict[str, str]:
    return {one.name: one.verdict for one in diff.queries}


def test_an_equal_job_changes_nothing() -> None:
    diff = change({"a": BY_ITEM.format(10, "")}, {"a": BY_ITEM.format(10, "").replace("total", "total")})
    assert not diff.changed
    assert diff.render() == "no change"
    assert diff.pause == 0


@pytest.mark.parametrize(
    "new",
    [
        BY_ITEM.format(5, ""),
        BY_ITEM.format(10, "WHERE shop = 3 AND price > 2"),
        BY_ITEM.format(10, "").replace("SUM(price)", "MAX(price)"),
        "SELECT shop, COUNT(*) AS n FROM sales [RANGE 4 SECONDS] GROUP BY shop",
        "SELECT COUNT(*) AS n, SUM(price * 2 + item) AS m FROM sales [RANGE 9 SECONDS]",
        "SELECT DISTINCT item FROM sales [RANGE 9 SECONDS SLIDE 1 SECOND] WHERE price % 2 = 0",
        "SELECT a.item, b.price FROM sales [RANGE 2 SECONDS] AS a JOIN sales [RANGE 3 SECONDS] AS b ON a.shop = b.shop",
        "SELECT n, COUNT(*) AS m FROM (SELECT item, COUNT(*) AS n FROM sales [RANGE 3 SECONDS] GROUP BY item) GROUP BY n",
    ],
)
def test_a_query_over_kept_rows_is_derived(new: str) -> None:
    every = "SELECT item, shop, SUM(price) AS total FROM sales [RANGE 10 SECONDS] GROUP BY item, shop"
    diff = change({"a": every}, {"a": every, "b": new})
    assert verdicts(diff) == {"a": "kept", "b": "derived"}
    assert diff.query("b").complete == Completeness(diff.query("a").complete.instant)
    assert diff.bytes == 1 << 20


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (BY_ITEM.format(10, ""), BY_ITEM.format(30, ""), "longer than the kept rows"),
        (BY_ITEM.format(10, "WHERE price > 5"), BY_ITEM.format(10, ""), "lack rows or columns"),
        (BY_ITEM.format(10, "WHERE price > 5"), BY_ITEM.format(10, "WHERE price > 4"), "lack rows or columns"),
        (BY_ITEM.format(10, ""), BY_ITEM.format(10, "").replace("price", "shop"), "lack rows or columns"),
    ],
)
def test_a_query_that_needs_rows_that_are_gone_is_new(old: str, new: str, reason: str) -> None:
    diff = change({"a": old}, {"a": old, "b": new})
    assert verdicts(diff) == {"a": "kept", "b": "new"}
    assert reason in diff.query("b").reason
    complete = diff.query("b").complete.instant
    assert complete is not None
    window = 30 if "30" in new else 10
    since = CLOCK - 10 * SECOND if "longer" in reason else CLOCK + 1
    assert complete == since + window * SECOND


NEGATION = "SELECT a.item, a.shop FROM sales [RANGE 10 SECONDS] AS a LEFT ANTI JOIN views [RANGE 1 SECOND] AS b ON a.item = b.item"
BY_SHOP = f"SELECT t.item, c.item AS other FROM ({NEGATION}) AS t JOIN views [RANGE 5 SECONDS] AS c ON t.shop = c.shop"


def stage_verdicts(old: JobPlan, new: JobPlan) -> list[str]:
    return [one.verdict for one in classify(old, new, stored(old)).stages]


def test_a_stage_that_chooses_how_its_rows_are_sent_is_kept_in_its_shards_only() -> None:
    """Only the shard that sent a row knows how it did."""
    one, other = job({"a": BY_SHOP}), job({"a": BY_SHOP, "b": BY_ITEM.format(10, "")})
    assert "strict" in [stage.root.expiry for stage in one.physical.stages]
    assert stage_verdicts(one, other)[:2] == ["kept", "kept"]
    assert stage_verdicts(one, job({"a": BY_SHOP}, shards=3)) == ["derived", "derived"]
    assert stage_verdicts(job({"b": BY_ITEM.format(10, "")}), job({"b": BY_ITEM.format(10, "")}, shards=3)) == ["kept"]


def test_a_stage_whose_rows_are_sent_another_way_now_is_sent_anew() -> None:
    """A count needs a retraction for every row, so that no row has an expiration time any more; and the reverse."""
    alone = together({"a": BY_SHOP})
    counted = together({"a": BY_SHOP, "b": f"SELECT t.shop, COUNT(*) AS n FROM ({NEGATION}) AS t GROUP BY t.shop"})
    places = [plan.channels.stages.index(alone.channels.stages[0]) for plan in (alone, counted)]
    roots = [plan.physical.stages[place].root.expiry for plan, place in zip((alone, counted), places, strict=True)]
    assert roots == ["strict", "explicit"]
    for old, new, place in ((alone, counted, places[1]), (counted, alone, places[0])):
        changed = classify(old, new, stored(old))
        assert changed.stages[place].verdict == "derived"
        sent = [one for one in changed.channels if isinstance(one.channel.source, StageRows)]
        assert sent
        assert all(one.restored for one in sent)


def test_a_new_stream_is_complete_after_its_first_row() -> None:
    views = "SELECT item, COUNT(*) AS n FROM views [RANGE 7 SECONDS] GROUP BY item"
    diff = change({"a": BY_ITEM.format(10, "")}, {"a": BY_ITEM.format(10, ""), "b": views})
    assert verdicts(diff) == {"a": "kept", "b": "new"}
    assert diff.query("b").complete == Completeness(None, 7 * SECOND)
    assert "no rows of stream views are kept" in diff.render()
    assert "complete 7 s after its first row" in diff.render()


def test_rows_within_the_slack_may_have_come_before_a_log_began() -> None:
    before = job({"a": BY_ITEM.format(10, "WHERE price > 5")}, slack=3 * SECOND)
    after = job({"a": BY_ITEM.format(10, "")}, slack=3 * SECOND)
    diff = diff_jobs(before, after, stored(before))
    assert diff.query("a").complete == Completeness(CLOCK + 13 * SECOND + 1)


def test_a_channel_is_made_from_several_logs() -> None:
    by_shop = "SELECT shop, COUNT(*) AS n FROM sales [RANGE 10 SECONDS] WHERE {} GROUP BY shop"
    by_item = "SELECT item, shop, price, COUNT(*) AS n FROM sales [RANGE 20 SECONDS] WHERE price > 7 GROUP BY item, shop, price"
    old = {"a": by_shop.format("item = 1"), "c": by_item}
    diff = change(old, {"a": by_shop.format("item = 1"), "b": by_shop.format("price > 7")})
    assert verdicts(diff) == {"a": "kept", "b": "derived", "c": "dropped"}
    (channel,) = diff.classification.channels
    assert len(channel.sources) == 2


def test_other_shards_move_every_row() -> None:
    old = {"a": BY_ITEM.format(10, ""), "b": "SELECT COUNT(*) AS n FROM sales [RANGE 4 SECONDS]"}
    diff = change(old, old, shards=5)
    assert diff.changed
    assert verdicts(diff) == {"a": "kept", "b": "kept"}
    assert "shards: 2 -> 5" in diff.render()


def test_snapshots_serve_only_an_equal_query_with_the_same_shards() -> None:
    old = {"a": "SELECT DISTINCT item FROM sales [RANGE UNBOUNDED]"}
    before = job(old)
    kept = diff_jobs(before, job({**old, "b": BY_ITEM.format(1, "")}), stored(before, snapshots=True))
    assert kept.query("a").verdict == "kept"
    moved = diff_jobs(before, job(old, shards=3), stored(before, snapshots=True))
    assert moved.query("a").verdict == "new"
    assert diff_jobs(before, job(old, shards=3), stored(before)).query("a").verdict == "kept"


DISTINCT = "SELECT DISTINCT item FROM sales [RANGE UNBOUNDED]"
COUNTED = "SELECT item, COUNT(*) AS n FROM sales [RANGE UNBOUNDED] GROUP BY item"


@pytest.mark.parametrize(
    ("old", "new", "refused"),
    [
        ({"a": DISTINCT}, {"a": DISTINCT, "b": BY_ITEM.format(1, "")}, ()),
        ({"a": DISTINCT}, {"a": "SELECT DISTINCT item FROM sales [RANGE 1 SECOND]"}, ("a",)),
        ({"a": DISTINCT, "b": COUNTED}, {"b": COUNTED}, ()),
        ({"a": COUNTED}, {"a": COUNTED, "b": COUNTED}, ()),
    ],
)
def test_an_answer_that_only_arrays_hold_is_not_read_in_part(
    old: Mapping[str, str], new: Mapping[str, str], refused: tuple[str, ...]
) -> None:
    before = job(old)
    assert diff_jobs(before, job(new), stored(before)).refused == ()
    diff = diff_jobs(before, job(new), stored(before, snapshots=True))
    assert diff.refused == refused
    assert ("cannot be applied" in diff.render()) == bool(refused)


def test_updates_of_a_relation_that_were_read_before_are_missing() -> None:
    join = "SELECT s.item, p.price FROM sales [RANGE {} SECONDS] AS s JOIN prices AS p ON s.item = p.item"
    diff = change({"a": join.format(5)}, {"a": join.format(5), "b": join.format(3)})
    assert verdicts(diff) == {"a": "kept", "b": "new"}
    assert "updates of relation prices" in diff.query("b").reason
    unread = change({"c": BY_ITEM.format(9, "")}, {"b": join.format(3)}).query("b")
    assert unread.verdict == "new"
    assert unread.complete == Completeness(CLOCK + 1 + 3 * SECOND)


def test_lookups_are_kept_with_a_shorter_window_and_another_key() -> None:
    old = (
        "SELECT city, COUNT(*) AS n FROM sales [RANGE 9 SECONDS] AS s JOIN shops AS t ON s.shop = t.shop GROUP BY city"
    )
    assert verdicts(change({"a": old}, {"a": old.replace("9", "4")})) == {"a": "derived"}


def test_a_column_that_nobody_reads_changes_nothing() -> None:
    before = job({"a": BY_ITEM.format(10, "WHERE shop = 3")})
    after = job({"a": BY_ITEM.format(10, "WHERE shop = 3")}, catalog=Catalog({"sales": WIDER}, {}))
    assert not diff_jobs(before, after, stored(before)).changed


def test_another_schema_is_a_new_output() -> None:
    diff = change({"a": BY_ITEM.format(10, "")}, {"a": BY_ITEM.format(10, "").replace("total", "sum_of_prices")})
    assert verdicts(diff) == {"a": "derived"}
    assert diff.query("a").fresh


def test_a_log_that_began_late_makes_later_answers_late() -> None:
    before = job({"a": BY_ITEM.format(10, "")})
    since = CLOCK - 2 * SECOND
    logs = {channel.identity: StoredLog(CLOCK, 1, since) for channel in before.channels.channels}
    late = Completeness(since + 10 * SECOND)
    state = StoredState(logs, {identity: StoredStage(complete=late) for identity in before.channels.stages})
    diff = diff_jobs(before, job({"a": BY_ITEM.format(10, ""), "b": BY_ITEM.format(5, "")}), state)
    assert diff.query("a").complete == late
    assert diff.query("b").complete == Completeness(since + 5 * SECOND)


def test_a_sink_does_not_wait_for_what_cannot_be_known() -> None:
    """A new count window may need rows that are gone. One that begins with its stream, or is kept, may wait; so may time."""
    last = "SELECT item, COUNT(*) AS n FROM sales [ROWS 5] GROUP BY item"
    timed = BY_ITEM.format(30, "")
    before = job({"a": BY_ITEM.format(10, ""), "kept": last.replace("5", "3")})
    after = job({"a": BY_ITEM.format(10, ""), "kept": last.replace("5", "3"), "b": last, "c": timed})
    assert diff_jobs(before, after, stored(before)).problems == []
    diff = diff_jobs(before, replace(after, waits=frozenset({"b", "c", "kept"})), stored(before))
    assert diff.waiting == ("b",)
    assert diff.to_json()["refused"] == ["b"]
    assert "cannot be applied: query b has WHEN COMPLETE" in diff.render()
    with pytest.raises(OptionError, match="it cannot be known when its answer is complete"):
        diff.check()


def test_the_difference_as_json() -> None:
    diff = change({"a": BY_ITEM.format(10, "")}, {"b": BY_ITEM.format(30, "")})
    told = json.loads(json.dumps(diff.to_json()))
    assert told["changed"]
    assert told["queries"][0]["verdict"] == "new"
    assert told["queries"][0]["complete_from"] == CLOCK + 20 * SECOND
    assert told["queries"][1] == {
        "name": "a", "verdict": "dropped", "reason": "the new job does not have it; its sink is left as it is",
        "complete_from": None, "complete_after_first_row": None, "filled": [],
    }  # fmt: skip
