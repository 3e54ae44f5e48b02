"""Which micro-batch releases a change under each strategy: exact tables for paper 1's queries, and what they depend on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sash.physical.strategies.base import Delivery
from sash.physical.strategies.piggyback import PiggybackedTime
from sash.physical.strategies.time_message import MessageTimes
from sash.physical.strategies.time_probing import ProbedTime
from sash.runtime.pacing import Pacing
from sash.testing import Result
from sash.time import BEGINNING
from tests.oracle.check import assert_oracle
from tests.strategy_tables import INPUTS, STRATEGIES, golden, options_of, released, replay_all, replay_one, tables
from tests.table1 import FAST, QUERIES, SLOW, table1_case


@pytest.mark.parametrize("inputs", INPUTS)
def test_changes_are_released_as_in_the_golden_file(inputs: str) -> None:
    assert tables(replay_all(inputs)) == golden(inputs).read_text()


@pytest.mark.parametrize("query", QUERIES)
def test_time_is_learnt_in_the_batch_in_which_it_passes_or_later(query: str) -> None:
    on_time = released(replay_one(query, "slow", "auto"))
    for strategy in ("negative-tuple", "time-message", "time-probing"):
        assert released(replay_one(query, "slow", strategy)) == on_time
    for strategy in ("time-probing every 20 s", "input-triggered"):
        late = released(replay_one(query, "slow", strategy))
        assert [one[:-1] for one in late] == [one[:-1] for one in on_time]
        assert all(one[-1] is None or one[-1] >= other[-1] for one, other in zip(late, on_time, strict=True))
        assert late != on_time


@pytest.mark.parametrize("query", QUERIES)
def test_tables_need_time_messages(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = replay_one(query, "slow", "time-message")
    monkeypatch.setattr(MessageTimes, "receive_message", lambda *_: Delivery.MESSAGE)
    after = replay_one(query, "slow", "time-message")
    assert total(after, "messages") > 0
    assert released(after) != released(before)


@pytest.mark.parametrize("strategy", ["time-probing", "time-probing every 20 s"])
@pytest.mark.parametrize("query", QUERIES)
def test_tables_need_probes(query: str, strategy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = replay_one(query, "slow", strategy)
    monkeypatch.setattr(ProbedTime, "probe", lambda *_: None)
    after = replay_one(query, "slow", strategy)
    assert total(after, "time_probes") == total(before, "time_probes") > 0
    assert released(after) != released(before)


@pytest.mark.parametrize("query", QUERIES)
def test_tables_need_the_times_that_rows_carry(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows carry times where they come often."""
    before = replay_one(query, "fast", "piggyback for 20 s")
    assert total(before, "switches") > 0
    monkeypatch.setattr(PiggybackedTime, "_carry", lambda *_: False)
    assert released(replay_one(query, "fast", "piggyback for 20 s")) != released(before)


@pytest.mark.parametrize("query", QUERIES)
def test_tables_need_the_times_that_wait(query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = replay_one(query, "slow", "piggyback for 20 s")
    monkeypatch.setattr(PiggybackedTime, "_send", lambda *_: None)
    assert released(replay_one(query, "slow", "piggyback for 20 s")) != released(before)


@pytest.mark.parametrize("query", ["q2", "q3"])
def test_tables_need_the_end_of_patience(query: str) -> None:
    """A time that waits is sent once nothing has carried it for as long as it may wait, and not only at the end."""
    before = released(replay_one(query, "slow", "piggyback for 20 s"))
    assert released(replay_one(query, "slow", "piggyback for 20 s", patience=10_000_000)) != before


@pytest.mark.parametrize(
    ("strategy", "dropped"),
    [
        ("time-message", {"announced": BEGINNING}),
        ("piggyback for 20 s", {"announced": BEGINNING}),
        ("time-probing", {"learnt": BEGINNING}),
        ("time-probing every 20 s", {"probed": (), "learnt": BEGINNING}),
    ],
    ids=str,
)
def test_tables_need_the_times_that_pass_between_stages(
    strategy: str, dropped: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = replay_one("two stages", "slow", strategy)
    times = Pacing.times.fget
    monkeypatch.setattr(Pacing, "times", property(lambda self: replace(times(self), **dropped)))
    assert released(replay_one("two stages", "slow", strategy)) != released(before)


def test_the_end_of_the_input_flushes_times_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {"patience": 10_000_000}
    before = released(replay_one("q3", "slow", "piggyback for 20 s", **given))
    assert None not in [one[-1] for one in before]
    monkeypatch.setattr(PiggybackedTime, "flush", lambda _: False)
    assert None in [one[-1] for one in released(replay_one("q3", "slow", "piggyback for 20 s", **given))]


def total(result: Result, count: str) -> int:
    """A count of all operators."""
    return sum(getattr(seen, count) for seen in result.counts.values())


@pytest.mark.parametrize("batch", [None, 4])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("query", QUERIES)
def test_oracle_table_1_as_printed(query: str, strategy: str, batch: int | None) -> None:
    for gap in (SLOW, FAST):
        assert_oracle(table1_case(query, gap), batch=batch, **options_of(strategy))
