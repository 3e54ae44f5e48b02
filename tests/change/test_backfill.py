"""Queries with BACKFILL: which logs are filled by reading streams again, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from sash.change.diff import JobDiff, diff_jobs
from sash.change.stored import AT_ONCE, History, StoredLog
from sash.errors import OptionError
from tests.change.test_classify import BY_ITEM, CLOCK, SECOND, job, stored

FILES = {"sales": History("3 files", whole=True), "views": History("", whole=True)}
SHORT, LONG = BY_ITEM.format(10, ""), BY_ITEM.format(30, "")


def change(
    old: Mapping[str, str],
    new: Mapping[str, str],
    backfill: frozenset[str] = frozenset({"b"}),
    histories: Mapping[str, History] = FILES,
) -> JobDiff:
    before = job(old)
    return diff_jobs(before, replace(job(new), backfill=backfill), replace(stored(before), histories=histories))


@pytest.mark.parametrize(
    "new",
    [
        BY_ITEM.format(30, "WHERE price > 7"),
        "SELECT shop, COUNT(*) AS n FROM sales [RANGE 4 SECONDS] GROUP BY shop",
        "SELECT code, COUNT(*) AS n FROM sales [ROWS 30] GROUP BY code",
        "SELECT n, COUNT(*) AS m FROM (SELECT shop, COUNT(*) AS n FROM sales [RANGE 3 SECONDS] GROUP BY shop) GROUP BY n",
        "SELECT s.item, t.city FROM sales [RANGE 3 SECONDS] AS s JOIN shops AS t ON s.shop = t.shop",
    ],
)
def test_a_new_query_is_complete_at_once(new: str) -> None:
    diff = change({"a": SHORT}, {"a": SHORT, "b": new})
    assert diff.query("b").verdict == "new"
    assert diff.query("b").complete == AT_ONCE
    assert "complete at once by backfill from 3 files of stream sales" in diff.render()
    filled = [one for one in diff.classification.channels if one.filled]
    assert [(one.clock, one.sources) for one in filled] == [(CLOCK, ())]
    assert change({"a": SHORT}, {"a": SHORT, "b": new}, frozenset()).query("b").complete != AT_ONCE


def test_a_query_that_reads_the_same_log_is_rebuilt() -> None:
    diff = change({"a": SHORT}, {"a": SHORT, "b": LONG})
    assert [(one.name, one.verdict, one.complete) for one in diff.queries] == [
        ("a", "derived", AT_ONCE), ("b", "new", AT_ONCE),
    ]  # fmt: skip
    assert "its rows are read again" in diff.render()


def test_rows_that_are_kept_are_not_read_again() -> None:
    shorter = "SELECT item, MAX(price) AS m FROM sales [RANGE 4 SECONDS] GROUP BY item"
    diff = change({"a": SHORT}, {"a": SHORT, "b": shorter})
    assert {one.name: one.verdict for one in diff.queries} == {"a": "kept", "b": "derived"}
    assert not any(one.filled for one in diff.classification.channels)


def test_a_log_that_began_late_is_filled() -> None:
    before, after = job({"b": SHORT}), replace(job({"b": SHORT, "c": SHORT}), backfill=frozenset({"b"}))
    logs = {one.identity: StoredLog(CLOCK, 1, CLOCK - SECOND) for one in before.channels.channels}
    diff = diff_jobs(before, after, replace(stored(before), logs=logs, histories=FILES))
    assert diff.query("b").complete == AT_ONCE
    assert diff.query("b").filled == ("by backfill from 3 files of stream sales",)


def test_a_stream_that_the_job_has_not_read_is_read_from_its_first_row() -> None:
    views = "SELECT item, COUNT(*) AS n FROM views [RANGE 7 SECONDS] GROUP BY item"
    diff = change({"a": SHORT}, {"a": SHORT, "b": views})
    assert "complete at once as stream views is read from its first row" in diff.render()
    kafka = {"sales": FILES["sales"], "views": History("")}
    later = change({"a": SHORT}, {"a": SHORT, "b": views}, histories=kafka)
    assert "complete 7 s after its first row" in later.render()


def test_a_stream_that_cannot_be_read_again_is_named() -> None:
    unread = {"sales": History(refused="a socket has no past")}
    with pytest.raises(OptionError, match="BACKFILL of b: stream sales cannot be read again: a socket has no past"):
        change({"a": SHORT}, {"a": SHORT, "b": LONG}, histories=unread)
    assert change({"a": SHORT}, {"a": SHORT, "b": SHORT}, histories=unread).query("b").verdict == "derived"


@pytest.mark.parametrize(
    "new",
    [
        "SELECT DISTINCT item FROM sales [RANGE UNBOUNDED]",
        "SELECT s.item, p.price FROM sales [RANGE 3 SECONDS] AS s JOIN prices AS p ON s.item = p.item",
    ],
)
def test_arrays_are_not_filled(new: str) -> None:
    with pytest.raises(OptionError, match="BACKFILL of b is not possible: windows without an end"):
        change({"a": SHORT}, {"a": SHORT, "b": new})
