from __future__ import annotations

import pytest

from tests.optimizer.golden import FOLDER, names, render


@pytest.mark.parametrize("rule", names())
def test_plans_are_as_written_down(rule: str) -> None:
    assert render(rule) == (FOLDER / f"{rule}.txt").read_text()
