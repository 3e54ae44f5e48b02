"""The `>>>` examples in docstrings: each is run."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

from sash.optimizer.optimizer import RULES

SOURCE = Path(__file__).parents[1] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("rule", [name for name, _ in RULES])
def test_every_rule_of_the_optimizer_has_an_example(rule: str) -> None:
    module = importlib.import_module(f"sash.optimizer.rules.{rule}")
    assert ">>> show(" in (getattr(module, rule).__doc__ or "")
