"""The claim of papers 1 and 3 that negative tuples double the rows, judged by every point and run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bench.claim import Claim


def doubled_rows(points: Sequence[dict[str, Any]], where: str) -> Iterator[Claim]:
    """What negative tuples double: the rows of selections and joins, or all rows. A point has runs by strategy."""
    twice, more = (
        [
            one / two
            for at in points
            for one, two in zip(at["negative-tuple"][measure], at["input-triggered"][measure], strict=True)
        ]
        for measure in ("first_kind", "rows")
    )
    yield Claim(
        "Negative tuples double the rows that selections and joins take in (by 1.9 to 2.1 times)",
        f"{min(twice):.2f} to {max(twice):.2f} times those of input-triggered, {where}.",
        min(twice) >= 1.9 and max(twice) <= 2.1,
    )
    yield Claim(
        "Negative tuples at least double the rows in the pipeline",
        f"{min(more):.2f} to {max(more):.2f} times those of input-triggered, {where}.",
        min(more) >= 2,
        ""
        if min(more) >= 2
        else "An aggregate, a DISTINCT and a negation output the same changes under both, and so the operators above them take "
        "in as many rows; so do projections right above a scan, which drop columns before rows get an end.",
    )
