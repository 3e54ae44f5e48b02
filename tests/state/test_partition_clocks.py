from __future__ import annotations

import random

from sash.state.partition_clocks import Marks, PartitionReport, merge, slowest


def test_the_clock_is_that_of_the_slowest_partition() -> None:
    known: Marks = {}
    assert slowest(known, [PartitionReport(1, 10, {"a": 500}), PartitionReport(1, 10, {"b": 20})]) == 20
    assert slowest(known, [PartitionReport(2, 10, {"b": 90})]) == 90
    assert slowest(known, [PartitionReport(3, 10, {"b": 70})]) == 90, "a mark never goes back"
    assert slowest(known, [PartitionReport(4, 10, {"b": 900})]) == 500


def test_a_partition_counts_from_its_first_row() -> None:
    known: Marks = {}
    assert slowest(known, [PartitionReport(1, 10, {"a": 500})]) == 500
    assert slowest(known, [PartitionReport(2, 10, {"a": 600, "new": 550})]) == 550


def test_idle_partitions_are_left_out_until_they_have_rows_again() -> None:
    known: Marks = {}
    slowest(known, [PartitionReport(0, 5, {"a": 100, "b": 10})])
    assert slowest(known, [PartitionReport(5, 5, {"a": 200})]) == 10
    assert slowest(known, [PartitionReport(6, 5, {"a": 300})]) == 300
    assert list(known) == ["a"], "what is behind the clock need not be kept"
    assert slowest(known, [PartitionReport(7, 5, {"a": 400, "b": 20})]) == 20
    assert slowest(known, [PartitionReport(100, 5)]) is None, "all are idle, and a heartbeat decides"


def test_reports_of_a_batch_may_come_in_any_order() -> None:
    reports = [PartitionReport(now, 3, {p: now * 7 % 50}) for now, p in ((9, "a"), (9, "b"), (8, "a"), (9, "c"))]
    found = set()
    for seed in range(10):
        known: Marks = {"b": [60, 1], "d": [1, 1]}
        random.Random(seed).shuffle(reports)
        found.add((slowest(known, reports), str(sorted(known.items()))))
    assert len(found) == 1


def test_reports_are_texts_in_messages() -> None:
    report = PartitionReport(17, 5, {"topic/0": -3})
    assert PartitionReport.from_text(report.to_text()) == report


def test_marks_of_channels_of_one_stream_are_merged() -> None:
    known: Marks = {"a": [5, 9]}
    merge(known, {"a": [7, 3], "b": [1, 1]})
    assert known == {"a": [7, 9], "b": [1, 1]}
