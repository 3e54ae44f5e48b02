"""The kept result of a query (paper 2, 4.3): rows are added, expire and are inserted while queries read."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sash.errors import StoreError, WindowError
from sash.plan.types import BIGINT, STRING, Field
from sash.testing.histories import classify
from sash.window_store.options import SnapshotOptions
from sash.window_store.queries import WindowQueries
from sash.window_store.scheduling.levels import LEVELS
from sash.window_store.scheduling.recorder import Recorder
from sash.window_store.snapshot import Snapshot
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.manifest import Manifest, Slice
from sash.window_store.sub_windows import scan_locally
from sash.window_store.summaries.base import Tables
from sash.window_store.summaries.core import Core

SCHEMA = (Field("k", STRING), Field("n", BIGINT))
GROUPS = "SELECT k, COUNT(*) AS c, SUM(n) AS t, MIN(n) AS low, MAX(n) AS high, COUNT(DISTINCT n) AS d FROM r GROUP BY k"
TOP = "SELECT k, n FROM r ORDER BY n DESC, k LIMIT 3"
Change = tuple[int, int, int, str, int]
"""ts, sign, end, and the row."""


def made_up(seed: int, until: int = 200, known: bool = False) -> list[Change]:
    """Changes of a bag of rows, with an arrival at most instants. Rows expire sooner or later, some never.

    With `known`, rows live at most 45, as those of a join of windows that long do.
    """
    rnd, changes = random.Random(seed), []
    for ts in range(until):
        if rnd.random() < 0.2:
            continue
        life = rnd.choice([1, 7, 20, 45, 45]) if known or rnd.random() < 0.8 else 10**9
        row = (ts + life, rnd.choice("abc"), rnd.randrange(4))
        changes += [(ts, 1, *row), (ts + life, -1, *row)]
    return sorted(change for change in changes if change[0] < until)


def at(changes: list[Change], instant: int) -> Counter[tuple[str, int]]:
    bag: Counter[tuple[str, int]] = Counter()
    for ts, sign, _, k, n in changes:
        if ts < instant:
            bag[k, n] += sign
    return +bag


class FedResult:
    """A kept result that is fed changes, and the expected answers."""

    def __init__(
        self, root: Path, changes: list[Change], ends: bool, count: int = 4, retain: int = 0, recorder: Recorder | None = None
    ) -> None:  # fmt: skip
        self.root, self.changes, self.ends = root, changes, ends
        self.queries = WindowQueries(1)
        self.writer = self.queries.write(
            root, StoreLayout("r", SCHEMA, "", "result", 10, count, retain, ends), recorder
        )
        self.batch = self.clock = 0

    def feed(self, until: int) -> int:
        """Apply the changes up to an instant as a batch; returns the number of window updates."""
        found = [change for change in self.changes if self.clock <= change[0] < until]
        arrow = self.writer.layout.arrow
        ts, sign, ends, k, n = zip(*found, strict=True) if found else ((),) * 5
        columns = (ts, sign, *([ends] if self.ends else []), k, n)
        rows = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, arrow, strict=True)], schema=arrow)
        made = self.writer.apply(self.batch, rows, until)
        self.batch, self.clock = self.batch + 1, until
        return made

    def snapshot(self, sql: str, **options: Any) -> list[Snapshot]:
        return self.queries.submit(sql, SnapshotOptions(**options)).result()

    def check(self, access: str = "auto", isolation: str = "latest") -> None:
        """Compare every kind of query with the changes up to the update that it reflects."""
        (answer,) = self.snapshot(GROUPS, access=access, isolation=isolation)
        rows = sorted(at(self.changes, answer.as_of).elements())
        expected = []
        for key in sorted({k for k, _ in rows}):
            values = [n for k, n in rows if k == key]
            row = {"c": len(values), "t": sum(values), "low": values[0], "high": values[-1], "d": len(set(values))}
            expected.append({"k": key, **row})
        assert sorted(answer.to_pylist(), key=lambda row: str(row["k"])) == expected
        (whole,) = self.snapshot("SELECT k, n FROM r", isolation=isolation)
        assert Counter((row["k"], row["n"]) for row in whole.to_pylist()) == at(self.changes, whole.as_of)
        (top,) = self.snapshot(TOP, isolation=isolation)
        rows = at(self.changes, top.as_of).elements()
        assert [(row["k"], row["n"]) for row in top.to_pylist()] == sorted(rows, key=lambda row: (-row[1], row[0]))[:3]

    def close(self) -> None:
        self.queries.close()
        self.writer.close()


@pytest.mark.parametrize("access", ["WS", "SS"])
@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_a_kept_result_is_queried_as_of_every_update(tmp_path: Path, seed: int, ends: bool, access: str) -> None:
    kept, rnd = FedResult(tmp_path, made_up(seed), ends), random.Random(seed)
    while kept.clock < 200:
        if kept.feed(min(200, kept.clock + rnd.randrange(5, 35))):
            kept.check(access)
    assert len(kept.writer.manifest.live) == 4
    assert kept.writer.manifest.expired == ()
    with pytest.raises(WindowError, match="without a window"):
        kept.snapshot("SELECT k FROM r [RANGE 1 SECOND]")
    with pytest.raises(StoreError, match="SS does not apply: rows of a query's answer may be retracted"):
        kept.snapshot(TOP, access="SS")
    kept.close()


def test_rows_with_known_expiration_times_leave_with_their_sub_window(tmp_path: Path) -> None:
    changes = made_up(4, 300, known=True)
    kept = FedResult(tmp_path, changes, True, count=5)
    inserted = 0
    while kept.clock < 300:
        kept.feed(kept.clock + 10)
        part = kept.writer.manifest.live[-1]
        rows = part.own.read(tmp_path), *(rows.read(tmp_path) for rows in part.inserted.values())
        if part.number >= 5 + 5:  # those that came while the window was filled have left: no retraction is needed
            assert all(row["_sign"] == 1 for table in rows for row in table.to_pylist())
        assert all(part.number - 5 < into < part.number for into in part.inserted)
        inserted += len(part.inserted)
        kept.check()
    assert inserted > 60
    kept.close()


def test_rows_with_unknown_expiration_times_are_retracted_in_their_sub_window(tmp_path: Path) -> None:
    forever = 10**9
    changes: list[Change] = [
        (1, 1, forever, "a", 1),
        (2, 1, forever, "b", 2),
        (33, -1, forever, "b", 2),
        (51, 1, forever, "c", 3),
    ]
    kept = FedResult(tmp_path, changes, False, count=3)
    kept.feed(30)
    assert [part.inserts for part in kept.writer.manifest.live] == [(), (), ()]
    kept.feed(40)  # sub-window 0 leaves: `a` goes on in 3, and `b` with it
    assert kept.writer.manifest.live[-1].own.read(tmp_path).select(["k", "_sign"]).to_pylist() == [
        {"k": "a", "_sign": 1}
    ]
    kept.feed(60)
    assert [(part.number, part.rows) for part in kept.writer.manifest.live] == [(3, 1), (4, 0), (5, 1)]
    kept.check()
    kept.close()


@pytest.mark.parametrize("ends", [True, False])
def test_a_writer_made_anew_finds_every_row_again(tmp_path: Path, ends: bool) -> None:
    changes, rnd = made_up(7, 400), random.Random(7)
    kept = FedResult(tmp_path, changes, ends)
    while kept.clock < 400:
        kept.feed(min(400, kept.clock + rnd.randrange(5, 60)))
        kept.check()
        again = FedResult.__new__(FedResult)
        again.__dict__.update(kept.__dict__)
        kept.close()
        again.queries = WindowQueries(1)
        again.writer = again.queries.write(tmp_path, kept.writer.layout)
        kept = again
    kept.close()


@pytest.mark.parametrize("ends", [True, False])
def test_rows_expire_during_a_long_gap(tmp_path: Path, ends: bool) -> None:
    forever = 10**9
    changes: list[Change] = [
        (5, 1, 25, "a", 1), (6, 1, 2_000, "b", 2), (7, 1, forever, "c", 3), (25, -1, 25, "a", 1), (1_000, 1, 1_012, "d", 4),
        (1_012, -1, 1_012, "d", 4), (2_000, -1, 2_000, "b", 2), (2_005, 1, forever, "e", 5),
    ]  # fmt: skip
    kept = FedResult(tmp_path, changes, ends)
    for until in (10, 40, 1_005, 1_010, 1_020, 1_030, 1_500, 2_010, 2_100):
        kept.feed(until)
        kept.check()
    kept.close()


def moved(kept: FedResult, moves: dict[int, int]) -> Callable[[int], object]:
    """Local reads after which, by number, the result advances by so many updates."""
    reads = iter(range(10_000))

    def scan(root: Path, parts: Sequence[Slice], core: Core) -> Tables:
        found = scan_locally(root, parts, core)
        kept.feed(kept.clock + 10 * moves.get(next(reads), 0))
        return found

    return lambda _: scan


def test_inserts_into_sub_windows_already_read_are_passed_to_the_reader(tmp_path: Path) -> None:
    recorder = Recorder()
    kept = FedResult(tmp_path, made_up(5, 300, known=True), True, count=5, recorder=recorder)
    kept.feed(50)
    kept.queries.scans["local"] = moved(kept, {0: 1, 3: 1})
    (answer,) = kept.snapshot(GROUPS, access="WS")
    assert (answer.update, answer.restarts, answer.rescans) == (6, 0, 0)
    assert answer.sub_windows_read == 5
    history = recorder.history
    assert history.split()[-15:] == [
        "w5[0]", "i5[2]", "c5", "rQ1[4:4]", "rQ1[0:5]", "rQ1[3:5]", "w6[1]", "i6[2]", "i6[0]", "c6", "pQ1[0]",
        "rQ1[2:5]", "pQ1[2:6]", "rQ1[1:6]", "cQ1",
    ]  # fmt: skip
    assert "latest-window-serializable" in classify(history, 5, recorder.lengths)
    # Its read of 2 was under way when rows were inserted there; 1 was read with what had been inserted.
    without = " ".join(operation for operation in history.split() if operation[0] != "p")
    assert "latest-window-serializable" not in classify(without, 5, recorder.lengths)
    kept.close()


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("retain", [0, 2])
@pytest.mark.parametrize("isolation", ["ttu", "latest-window-serializable", "window-serializable"])
@pytest.mark.parametrize("moves", [{0: 2, 3: 1}, {4: 1}, {1: 1, 2: 1, 3: 1, 7: 2, 12: 1}, {3: 9}])
def test_every_answer_is_of_a_true_state(
    tmp_path: Path, isolation: str, retain: int, moves: dict[int, int], ends: bool
) -> None:
    recorder = Recorder()
    kept = FedResult(tmp_path, made_up(9, 400), ends, count=5, retain=retain, recorder=recorder)
    kept.feed(50)
    kept.queries.scans["local"] = moved(kept, moves)
    kept.check(isolation=isolation)
    assert LEVELS[isolation].reaches in classify(recorder.history, 5, recorder.lengths)
    kept.close()


def test_readers_in_another_process_receive_the_inserts_too(tmp_path: Path) -> None:
    recorder = Recorder()
    kept = FedResult(tmp_path, made_up(6, 300, known=True), True, count=5, retain=1)
    kept.feed(50)
    queries = kept.queries
    kept.queries = WindowQueries(1)  # as in another process, all that it knows of the writer is the manifest
    kept.queries.attach("r", tmp_path, recorder)
    kept.queries.scans["local"] = moved(kept, {1: 1, 8: 1})
    kept.check()
    assert "p" in {operation[0] for operation in recorder.history.split()}
    assert "latest-window-serializable" in classify(recorder.history, 5, recorder.lengths)
    assert Manifest.load(tmp_path).updates == 7
    queries.close()
    kept.close()
