from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sash.cli.script_change import RunningScript
from sash.errors import ControlError


def test_a_change_that_cannot_be_applied_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the sources nor the jobs of the running script: without the check, the missing engine would be used."""
    found = {"jobs": {"new": {"queries": ["a"]}, "job": {"refused": ["b"]}}, "text": "job job: cannot be applied"}
    monkeypatch.setattr(RunningScript, "diff", lambda *_: found)
    missing: Any = None
    with pytest.raises(ControlError, match="job job: cannot be applied"):
        RunningScript(Path("job.sql"), missing, missing, {}).apply("")
