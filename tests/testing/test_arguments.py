"""Arguments of replay: what is wrong with one is said by an error of Sash's, and never taken in silence."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.errors import BadRowError, CatalogError, OptionError, SashError, StatisticsError, StrategyError
from sash.testing import Result, replay
from tests.junk import JUNK, ODD

SQL = "SELECT s.k, t.v FROM s [RANGE 5 SECONDS] JOIN t ON s.k = t.k"
COUNT = "SELECT COUNT(*) AS n FROM s [RANGE 5 SECONDS]"
LONG = 500
NAN, INFINITE = float("nan"), float("inf")

GOOD: dict[str, Any] = {
    "sql": SQL,
    "streams": {"s": [{"ts": 200, "k": 1}, {"ts": 800, "k": 2}]},
    "relations": {"t": [{"k": 1, "v": "one"}]},
}


def call(**changed: Any) -> Result:
    return replay(**{**GOOD, **changed})


BAD: list[tuple[type[SashError], str, dict[str, Any]]] = [
    (CatalogError, r"'a' cannot be DECIMAL\(2,5\)", {"schemas": {"s": "ts BIGINT, a DECIMAL(2, 5)"}}),
    (CatalogError, r"'a' cannot be DECIMAL\(39,0\)", {"schemas": {"s": "ts BIGINT, a DECIMAL(39)"}}),
    (CatalogError, r"'a' cannot be DECIMAL\(0,0\)", {"schemas": {"s": "ts BIGINT, a DECIMAL(0, 0)"}}),
    *(
        (CatalogError, "'a' has the unknown type", {"schemas": {"s": f"ts BIGINT, a {dtype}"}})
        for dtype in (
            "DECIMAL(x, 2)",
            "DECIMAL(",
            "DECIMAL(1,2,3)",
            "DECIMAL()",
            "DECIMAL(-1)",
            "MONEY",
            f"DECIMAL({'9' * 5_000})",
        )
    ),
    (CatalogError, "has no column ts", {"schemas": {"s": "k BIGINT"}}),
    (CatalogError, "ts of stream s is STRING", {"schemas": {"s": "ts STRING, k BIGINT"}}),
    (CatalogError, "two columns called K", {"schemas": {"s": "ts BIGINT, k INT, K INT"}}),
    (CatalogError, "' k' is not a column", {"schemas": {"s": "ts BIGINT, k"}}),
    (CatalogError, "a schema must be a text, not 7", {"schemas": {"s": 7}}),
    (CatalogError, "schemas names 'z', which is not one of the streams and relations", {"schemas": {"z": "k INT"}}),
    (CatalogError, "keys names 's', which is not one of the relations; there are t", {"keys": {"s": ["k"]}}),
    (CatalogError, "key must be the name of a column", {"keys": {"t": 7}}),
    (CatalogError, "slack names 'r'", {"slack": {"r": 5}}),
    (OptionError, "schemas must be a dict", {"schemas": ["s"]}),
    (CatalogError, "streams must be a dict", {"streams": [{"ts": 1}]}),
    (CatalogError, "t is in relations and in nrrs", {"nrrs": {"t": []}}),
    (CatalogError, "cannot be written in SQL", {"streams": {"a b": []}}),
    (CatalogError, "already registered", {"streams": {"T": []}}),
    *(
        (OptionError, f"{name} must be a number of at least 0", {name: value})
        for name in ("slack", "tau", "purge", "patience", "probe")
        for value in (NAN, INFINITE, -1, "x", True, -0.5)
    ),
    *(
        (OptionError, f"{name} must be shorter than 10,000 years", {name: 2**60})
        for name in ("slack", "tau", "purge", "patience", "probe")
    ),
    *((StrategyError, f"{name} must be at least 1 microsecond", {name: 0}) for name in ("tau", "probe")),
    (StrategyError, "the delay of Join must be a number of at least 0, not -1", {"delays": {"Join": -1}}),
    (StrategyError, "there is no operator 'Sieve'", {"delays": {"Sieve": 1}}),
    (StrategyError, "delays must be a dict", {"delays": 5}),
    *((OptionError, "until", {"until": value}) for value in (NAN, INFINITE, 2**60, "x", True)),
    *((OptionError, "batch must be", {"batch": value}) for value in ("x", 0, -1, 1.5, {}, True)),
    (OptionError, "a number of rows in batch must be at least 0, not -2", {"batch": [1, -2]}),
    (OptionError, "a number of rows in batch must be a whole number", {"batch": [1, "x"]}),
    *((OptionError, "shards must be", {"shards": value}) for value in (0, -1, "x", 1.5, None, 2**40, 10**5_000)),
    *((StrategyError, f"{name} must be", {name: v}) for name in ("partitions", "buckets") for v in (0, -1, "x", 1.5)),
    (StrategyError, "there is no strategy 7", {"strategy": 7}),
    (StrategyError, r"there is no join \['binary'\]", {"join": ["binary"]}),
    (OptionError, "there is no unit 'fortnight'; use one of us, ms", {"unit": "fortnight"}),
    (OptionError, r"there is no runtime \['spark'\]", {"runtime": ["spark"]}),
    (SashError, "a query must be a text, not None", {"sql": None}),
    (StatisticsError, "statistics must be those of", {"statistics": {"s": 7}}),
    (BadRowError, "row 0 of relation t must be a dict", {"relations": {"t": [7]}}),
]


@pytest.mark.parametrize(("error", "message", "changed"), BAD, ids=range(len(BAD)))
def test_every_wrong_argument_is_named(error: type[SashError], message: str, changed: dict[str, Any]) -> None:
    with pytest.raises(error, match=message) as raised:
        call(**changed)
    assert len(str(raised.value)) < LONG


def test_quoted_names_lose_their_quotes() -> None:
    rows = [{"ts": 1, "k": 5, "unit price": 3, "a`b": 4}]
    result = replay(
        "SELECT `unit price` + k AS total FROM s [RANGE 5 SECONDS]",
        {"s": rows},
        schemas={"s": "`ts` BIGINT, `k` INT, `unit price` DECIMAL(5), `a``b` INT"},
    )
    assert [int(row["total"]) for row in result.at(1)] == [8]


def test_lengths_may_be_zero_where_that_means_something() -> None:
    assert call(slack=0, purge=0, patience=0, batch=[0, 1, 0]).changes == call().changes


NAMES = [name for name in inspect.signature(replay).parameters if name != "runtime"]


def trial(**changed: Any) -> str:
    """The message of the error that the call raises, or an empty one; an error that is not of Sash's fails the test."""
    try:
        call(**changed)
    except SashError as problem:
        return str(problem)
    return ""


@settings(max_examples=500)
@given(st.sampled_from(NAMES), JUNK)
def test_junk_is_an_error_of_sash_or_works(name: str, value: Any) -> None:
    assert len(trial(**{name: value})) < LONG


@pytest.mark.parametrize("name", NAMES)
def test_odd_values_of_every_argument(name: str) -> None:
    messages = [trial(**{name: value}) for value in ODD]
    assert any(messages)
    assert name == "sql" or max(map(len, messages)) < LONG


COLUMNS = ("ts", "k", "x", "é")
SCHEMAS = (None, {"s": "ts TIMESTAMP, k INT, x DATE"}, {"s": "ts INT, k DECIMAL(5,2)"})


@settings(max_examples=300)
@given(st.sampled_from(COLUMNS), JUNK, st.sampled_from(SCHEMAS))
def test_junk_in_a_row_is_an_error_of_sash_or_works(column: str, value: Any, schemas: Any) -> None:
    rows = [{"ts": 200, "k": 1}, {"ts": 300, "k": 2, column: value}]
    assert len(trial(sql=COUNT, streams={"s": rows}, schemas=schemas)) < LONG


@settings(max_examples=300)
@given(st.text(st.sampled_from(list("ts `,()DECIMAL0123456789INT\"'-")), max_size=40))
def test_junk_in_a_schema_is_an_error_of_sash_or_works(text: str) -> None:
    assert len(trial(sql=COUNT, streams={"s": []}, schemas={"s": text})) < LONG
