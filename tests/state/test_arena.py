from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from sash.state.arena import Arena


def fill(arena: Arena, value: int) -> None:
    arena.memory.array("numbers", np.int64, 4)[:] = value


def numbers(arena: Arena) -> list[int]:
    return arena.memory.array("numbers", np.int64, 4).tolist()


def test_what_was_sealed_is_found_under_its_nonce(tmp_path: Path) -> None:
    with Arena(tmp_path / "a", None) as arena:
        assert arena.fresh
        fill(arena, 7)
        arena.seal("one")
    with Arena(tmp_path / "a", "one") as arena:
        assert not arena.fresh
        assert numbers(arena) == [7] * 4
        assert arena.memory.nbytes == 32


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
