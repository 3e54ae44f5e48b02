"""The page of functions says what the code does: each function is tried, above a source and above an operator."""

from __future__ import annotations

import pytest

from sash.errors import SashError
from sash.sql import parse
from sash.sql.lambdas import NAMES as WITH_LAMBDAS
from sash.sql.spark_library import library
from scripts.function_table import FILE, page, status
from tests.sql.plans import catalog

STATUS = {name: status(name, function) for name, function in library().functions.items()}
NOT_CALLED = {"and", "or", "window_time", *WITH_LAMBDAS} | {name for name in STATUS if not name.isidentifier()}
"""Operators, functions that only lambdas tell apart from others (`tests/sql/test_lambdas.py`), and that of a window alone."""
ABOVE_AN_OPERATOR = "(SELECT DISTINCT name FROM sales [NOW])"


def problem_of(name: str, count: int) -> str:
    """Why a call above an operator is refused; nothing if it is not."""
    try:
        parse(f"SELECT {name}({', '.join(['name'] * count)}) AS e FROM {ABOVE_AN_OPERATOR}", catalog())
    except SashError as error:
        return str(error)
    return ""


def test_the_page_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == page(), "run python scripts/function_table.py"


def test_every_function_of_spark_is_on_the_page() -> None:
    text = page()
    assert [name for name in library().functions if f"`{name}`" not in text] == []


@pytest.mark.parametrize("name", sorted(name for name, found in STATUS.items() if found == "Above a source"))
def test_what_only_spark_computes_is_not_run_above_operators(name: str) -> None:
    assert "library" in problem_of(name, library().functions[name].least)


@pytest.mark.parametrize(
    "name", sorted(name for name, found in STATUS.items() if found == "Anywhere" and name not in NOT_CALLED)
)
def test_what_runs_anywhere_is_not_left_to_spark(name: str) -> None:
    """Texts are not the arguments that every function takes, but no message says that only Spark has the function."""
    problem = problem_of(name, max(library().functions[name].least, 1))
    assert "library" not in problem
    assert "there is no function" not in problem


@pytest.mark.parametrize("name", sorted(name for name, found in STATUS.items() if found.startswith("Refused")))
def test_what_is_refused_is_refused_by_name(name: str) -> None:
    assert name in problem_of(name, max(library().functions[name].least, 0)).lower()
