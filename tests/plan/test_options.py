from __future__ import annotations

from typing import Any

import pytest

from sash.errors import OptionError, StrategyError
from sash.plan.options import STRATEGIES, Options, StartOptions, Trigger, check_strategy, check_word


def test_only_replay_may_use_the_strategy_that_may_be_wrong() -> None:
    assert Options("clock-triggered").strategy == "clock-triggered"
    for refused in (lambda: Options("clock-triggered").for_engine(), lambda: check_strategy("clock-triggered")):
        with pytest.raises(
            OptionError, match=r"may give wrong answers.*only in sash\.testing\.replay; use one of auto"
        ):
            refused()
    assert [Options(name).for_engine().strategy for name in STRATEGIES[:-1]] == list(STRATEGIES[:-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"strategy": "fast"}, "no strategy 'fast'"),
        ({"join": "merge"}, "no join 'merge'; use one of auto, binary"),
        ({"tau": 0}, "tau must be greater than 0"),
        ({"partitions": 0}, "partitions must be at least 1, not 0"),
        ({"purge": -1}, "must not be negative"),
        ({"join": "lazy-hash"}, "give tau"),
        ({"join": "eager-hash", "tau": 5}, "leave out tau"),
        ({"join": "naive", "buckets": 5}, "leave out buckets"),
        ({"buckets": 0}, "buckets must be at least 1, not 0"),
    ],
)
def test_options_of_a_query_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(StrategyError, match=message):
        Options(**options)


def test_an_unknown_word_is_answered_with_the_known_ones() -> None:
    assert check_word("unit", "ms", ("us", "ms")) == "ms"
    with pytest.raises(OptionError, match="there is no unit 'h'; use one of us, ms"):
        check_word("unit", "h", ("us", "ms"))


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        (None, Trigger()),
        ("available_now", Trigger("available_now")),
        ("availableNow", Trigger("available_now")),
        ("once", Trigger("once")),
        ("5 seconds", Trigger(period="5 seconds")),
    ],
)
def test_triggers_by_our_words_and_by_spark_s(text: str | None, trigger: Trigger) -> None:
    assert Trigger.parse(text) == trigger


def test_a_trigger_is_a_word_or_a_period() -> None:
    with pytest.raises(OptionError, match="not 'sometimes'"):
        Trigger.parse("sometimes")
    with pytest.raises(OptionError, match="stream s has a heartbeat"):
        Trigger("once").check_heartbeats(["s"])
    Trigger(period="5 seconds").check_heartbeats(["s"])


def test_spark_keywords_are_not_passed_to_the_sink() -> None:
    given = StartOptions.parse("net", None, {"path": "x", "processingTime": "5 seconds", "once": False})
    assert given == StartOptions("net", Trigger(period="5 seconds"), {"path": "x"})
    assert StartOptions.parse(None, None, {"availableNow": True}).trigger == Trigger("available_now")
    with pytest.raises(OptionError, match="give one trigger"):
        StartOptions.parse(None, "once", {"availableNow": True})
    with pytest.raises(OptionError, match="no output mode 'append'; use one of changes, net, upsert"):
        StartOptions.parse("append", None, {})
