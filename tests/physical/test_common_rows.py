"""Windows of several lengths over one copy of their rows: when the planner chooses it, what EXPLAIN JOB says, and the answers."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from sash.physical.common_rows import common_rows, kept_apart, kept_once
from sash.physical.plan_channels import channels_of
from sash.plan.options import Options
from sash.runtime.shard import Shard
from sash.testing import replay, replay_job
from tests.physical.test_plan_job import planned

SUMS = "SELECT item_id, COUNT(*) AS n, SUM(price) AS t FROM sales [RANGE {0} SECONDS] {1} GROUP BY item_id"
HIGHEST = "SELECT item_id, MAX(price) AS t FROM sales [RANGE {0} SECONDS] GROUP BY item_id"


def sharing(*queries: Any) -> list[bool]:
    """Per stage, whether its rows are common."""
    return [any(given.common for given in stage.inputs) for stage in planned(*queries).physical.stages]


def test_windows_of_several_lengths_share_the_rows_of_the_longest() -> None:
    queries = [SUMS.format(10, ""), SUMS.format(60, ""), SUMS.format(40, "WHERE store_id = 3")]
    plan = planned(*queries).physical
    assert sharing(*queries) == [True, True, True]
    (common,) = common_rows(plan, channels_of(plan, share=True)).values()
    assert common.horizon == 60_000_000
    assert common.filters is None
    assert kept_once(plan, common) < kept_apart(plan, common)


def test_rows_that_no_reader_accepts_are_not_kept() -> None:
    queries = [SUMS.format(10, "WHERE store_id = 1"), SUMS.format(12, "WHERE store_id = 2"), HIGHEST.format(60)]
    plan = planned(*queries).physical
    (common,) = common_rows(plan, channels_of(plan, share=True)).values()
    assert common.horizon == 12_000_000
    assert common.filters == {0, 1}


@pytest.mark.parametrize(
    ("queries", "why"),
    [
        ([SUMS.format(10, "")], "one reader"),
        ([SUMS.format(1, ""), SUMS.format(600, "WHERE store_id = 1"), SUMS.format(2, "")], "few rows of a long window"),
        ([SUMS.format(10, ""), HIGHEST.format(60)], "MAX has a queue"),
        ([SUMS.format(10, ""), SUMS.format(60, "").replace("item_id", "store_id")], "other keys"),
        ([SUMS.format(10, ""), SUMS.format("60 SECONDS SLIDE 5", "")], "a slide"),
        ([SUMS.format(10, ""), SUMS.format(60, "").replace("SUM(price)", "SUM(DISTINCT price)")], "DISTINCT"),
        ([(SUMS.format(10, ""), Options("piggyback")), (SUMS.format(60, ""), Options("piggyback"))], "paced"),
        ([(SUMS.format(10, ""), Options("direct")), (SUMS.format(60, ""), Options("direct"))], "calendars"),
    ],
)
def test_others_keep_their_own_rows(queries: list[Any], why: str) -> None:
    assert not any(sharing(*queries)), why


def test_a_stage_has_the_same_name_whether_it_keeps_its_rows_or_not() -> None:
    alone = planned(SUMS.format(10, "")).physical
    together = planned(SUMS.format(10, ""), SUMS.format(60, "")).physical
    assert channels_of(alone, share=True).stages[0] == channels_of(together, share=True).stages[0]


def test_explain_job_says_what_is_lent() -> None:
    shown = planned(SUMS.format(10, ""), SUMS.format(60, "")).explain()
    assert "Leg 0: sales by item_id, rows kept by the channel" in shown
    assert "rows of 1 MINUTE kept once for stages 0 (10 SECONDS), 1 (1 MINUTE)" in shown
    kept = re.search(r"rows kept \(estimate\) ([\d,]+) -> ([\d,]+)", shown)
    assert kept is not None
    alone, together = (int(number.replace(",", "")) for number in kept.groups())
    assert together == pytest.approx(alone * 60 / 70, rel=0.01), "the rows of the shorter window are among the others"


LENGTHS = (1, 7, 20, 20, 33)
FILTERS = ("", "WHERE v > 2", "WHERE v < 7 AND k <> 'b'", "", "WHERE v <> 4")
QUERY = "SELECT {k} COUNT(*) AS n, SUM(v) AS t, AVG(v) AS a, STDDEV_POP(v) AS d FROM s [RANGE {w} SECONDS] {f} {by}"


@pytest.mark.parametrize("keys", [("k,", "GROUP BY k"), ("", "")], ids=["groups", "all rows"])
@pytest.mark.parametrize("tau", [None, 4])
@pytest.mark.parametrize("batch", [None, 1, 5, (9, 0, 2)])
def test_answers_are_those_of_the_queries_alone(keys: tuple[str, str], tau: int | None, batch: Any) -> None:
    rnd = random.Random(repr((keys, tau, batch)))
    rows: list[dict[str, Any]] = [
        {"ts": rnd.randrange(90), "k": rnd.choice("abcd"), "v": rnd.choice((None, *range(9)))} for _ in range(150)
    ]
    rows.sort(key=lambda row: row["ts"])
    if batch == 5:
        rows[40:60] = sorted(rows[40:60], key=lambda _: rnd.random())  # some are late
    texts = [QUERY.format(k=keys[0], by=keys[1], w=w, f=f) for w, f in zip(LENGTHS, FILTERS, strict=True)]
    options: dict[str, Any] = {} if tau is None else {"tau": tau}
    given: dict[str, Any] = {"unit": "s", "until": 200, "batch": batch}
    with pytest.MonkeyPatch.context() as patch:
        ended: list[int] = []
        kept = Shard._with_ends

        def counted(*args: Any) -> Any:
            found = kept(*args)
            ended.append(int((found.sign < 0).sum()))
            return found

        patch.setattr(Shard, "_with_ends", counted)
        together = replay_job([(f"q{n}", sql, options) for n, sql in enumerate(texts)], {"s": rows}, shards=2, **given)
    assert sum(ended) > 300
    for number, sql in enumerate(texts):
        alone = replay(sql, {"s": rows}, **given, **options)
        assert together[f"q{number}"].late == alone.late
        for instant in range(0, 200, 3):
            found, wanted = (sorted(map(repr, each.at(instant))) for each in (together[f"q{number}"], alone))
            assert found == wanted, (sql, instant)
