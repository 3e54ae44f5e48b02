"""The cost of window functions is measured for every kind, and the page shows every figure."""

from __future__ import annotations

import pytest

from bench.window_costs import CASES, FunctionCase, measure, operator_of, page, table
from sash.errors import SashError


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_case_has_an_operator_over_columns_of_sales(case: FunctionCase) -> None:
    operator, columns = operator_of(case)
    assert operator.state_rows == 0
    assert "price" in columns


def test_page_and_table_have_all_figures() -> None:
    found = measure("20,40", "first 3 rows, LAG by time", 1)
    assert [result["function"] for result in found["windows"]] == ["first 3 rows", "LAG by time"]
    assert all(set(result["ns_per_change"]) == {"20", "40"} for result in found["windows"])
    assert table(found).row_count == 2
    text = page(found)
    assert "| 20 rows | 40 rows | largest / smallest |" in text
    assert "QUALIFY ROW_NUMBER() OVER (ORDER BY price DESC) <= 3" in text


def test_page_names_the_functions_whose_changes_cost_more_in_large_partitions() -> None:
    def result(name: str, ratio: float) -> dict[str, object]:
        return {"function": name, "sql": "SELECT x FROM sales", "ns_per_change": {"1": 100, "9": 200}, "ratio": ratio}

    assert "1 of 2 functions are; the others are NTILE (2.50). " in page(
        {"windows": [result("LAG", 2), result("NTILE", 2.5)]}
    )
    assert "functions are" not in page({"windows": [result("LAG", 1.9)]})


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(SashError, match="unknown function 'median'"):
        measure("20", "median", 1)
