"""Writes docs/functions.md: what Sash does with each function of the Spark that it is built for."""

from __future__ import annotations

from pathlib import Path

from sash.sql.aggregates import AGGREGATES
from sash.sql.functions import canonical_name
from sash.sql.generators import GENERATORS
from sash.sql.lambdas import NAMES as WITH_LAMBDAS
from sash.sql.now import NAMES as INSTANTS
from sash.sql.spark_functions import REFUSED, SKETCH
from sash.sql.spark_library import LibraryFunction, library

FILE = Path(__file__).resolve().parents[1] / "docs" / "functions.md"

_SYNTAX = frozenset(
    {
        "and",
        "or",
        "not",
        "in",
        "if",
        "when",
        "cast",
        "extract",
        "struct",
        "arrays_zip",
        "grouping",
        "grouping_id",
        "div",
    }
    | {
        "between",
        "case",
        "exists",
        "position",
        "substr",
        "substring",
        "trim",
        "overlay",
        "window",
        "session_window",
        "window_time",
    }
    | {
        "range",
        "any",
        "some",
        "every",
        "dateadd",
        "datediff",
        "date_diff",
        "timestampadd",
        "timestampdiff",
        "charindex",
    }
)
"""Functions that the binder knows, beside the library."""
_OPERATORS = frozenset({"div", "like", "ilike", "rlike", "regexp"})

_TEXT = """# Functions

What Sash does with each of the {count} functions of Spark {version}. `scripts/function_table.py` writes this page, and a
test compares it with the code.

- **Anywhere**: above a source, and above joins, aggregates, DISTINCT and set operations.
- **Above a source**: only Spark computes them, in its own engine, on the rows of a stream or relation before any other
  operator.
- **Refused**: for the reason that is given, wherever they are.

| | functions |
|---|---:|
{totals}
"""


def status(name: str, function: LibraryFunction) -> str:
    """The heading under which the function is listed."""
    kind = function.kind
    if name in AGGREGATES and kind in ("aggregate", "window"):
        return "Aggregates"
    if kind == "window" or name in ("first_value", "last_value"):
        return "Window functions"
    if kind == "generator":
        return (
            "Generators" if name.removesuffix("_outer") in GENERATORS else "Refused: generators that Sash does not have"
        )
    if name in INSTANTS:
        return "The instant of the answer: in WHERE alone"
    if kind == "varying":
        return "Refused: the value depends on more than the arguments"
    if kind == "aggregate":
        if name in _SYNTAX:
            return "Aggregates"
        if SKETCH.search(name):
            return "Refused: aggregates of sketches that merge at random, or have no format that others read"
        return "Refused: aggregates that Sash does not have"
    if canonical_name(name) is not None or name in _SYNTAX | _OPERATORS | WITH_LAMBDAS or not name.isidentifier():
        return "Anywhere"
    return next((f"Refused: {reason}" for reason, (names, _) in REFUSED.items() if name in names), "Above a source")


def page() -> str:
    """The text of the page."""
    found: dict[str, list[str]] = {}
    for name, function in sorted(library().functions.items()):
        found.setdefault(status(name, function), []).append(name)
    headings = sorted(found, key=lambda heading: (heading.startswith("Refused"), heading))
    totals = "\n".join(f"| {heading} | {len(found[heading])} |" for heading in headings)
    parts = [_TEXT.format(count=len(library().functions), version=library().spark, totals=totals)]
    parts += [f"## {heading}\n\n{', '.join(f'`{name}`' for name in found[heading])}\n" for heading in headings]
    return "\n".join(parts)


if __name__ == "__main__":
    FILE.write_text(page(), encoding="utf-8")
