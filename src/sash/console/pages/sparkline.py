"""Small lines of the last batches."""

from __future__ import annotations

from collections.abc import Sequence

from sash.console.pages.markup import Markup, tag

WIDTH, HEIGHT = 130, 26


def sparkline(values: Sequence[float | None], title: str) -> Markup | None:
    """Return a line through the values, from 0 to the largest of them; None with fewer than two."""
    known = [max(0.0, float(value)) for value in values if value is not None]
    if len(known) < 2:
        return None
    top = max(known) or 1.0
    step = (WIDTH - 2) / (len(known) - 1)
    points = " ".join(
        f"{1 + i * step:.1f},{HEIGHT - 2 - (HEIGHT - 4) * value / top:.1f}" for i, value in enumerate(known)
    )
    line = tag("polyline", points=points, class_="spark")
    box = f"0 0 {WIDTH} {HEIGHT}"
    return tag("svg", tag("title", title), line, width=WIDTH, height=HEIGHT, viewBox=box, role="img", aria_label=title)
