from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sash.window_store.store.manifest import Manifest
from tests.window_store.feeding import Fed, counted, layout

HOME = Path(__file__).resolve().parents[2]
SQL = "SELECT k, COUNT(*) AS n, SUM(v) AS t FROM s [RANGE 25 MICROSECONDS] GROUP BY k"


class Other:
    """The other process."""

    def __init__(self, root: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOME / "src"), str(HOME)])}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.window_store.other_process", str(root)],
            cwd=HOME, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def send(self, line: str) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def fed(tmp_path: Path) -> Iterator[Fed]:
    found = Fed(tmp_path, layout(10, 4))
    found.feed(45, 40)
    yield found
    found.close()


@pytest.fixture
def other(fed: Fed) -> Iterator[Other]:
    found = Other(fed.root)
    yield found
    found.kill()


def test_another_process_sees_every_update(fed: Fed, other: Other) -> None:
    for isolation in ("ttu", "serial", "window-serializable", "latest-window-serializable"):
        reply = other.send(f"snapshot {isolation} {SQL}")
        assert reply["as_of"] == fed.clock // 10 * 10
        assert counted(reply["rows"]) == fed.truth(SQL, reply["as_of"])
        fed.feed(fed.clock + 10)


def test_summaries_made_there_are_found_here(fed: Fed, other: Other) -> None:
    other.send(f"snapshot ttu {SQL}")
    assert other.send(f"snapshot ttu {SQL}")["built"] > 0
    (answer,) = fed.snapshot(SQL)
    assert "access path SS" in answer.explain()
    assert answer.summaries_built == 0
    assert counted(answer.to_pylist()) == fed.truth(SQL, answer.as_of)


def test_a_reader_there_holds_the_swap_back_here(fed: Fed, other: Other) -> None:
    other.send("hold")
    writing = threading.Thread(target=fed.feed, args=(55,))
    writing.start()
    other.send("still there?")
    assert Manifest.load(fed.root).updates == 4
    other.send("release")
    writing.join()
    assert Manifest.load(fed.root).updates == 5


def test_a_lease_is_kept_until_its_process_is_killed(fed: Fed, other: Other) -> None:
    other.send("lease 1")
    fed.feed(75)
    assert [part.number for part in Manifest.load(fed.root).expired] == [1, 2]
    other.kill()
    fed.feed(85)
    assert Manifest.load(fed.root).expired == ()
    assert not list((fed.root / "leases").iterdir())
