from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sash.state.arena import Arena, is_sealed


def fill(arena: Arena, value: int) -> None:
    arena.memory("part").array("numbers", np.int64, 4)[:] = value


def numbers(arena: Arena) -> list[int]:
    return arena.memory("part").array("numbers", np.int64, 4).tolist()


def test_what_was_sealed_is_found_under_its_nonce(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        assert arena.fresh
        fill(arena, 7)
        arena.seal("one")
    with Arena(tmp_path / "a", "one") as arena:
        assert not arena.fresh
        assert numbers(arena) == [7] * 4
        assert arena.memory("part").nbytes == 32


def test_another_nonce_finds_it_empty(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        fill(arena, 7)
        arena.seal("one")
    with Arena(tmp_path / "a", "two") as arena:
        assert arena.fresh
        assert numbers(arena) == [0] * 4


def test_left_dirty_it_is_not_trusted(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        arena.seal("one")
    with Arena(tmp_path / "a", "one") as arena:
        fill(arena, 7)
    with Arena(tmp_path / "a", "one") as arena:
        assert arena.fresh


def test_a_process_killed_while_it_has_the_arena_leaves_it_dirty_and_unlocked(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        arena.seal("one")
    child = os.fork()
    if child == 0:
        held = Arena(tmp_path / "a", "one")
        fill(held, 7)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    with Arena(tmp_path / "a", "one") as arena:
        assert arena.fresh


def in_another_process(work: Callable[[], None]) -> None:
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_what_another_process_wrote_and_grew_meanwhile_is_seen(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        fill(arena, 7)
        arena.seal("one")

    def write() -> None:
        with Arena(tmp_path / "a", "one") as arena:
            arena.memory("part").array("numbers", np.int64, 4)[0] = 8
            arena.memory("part").array("others", np.int64, 1)
            arena.memory("part").grow("others", np.int64, 1_000)[-1] = 9
            arena.seal("two")

    with Arena(tmp_path / "a", "one") as arena:
        arena.memory("part").array("others", np.int64, 1)
        arena.seal("one")
    in_another_process(write)
    with Arena(tmp_path / "a", "two") as arena:
        assert numbers(arena) == [8, 7, 7, 7]
        assert arena.memory("part").array("others", np.int64, 1)[-1] == 9


def test_what_another_process_built_anew_is_seen(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        fill(arena, 7)
        arena.seal("one")

    def build() -> None:
        with Arena(tmp_path / "a", None) as arena:
            fill(arena, 5)
            arena.seal("two")

    in_another_process(build)
    with Arena(tmp_path / "a", "two") as arena:
        assert numbers(arena) == [5] * 4


def test_pages_of_an_arena_are_mapped_once_and_let_go_when_it_is_gone(tmp_path: Path) -> None:
    mapped = lambda: Path("/proc/self/maps").read_text().count(str(tmp_path))  # noqa: E731
    for nonce in (None, "one", "one"):
        with Arena(tmp_path / "a", nonce) as arena:
            fill(arena, 7)
            arena.seal("one")
        assert mapped() == 1
    shutil.rmtree(tmp_path / "a")
    with Arena(tmp_path / "b", None):
        assert mapped() == 0


def test_an_arena_of_another_layout_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Arena(tmp_path, None) as arena:
        arena.memory("m").array("a", np.int64, 4)[:] = 7
        arena.seal("one")
    monkeypatch.setattr("sash.state.arena._LAYOUT", 99)
    with Arena(tmp_path, "one") as arena:
        assert arena.fresh
        assert not arena.memory("m").array("a", np.int64, 4).any()


def sealed_in_another_process(directory: Path) -> None:
    def write() -> None:
        with Arena(directory, None) as arena:
            fill(arena, 7)
            arena.memory("other").array("numbers", np.int64, 4)[:] = 8
            arena.seal("one")

    in_another_process(write)


def damage(path: Path, how: str) -> None:
    match how:
        case "cut":
            os.truncate(path, 16)
        case "lost":
            path.unlink()
        case "altered":
            data, sealed = bytearray(path.read_bytes()), path.stat().st_mtime_ns
            data[3] ^= 1
            path.write_bytes(data)
            os.utime(path, ns=(sealed, sealed + 10**7))  # the clock of files may not have ticked meanwhile


@pytest.mark.parametrize("how", ["cut", "lost", "altered"])
def test_a_part_whose_files_are_damaged_is_not_there(tmp_path: Path, how: str) -> None:
    sealed_in_another_process(tmp_path)
    (path,) = tmp_path.glob("data*/part/numbers")
    damage(path, how)
    with Arena(tmp_path, "one") as arena:
        assert not arena.fresh
        assert arena.exists("part")
        assert not arena.has("part")
        assert arena.has("other")
        arena.seal("two")
    with Arena(tmp_path, "two") as arena:
        assert not arena.has("part"), "another batch does not make it whole"


def test_a_part_that_was_taken_is_sealed_with_its_files(tmp_path: Path) -> None:
    sealed_in_another_process(tmp_path / "old")
    with Arena(tmp_path / "old", "one") as old, Arena(tmp_path / "new", None) as new:
        new.take("part", old, "taken")
        new.seal("two")
        old.seal("one")
    with Arena(tmp_path / "new", "two") as new:
        assert new.has("taken")
    with Arena(tmp_path / "old", "one") as old:
        assert not old.has("part")
        assert old.has("other")


def test_an_arena_is_known_by_the_nonce_that_it_was_sealed_with(tmp_path: Path) -> None:
    assert not is_sealed(tmp_path, "one")
    sealed_in_another_process(tmp_path)
    assert is_sealed(tmp_path, "one")
    assert not is_sealed(tmp_path, "two")
    with Arena(tmp_path, "one"):
        assert not is_sealed(tmp_path, "one"), "while it is open"
