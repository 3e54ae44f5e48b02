"""Queries while the window is updated: they read a state that it had, as the recorded history shows."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path as Directory

import pytest

from sash.testing.histories import classify
from sash.window_store.scheduling.levels import LEVELS
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.store.manifest import Slice
from sash.window_store.sub_windows import Scan, all_stored_bytes, scan_locally
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core
from tests.window_store.feeding import Fed, counted, layout

SQL = "SELECT k, COUNT(*) AS n, SUM(x) AS t FROM s [RANGE 50 MICROSECONDS] GROUP BY k"


def interrupted(at: dict[int, Callable[[], object]]) -> Scan:
    """A scan that calls a function after its n-th sub-window, so that the window is updated while the query runs."""
    reads = iter(range(1000))

    def scan(root: Directory, parts: Sequence[Slice], core: Core) -> Tables:
        found = scan_locally(root, parts, core)
        at.get(next(reads), lambda: None)()
        return found

    return scan


def moving(tmp_path: Directory, retain: int, isolation: str, moves: dict[int, int]) -> tuple[Fed, Recorder, int, int]:
    """A snapshot over five sub-windows, with a number of window updates after some of its reads."""
    recorder = Recorder()
    fed = Fed(tmp_path, layout(10, 5, retain=retain), recorder)
    fed.feed(50, 40)

    def move(by: int) -> Callable[[], object]:
        return lambda: fed.feed(fed.clock + 10 * by)

    fed.queries.scans["local"] = lambda _: interrupted({read: move(by) for read, by in moves.items()})
    (answer,) = fed.snapshot(SQL, isolation=isolation, access="WS")
    assert counted(answer.to_pylist()) == fed.truth(SQL, answer.as_of)
    levels = classify(recorder.history, 5, recorder.lengths)
    assert LEVELS[answer.isolation].reaches in levels
    latest = fed.writer.manifest.live[-1].number
    assert answer.update == latest or answer.isolation == "window-serializable"
    fed.close()
    return fed, recorder, answer.restarts, answer.rescans


def test_ttu_reads_last_what_is_replaced_next(tmp_path: Directory) -> None:
    _, recorder, restarts, rescans = moving(tmp_path, 0, "latest", {0: 1, 3: 1})
    assert (restarts, rescans) == (0, 0)
    reads = [part for part in recorder.history.split() if part[0] in "rw"]
    assert reads[5:] == ["w5[0]", "rQ1[4:4]", "rQ1[0:5]", "rQ1[3:5]", "w6[1]", "rQ1[2:5]", "rQ1[1:6]"]


def test_without_old_copies_a_query_that_read_a_replaced_sub_window_restarts(tmp_path: Directory) -> None:
    _, recorder, restarts, rescans = moving(tmp_path, 0, "latest-window-serializable", {2: 1})
    assert (restarts, rescans) == (1, 0)
    assert "aQ1" in recorder.history.split()


def test_with_old_copies_it_repeats_only_that_read(tmp_path: Directory) -> None:
    _, recorder, restarts, rescans = moving(tmp_path, 1, "latest-window-serializable", {2: 1})
    assert (restarts, rescans) == (0, 1)
    assert "uQ1[0]" in recorder.history.split()


@pytest.mark.parametrize("retain", [0, 2])
@pytest.mark.parametrize("isolation", ["latest", "latest-window-serializable", "window-serializable"])
@pytest.mark.parametrize("moves", [{1: 1}, {0: 2, 3: 1}, {4: 1}, {2: 5}, {1: 1, 2: 1, 3: 1, 5: 2}, {3: 9}])
def test_every_answer_is_of_a_true_state(
    tmp_path: Directory, isolation: str, retain: int, moves: dict[int, int]
) -> None:
    moving(tmp_path, retain, isolation, moves)


@pytest.mark.parametrize("isolation", list(LEVELS))
def test_threads_that_query_while_another_writes(tmp_path: Directory, isolation: str) -> None:
    recorder = Recorder()
    fed = Fed(tmp_path, layout(10, 5), recorder, parallel=2)
    fed.queries.runner.restarts = 100_000  # the writer never rests: queries are to be right, however late
    fed.feed(50, 40)
    answers = []
    problems: list[BaseException] = []

    def query(length: int) -> None:
        sql = f"SELECT k, COUNT(*) AS n, SUM(x) AS t FROM s [RANGE {length} MICROSECONDS] GROUP BY k"
        try:
            answers.extend((sql, fed.snapshot(sql, isolation=isolation)[0]) for _ in range(6))
        except BaseException as problem:  # noqa: BLE001  (the test's thread looks at it)
            problems.append(problem)

    threads = [threading.Thread(target=query, args=(length,)) for length in (50, 50, 35, 10)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads) and fed.clock < 2_000:
        fed.feed(fed.clock + 10, 5)
    for thread in threads:
        thread.join()
    assert not problems
    assert len(answers) == 24
    truths: dict[tuple[str, int], object] = {}
    for sql, answer in answers:
        if (sql, answer.as_of) not in truths:
            truths[sql, answer.as_of] = fed.truth(sql, answer.as_of)
        assert counted(answer.to_pylist()) == truths[sql, answer.as_of]
    assert LEVELS[isolation].reaches in classify(recorder.history, 5, recorder.lengths)
    fed.close()
    assert not list((tmp_path / "leases").iterdir())


def test_summaries_that_are_deleted_while_they_are_counted(
    tmp_path: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in (("kept", 5), ("deleted", 7)):
        (tmp_path / "summaries" / name).mkdir(parents=True)
        (tmp_path / "summaries" / name / "sum.arrow").write_bytes(b"x" * size)
    assert all_stored_bytes(tmp_path) == 12
    listed = os.scandir

    def delete_then_list(path: str | Directory) -> Iterator[os.DirEntry[str]]:
        if Directory(path).name == "deleted":
            monkeypatch.undo()
            shutil.rmtree(path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", delete_then_list)
    assert all_stored_bytes(tmp_path) == 5
