from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from sash.errors import StoreError
from sash.window_store.store.layout import StoreLayout
from sash.window_store.store.locks import Lease
from sash.window_store.store.manifest import Manifest
from sash.window_store.store.writer import WindowWriter
from tests.window_store.feeding import SCHEMA, layout, table


def rows_at(*times: int) -> pa.Table:
    return table([{"ts": ts, "k": "a", "v": ts, "x": None} for ts in times])


def kept(root: Path) -> list[tuple[int, int, list[int]]]:
    return [(p.start, p.end, p.own.read(root).column("ts").to_pylist()) for p in Manifest.load(root).live]


def files(root: Path) -> set[str]:
    return {path.name for path in (root / "rows").iterdir()}


def test_the_clock_closes_sub_windows_in_order(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout())
    assert writer.apply(0, rows_at(13, 11, 19), 19) == 0
    assert kept(tmp_path) == []
    assert writer.apply(1, rows_at(20), 20) == 1
    assert kept(tmp_path) == [(10, 20, [11, 13, 19])]
    assert writer.apply(2, rows_at(45, 21, 52), 52) == 3
    assert kept(tmp_path) == [(10, 20, [11, 13, 19]), (20, 30, [20, 21]), (30, 40, []), (40, 50, [45])]
    assert writer.apply(3, rows_at(), 60) == 1
    assert [start for start, _, _ in kept(tmp_path)] == [20, 30, 40, 50]
    assert files(tmp_path) == set(writer.manifest.files)


def test_a_batch_is_applied_once(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout())
    writer.apply(7, rows_at(1, 12), 12)
    assert writer.apply(7, rows_at(1, 12), 12) == 0
    assert writer.apply(3, rows_at(25), 25) == 0
    assert kept(tmp_path) == [(0, 10, [1])]
    writer.close()
    again = WindowWriter(tmp_path, layout())
    assert again.apply(8, rows_at(20), 20) == 1
    assert kept(tmp_path) == [(0, 10, [1]), (10, 20, [12])]


def test_rows_behind_the_clock_are_late(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout())
    writer.apply(0, rows_at(4, 15), 14)
    writer.apply(1, rows_at(13, 14, 3), 20)
    assert kept(tmp_path) == [(0, 10, [4]), (10, 20, [14, 15])]
    assert writer.manifest.late == 2


def test_a_long_gap_makes_as_many_updates_as_the_window_has_sub_windows(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout(count=3))
    writer.apply(0, rows_at(5), 10)
    assert writer.apply(1, rows_at(10**9 + 5), 10**9 + 5) == 3
    assert kept(tmp_path) == [(10**9 - 30, 10**9 - 20, []), (10**9 - 20, 10**9 - 10, []), (10**9 - 10, 10**9, [])]
    assert writer.apply(2, rows_at(), 10**9 + 10) == 1
    assert kept(tmp_path)[-1] == (10**9, 10**9 + 10, [10**9 + 5])


def test_sub_windows_by_rows(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout(length=2, count=2, kind="rows"))
    assert writer.apply(0, rows_at(5, 1, 3), 5) == 1
    assert kept(tmp_path) == [(1, 4, [1, 3])]
    assert writer.apply(1, rows_at(9, 7, 8, 10), 10) == 2
    assert kept(tmp_path) == [(5, 8, [5, 7]), (8, 10, [8, 9])]


def test_replaced_sub_windows_stay_for_retain_and_for_leases(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout(count=2, retain=1))
    for number in range(4):
        writer.apply(number, rows_at(10 * number), 10 * number + 10)
    assert [part.number for part in writer.manifest.expired] == [1]
    lease = Lease(tmp_path, 1)
    for number in range(4, 8):
        writer.apply(number, rows_at(10 * number), 10 * number + 10)
    assert [part.number for part in writer.manifest.expired] == [1, 2, 3, 4, 5]
    lease.keep_from(4)
    writer.apply(8, rows_at(80), 90)
    assert [part.number for part in writer.manifest.expired] == [4, 5, 6]
    lease.release()
    writer.apply(9, rows_at(90), 100)
    assert [part.number for part in writer.manifest.expired] == [7]
    assert files(tmp_path) == set(writer.manifest.files)


def test_a_store_has_one_writer_and_one_layout(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout())
    with pytest.raises(StoreError, match="already has a writer"):
        WindowWriter(tmp_path, layout())
    writer.close()
    with pytest.raises(StoreError, match="length = 10, not 20"):
        WindowWriter(tmp_path, layout(length=20))
    with pytest.raises(StoreError, match="schema"):
        WindowWriter(tmp_path, StoreLayout("s", SCHEMA[:1], "ts", "time", 10, 4))
    again = WindowWriter(tmp_path, layout(retain=3))
    assert StoreLayout.load(tmp_path).retain == 3
    again.close()


def test_leftovers_of_a_killed_writer_are_swept(tmp_path: Path) -> None:
    writer = WindowWriter(tmp_path, layout())
    writer.apply(0, rows_at(1, 12), 12)
    writer.close()
    (tmp_path / "rows" / "orphan.arrow").write_bytes(b"half a file")
    (tmp_path / "manifest.json.1.tmp").write_bytes(b"{")
    again = WindowWriter(tmp_path, layout())
    assert files(tmp_path) == set(again.manifest.files)
    assert not list(tmp_path.glob("*.tmp"))
    again.close()
