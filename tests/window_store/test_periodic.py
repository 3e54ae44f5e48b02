from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sash.errors import EvaluationError, OverloadedError, StoreError
from sash.window_store.options import SnapshotOptions
from sash.window_store.snapshot import Snapshot
from sash.window_store.store.manifest import Manifest
from tests.window_store.feeding import Fed, counted, layout
from tests.window_store.test_answers import AGGREGATES

SUMS = "SELECT k, COUNT(*) AS n, SUM(x) AS t, COUNT(DISTINCT v) AS d, MEDIAN(v) AS m FROM s [RANGE 40 MICROSECONDS] GROUP BY k"
EVERYTHING = f"SELECT k, {AGGREGATES} FROM s [RANGE 40 MICROSECONDS] GROUP BY k"


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    found = Fed(tmp_path, layout(10, 6))
    found.feed(60, 60)
    yield found
    found.close()


def run(fed: Fed, sql: str, access: str, every: int = 1) -> list[Snapshot]:
    """The first answer, then those after the window advanced by one, by several, past itself, and by an odd gap in time."""
    answers = []
    with fed.periodic(sql, every=every, access=access) as periodic:
        answers += next(periodic)
        for until in (70, 80, 85, 101, 140, 150, 400, 410, 421):
            if fed.feed(until, 9):
                due = fed.writer.manifest.updates - 1 >= answers[-1].update + every
                answers += next(periodic) if due else []
    return answers


@pytest.mark.parametrize("access", ["IS", "ISS", "WS", "SS", "auto"])
def test_differential_each_path_gives_the_same_answers(fed: Fed, access: str) -> None:
    for answer in run(fed, SUMS, access):
        assert counted(answer.to_pylist()) == fed.truth(SUMS, answer.as_of)


def test_every_aggregate_is_answered_again_and_again(fed: Fed) -> None:
    answers = run(fed, EVERYTHING, "auto", every=2)
    assert "access path SS: its aggregates are not subtractable" in answers[0].explain()
    for answer in answers:
        assert counted(answer.to_pylist()) == fed.truth(EVERYTHING, answer.as_of)


def test_incremental_paths_read_only_added_and_expired_sub_windows(fed: Fed) -> None:
    for access in ("IS", "ISS"):
        with fed.periodic(SUMS, every=1, access=access) as periodic:
            next(periodic)
            for step in range(4):
                fed.feed(fed.clock + 10)
                (answer,) = next(periodic)
                summaries = 4
                if access == "IS":
                    assert (answer.sub_windows_read, answer.summaries_read) == (2, 0)
                else:
                    # The new sub-window has no summaries yet; the expired one's were made when it was new, or at first.
                    assert (answer.sub_windows_read, answer.summaries_built) == (1, summaries), step
                    assert answer.summaries_read == summaries


def test_expired_sub_windows_stay_until_the_query_has_subtracted_them(fed: Fed, tmp_path: Path) -> None:
    held: list[list[Snapshot]] = []
    with fed.periodic(SUMS, every=3, access="IS", callback=held.append) as periodic:
        while not held:
            assert periodic.active
        first = held[0][0].update
        fed.feed(80)
        oldest = first - 4 + 1
        kept = [part.number for part in (*Manifest.load(tmp_path).expired, *Manifest.load(tmp_path).live)]
        assert kept[0] <= oldest
        fed.feed(90)
        while len(held) < 2:
            assert periodic.active
        (answer,) = held[1]
        assert answer.sub_windows_read == 6
        assert counted(answer.to_pylist()) == fed.truth(SUMS, answer.as_of)
    fed.feed(100)
    assert not Manifest.load(tmp_path).expired


def test_the_planner_chooses_by_what_is_known(fed: Fed) -> None:
    def chosen(sql: str, every: int) -> str:
        text = fed.queries.plan(sql, SnapshotOptions(every=every)).explain()
        return next(line for line in text.splitlines() if line.startswith("access path"))

    assert chosen(SUMS, 1).startswith("access path IS: subtractable, and 2 of 4")
    assert chosen(SUMS, 1).startswith(
        "access path ISS: subtractable, 2 of 4 sub-windows change, and other queries use its summaries"
    )
    assert chosen(SUMS, 3).startswith("access path SS: most of its window changes")
    assert chosen("SELECT MAX(v) AS m FROM s", 1).startswith("access path SS: its aggregates are not subtractable")
    assert chosen("SELECT k FROM s", 1).startswith("access path WS: the answer consists of the rows")
    with pytest.raises(StoreError, match="ISS does not apply: its window does not consist of whole sub-windows"):
        fed.queries.plan("SELECT COUNT(*) AS n FROM s [RANGE 15 MICROSECONDS]", SnapshotOptions(every=1, access="ISS"))


def test_a_list_of_queries_gives_lists(fed: Fed) -> None:
    sql = "SELECT COUNT(*) AS n FROM s [RANGE {} MICROSECONDS]"
    with fed.periodic([sql.format(20), sql.format(60)], every=1) as periodic:
        for _ in range(3):
            short, long = next(periodic)
            assert counted(short.to_pylist()) == fed.truth(sql.format(20), short.as_of)
            assert counted(long.to_pylist()) == fed.truth(sql.format(60), long.as_of)
            fed.feed(fed.clock + 10)


def test_a_failing_query_ends_alone(fed: Fed) -> None:
    with (
        fed.periodic("SELECT SUM(1 / v) AS t FROM s", every=1) as failing,
        fed.periodic("SELECT COUNT(*) AS n FROM s", every=1) as other,
    ):
        with pytest.raises(EvaluationError):
            next(failing)
        next(other)
        fed.feed(70)
        assert next(other)[0].as_of == 70
        assert isinstance(failing.error, EvaluationError)


def test_a_stopped_query_ends_its_iteration(fed: Fed) -> None:
    periodic = fed.periodic("SELECT COUNT(*) AS n FROM s", every=1)
    next(periodic)
    periodic.stop()
    assert list(periodic) == []
    assert not periodic.active


def test_the_queue_of_answers_is_bounded(fed: Fed) -> None:
    with fed.periodic("SELECT COUNT(*) AS n FROM s", every=1, queue=1) as periodic:
        for _ in range(6):
            fed.feed(fed.clock + 10)
        answers = [next(periodic)[0].update]
        while answers[-1] < fed.writer.manifest.updates - 1:
            answers.append(next(periodic)[0].update)
        assert len(answers) <= 7
        assert answers == sorted(set(answers))


def test_an_overloaded_runner_refuses_new_queries(tmp_path: Path) -> None:
    fed = Fed(tmp_path, layout(10, 6))
    fed.feed(60)
    fed.queries.runner.capacity = 0
    with pytest.raises(OverloadedError, match="no more than 0"):
        fed.periodic("SELECT COUNT(*) AS n FROM s", every=1)
    with pytest.raises(OverloadedError):
        fed.snapshot("SELECT COUNT(*) AS n FROM s")
    fed.close()
