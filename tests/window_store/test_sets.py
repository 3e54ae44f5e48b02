"""The length of sub-windows changes while a window is kept and queried: two sets until the new one covers the window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sash.errors import OptionError, StoreError
from sash.testing.histories import classify
from sash.window_store.options import SnapshotOptions
from sash.window_store.queries import WindowQueries
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.sets import WindowSets
from sash.window_store.store.writer import WindowWriter
from tests.window_store.feeding import Fed, counted, layout, table

SQL = "SELECT k, COUNT(*) AS n, SUM(x) AS t, MAX(v) AS m FROM s [RANGE {} MICROSECONDS] GROUP BY k"
SIXTY = 60


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    found = Fed(tmp_path, layout(10, 6))
    found.feed(65, 60)
    yield found
    found.close()


def check(fed: Fed, lengths: tuple[int, ...] = (20, 45, 60), **options: Any) -> int:
    """Compare the answers over windows of several lengths with the truth; returns as of when they are."""
    answers = [fed.snapshot(SQL.format(length), **options)[0] for length in lengths]
    for length, answer in zip(lengths, answers, strict=True):
        assert counted(answer.to_pylist()) == fed.truth(SQL.format(length), answer.as_of)
    return answers[0].as_of


@pytest.mark.parametrize(("every", "steps"), [(20, (10, 20)), (5, (7,)), (30, (3, 11)), (60, (10,)), (1, (13,))])
@pytest.mark.parametrize("access", ["WS", "SS"])
def test_the_length_changes_under_queries(fed: Fed, every: int, steps: tuple[int, ...], access: str) -> None:
    fed.writer.change_every(f"{every} microseconds")
    assert fed.writer.layout.length == 10, "queries read the old set"
    assert fed.writer.progress()["changing"] == {"every": f"{every / 1e6:g} s", "sub_windows": 0, "of": SIXTY // every}
    last, number = 0, 0
    while "changing" in fed.writer.progress():
        fed.feed(fed.clock + steps[number % len(steps)], 12)
        number += 1
        as_of = check(fed, access=access)
        assert as_of >= last, "answers do not go back in time"
        last = as_of
        assert fed.clock < 65 + SIXTY + 4 * every + 20, "the window has rolled over"
    assert fed.clock > 65 + SIXTY - every, "and not before"
    assert (fed.writer.layout.length, fed.writer.layout.count) == (every, SIXTY // every)
    for _ in range(4):
        fed.feed(fed.clock + every, 12)
        check(fed, access=access)
    assert not (fed.root / "rows").exists(), "the old set is gone"
    assert fed.queries.plan(SQL.format(20), SnapshotOptions()).window.root == fed.root / "set-1"


def test_rows_that_wait_belong_to_both_sets(tmp_path: Path) -> None:
    fed = Fed(tmp_path, layout(10, 6, "rows"))
    fed.feed(40, 65)
    sql = "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s [ROWS {}] GROUP BY k"
    fed.writer.change_every(15)
    while "changing" in fed.writer.progress():
        fed.feed(fed.clock + 10, 12)
        for rows in (30, 60):
            (answer,) = fed.snapshot(sql.format(rows))
            complete = sorted(fed.rows, key=lambda row: [(value is not None, value) for value in row.values()])
            length = fed.writer.layout.length
            done = sum(row["ts"] < fed.clock for row in complete)
            first = complete[: done // length * length] if length == 10 else None
            assert sum(row["n"] for row in answer.to_pylist()) == rows
            assert first is None or first[-1]["ts"] + 1 == answer.as_of
    assert fed.writer.layout.length == 15
    fed.close()


def test_a_change_goes_on_after_a_restart_and_after_a_kill(tmp_path: Path) -> None:
    """Every batch is applied by a new writer; a batch that is repeated changes nothing."""
    fed = Fed(tmp_path, layout(10, 6))
    fed.feed(65, 60)
    fed.writer.change_every("20 microseconds")
    wanted = layout(20, 3)
    for number in range(9):
        fed.close()
        fed.queries = WindowQueries(1)
        fed.writer = fed.queries.write(tmp_path, wanted)
        fed.batch -= number % 2
        if number % 2:
            assert fed.writer.apply(fed.batch, table(fed.rows[-12:]), fed.clock) == 0
            fed.batch += 1
        fed.feed(fed.clock + 10, 12)
        check(fed)
    assert fed.writer.layout == wanted
    fed.close()


def test_a_crash_between_the_two_sets_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = Fed(tmp_path, layout(10, 6))
    fed.feed(65, 60)
    fed.writer.change_every("20 microseconds")
    apply = WindowWriter.apply

    def killed(self: WindowWriter, batch: int, rows: pa.Table, clock: int) -> int:
        if self.layout.length == 20:
            raise OSError("killed")
        return apply(self, batch, rows, clock)

    crashes = 0
    for _ in range(8):
        rows, clock, batch = list(fed.rows), fed.clock, fed.batch
        if "changing" in fed.writer.progress():
            with monkeypatch.context() as patch:
                patch.setattr(WindowWriter, "apply", killed)
                with pytest.raises(OSError, match="killed"):
                    fed.feed(clock + 10, 12)
            crashes += 1
            fed.close()
            fed.queries = WindowQueries(1)
            fed.writer = fed.queries.write(tmp_path, layout(20, 3))
            fed.rows, fed.clock, fed.batch = rows, clock, batch
        fed.feed(clock + 10, 12)
        check(fed)
    assert crashes > 4
    assert fed.writer.layout.length == 20
    fed.close()


def test_periodic_queries_go_on_with_the_new_set(fed: Fed) -> None:
    with fed.periodic(SQL.format(40), every=1) as periodic:
        next(periodic)
        fed.writer.change_every("20 microseconds")
        seen = []
        while fed.writer.layout.length == 10 or len(seen) < 3:
            if fed.feed(fed.clock + 10, 12):
                (answer,) = next(periodic)
                assert counted(answer.to_pylist()) == fed.truth(SQL.format(40), answer.as_of)
                if "sub-windows of 2e-05 s" in answer.explain():
                    seen.append(answer.as_of)
            elif fed.writer.layout.length == 20 and not seen:
                (answer,) = next(periodic)
                assert counted(answer.to_pylist()) == fed.truth(SQL.format(40), answer.as_of)
                seen.append(answer.as_of)
        assert seen == sorted(seen)


def test_another_process_follows_the_switch(fed: Fed) -> None:
    other = WindowQueries(1)
    other.attach("s", fed.root)
    fed.writer.change_every("20 microseconds")
    while "changing" in fed.writer.progress():
        (answer,) = other.submit(SQL.format(40), SnapshotOptions()).result()
        assert counted(answer.to_pylist()) == fed.truth(SQL.format(40), answer.as_of)
        fed.feed(fed.clock + 10, 12)
    (answer,) = other.submit(SQL.format(40), SnapshotOptions()).result()
    assert "3 sub-windows of 2e-05 s" in answer.explain()
    assert counted(answer.to_pylist()) == fed.truth(SQL.format(40), answer.as_of)
    other.close()


@pytest.mark.parametrize("isolation", ["latest", "latest-window-serializable", "window-serializable"])
def test_both_sets_keep_the_isolation_level(tmp_path: Path, isolation: str) -> None:
    recorder = Recorder()
    fed = Fed(tmp_path, layout(10, 6, retain=1), recorder)
    fed.feed(65, 60)
    fed.writer.change_every("15 microseconds")
    while "changing" in fed.writer.progress():
        check(fed, isolation=isolation)
        fed.feed(fed.clock + 10, 12)
    check(fed, isolation=isolation)
    assert isolation in (*classify(recorder.history, 6, recorder.lengths), "latest")
    fed.close()


def test_what_cannot_be_changed_is_refused(fed: Fed, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="whole multiple"):
        fed.writer.change_every("7 microseconds")
    problem = r"executed every 3 updates.*more than 3 sub-windows, and would have 3"
    with fed.periodic(SQL.format(20), every=3), pytest.raises(OptionError, match=problem):
        fed.writer.change_every("20 microseconds")
    fed.writer.change_every("20 microseconds")
    fed.writer.change_every("10 microseconds")
    assert "changing" not in fed.writer.progress(), "given up"
    kept = StoreLayout("r", fed.writer.layout.schema, "", "result", 10, 6)
    answers = WindowSets(tmp_path / "answers", kept)
    with pytest.raises(StoreError, match="hold the answer of a query by expiration time"):
        answers.change_every("20 microseconds")
    answers.close()
    shutil.rmtree(tmp_path / "answers")
