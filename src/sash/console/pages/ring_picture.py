"""A kept window as the ring of its sub-windows, the oldest after the top, clockwise, and inside it what reads have reached."""

from __future__ import annotations

import math

from sash.console.pages import formats
from sash.console.pages.markup import Markup, tag
from sash.console.pages.model import Values

_SIZE, _OUTER, _INNER = 300, 140, 92
_MOST_READS, _READ = 3, 6


def ring_picture(window: Values) -> Markup:
    """Draw a window: its sub-windows, the part that the next update replaces, and the sub-windows that queries are reading."""
    parts = window.get("sub_windows") or []
    whole = 2 * math.pi / max(1, len(parts))
    gap = min(0.03, whole / 8)
    most = max((part.get("rows") or 0 for part in parts), default=0) or 1
    drawn = []
    for i, part in enumerate(parts):
        inner = _OUTER - (_OUTER - _INNER) * (0.35 + 0.65 * (part.get("rows") or 0) / most)
        tip = f"{_bound(part.get('begin'), window)} to {_bound(part.get('end'), window)}: {formats.count(part.get('rows'))} rows, {formats.size(part.get('bytes'))}"
        shape = _segment(i * whole + gap, (i + 1) * whole - gap, inner, _OUTER)
        drawn.append(tag("path", tag("title", tip), d=shape, class_=str(part.get("state") or "full"), data_part=i))
    if parts:
        drawn.append(
            tag(
                "path",
                tag("title", "the next update replaces this sub-window"),
                d=_arc(gap, whole - gap, _OUTER + 6),
                class_="due",
            )
        )
    for place, read in enumerate([one for one in window.get("reads") or [] if one.get("versions")][:_MOST_READS]):
        drawn += _reached(read, [part.get("number") for part in parts], _INNER - 6 - 9 * place, (gap, whole))
    middle = _SIZE // 2
    held = sum(part.get("rows") or 0 for part in parts)
    texts = [
        tag("text", f"{len(parts)} sub-windows", x=middle, y=middle - 20, text_anchor="middle", class_="soft"),
        tag(
            "text",
            f"{formats.count(window.get('rows') or held)} rows",
            x=middle,
            y=middle + 4,
            text_anchor="middle",
            class_="big",
        ),
        tag("text", formats.size(window.get("bytes")), x=middle, y=middle + 25, text_anchor="middle", class_="soft"),
    ]
    label = f"ring of {len(parts)} sub-windows"
    return tag(
        "svg",
        drawn,
        texts,
        width=_SIZE,
        height=_SIZE,
        viewBox=f"0 0 {_SIZE} {_SIZE}",
        role="img",
        aria_label=label,
        style="max-width: 100%",
    )


def _reached(read: Values, numbers: list[int | None], radius: int, places: tuple[float, float]) -> list[Markup]:
    """The arcs of a read: the sub-windows that it has read, those that it reads now, and those to come, in its order."""
    versions, (gap, whole) = read["versions"], places
    drawn = []
    for i, number in enumerate(numbers):
        if number in versions["done"]:
            kind, tip = "done", "read"
        elif number in versions["reading"]:
            kind, tip = "reading", "being read"
        elif number in versions["next"]:
            kind, tip = "unread", f"number {versions['next'].index(number) + 1} of those to be read"
        else:
            continue
        shape = _arc(i * whole + gap, (i + 1) * whole - gap, radius)
        title = tag("title", f"read {read.get('id')}, {read.get('isolation')}: {tip}")
        drawn.append(tag("path", title, d=shape, class_=f"read {kind}", stroke_width=_READ, data_read=number))
    return drawn


def _bound(at: int | None, window: Values) -> str:
    return formats.count(at) if window.get("unit") == "rows" else formats.instant(at, date=False)


def _point(angle: float, radius: float) -> str:
    return f"{_SIZE / 2 + radius * math.sin(angle):.1f} {_SIZE / 2 - radius * math.cos(angle):.1f}"


def _segment(begin: float, end: float, inner: float, outer: float) -> str:
    large = int(end - begin > math.pi)
    return (
        f"M{_point(begin, outer)}A{outer} {outer} 0 {large} 1 {_point(end, outer)}"
        f"L{_point(end, inner)}A{inner:.1f} {inner:.1f} 0 {large} 0 {_point(begin, inner)}Z"
    )


def _arc(begin: float, end: float, radius: float) -> str:
    return f"M{_point(begin, radius)}A{radius} {radius} 0 {int(end - begin > math.pi)} 1 {_point(end, radius)}"
