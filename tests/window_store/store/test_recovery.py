from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("kept", "kills"), [("stream", 60), ("result", 50)])
def test_a_writer_killed_at_any_file_operation_loses_and_doubles_nothing(tmp_path: Path, kept: str, kills: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HOME / "src"), str(HOME)])}
    done = subprocess.run(
        [sys.executable, "-m", "tests.window_store.store.kill_writer", str(tmp_path), kept],
        cwd=HOME, env=environment, capture_output=True, text=True, timeout=1_200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > kills
