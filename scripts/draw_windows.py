"""Draws the pictures of README.md and docs/semantics.md: `python scripts/draw_windows.py` writes docs/pictures/*.svg.

The colours follow the reader's light or dark theme. The background is opaque, so that a picture is readable on a page
whose theme differs from that of the system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
LEFT, TOP, SECOND, LINE = 120, 30, 46, 26

STYLE = """<style>
text { font: 14px sans-serif; fill: #37474f } .page { fill: #fff } .axis { stroke: #78909c } .tick { stroke: #cfd8dc }
.live { fill: #5c6bc0 } .ended { fill: #c5cae9 } .strong { font-weight: bold } .now { stroke: #e65100; stroke-width: 2 }
.slide { stroke: #3949ab; stroke-width: 3; fill: none } .hop { stroke: #e65100; stroke-width: 3; fill: none; stroke-dasharray: 7 5 }
text.slide { fill: #3949ab; stroke: none } text.hop, text.now { fill: #e65100; stroke: none } .gap { fill: #e65100; opacity: .13 }
@media (prefers-color-scheme: dark) {
text { fill: #cfd8dc } .page { fill: #1e2129 } .axis { stroke: #90a4ae } .tick { stroke: #455a64 }
.live { fill: #7986cb } .ended { fill: #3a4170 } .now { stroke: #ffb74d } .slide { stroke: #9fa8da } .hop { stroke: #ffb74d }
text.slide { fill: #9fa8da } text.hop, text.now { fill: #ffb74d } .gap { fill: #ffb74d } }
</style>"""

Steps = tuple[tuple[float, float], ...]
"""The values of an answer: each from an instant until the next one."""


class Drawing(Protocol):
    """What can be drawn as SVG."""

    def draw(self) -> str:
        """The picture as SVG."""
        ...


@dataclass(frozen=True)
class Life:
    """A row: its name, and from when until when it is in the window."""

    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Picture:
    """The rows of a window over an axis of seconds, and below it the answer, step by step."""

    title: str
    lives: tuple[Life, ...]
    until: int
    answer: tuple[tuple[float, str], ...]
    label: str
    now: float | None = None

    def draw(self) -> str:
        """The picture as SVG."""
        axis = TOP + len(self.lives) * LINE + 8
        parts = []
        for line, life in enumerate(self.lives):
            y = TOP + line * LINE
            over = self.now is not None and not life.start <= self.now < life.end
            long, look = (life.end - life.start) * SECOND, "ended" if over else "live"
            parts += [
                f'<text x="8" y="{y + 14}">{life.name}</text>',
                f'<rect class="{look}" x="{_x(life.start)}" y="{y}" width="{long}" height="18" rx="3"/>',
            ]
        parts.append(f'<line class="axis" x1="{LEFT}" y1="{axis}" x2="{_x(self.until)}" y2="{axis}"/>')
        for second in range(self.until + 1):
            parts.append(f'<text x="{_x(second)}" y="{axis + 17}" text-anchor="middle">{second}</text>')
        y = axis + 2 * LINE - 6
        parts.append(f'<text x="8" y="{y}">{self.label}</text>')
        ends = [start for start, _ in self.answer[1:]] + [self.until]
        for (start, text), end in zip(self.answer, ends, strict=True):
            parts += [
                f'<line class="tick" x1="{_x(start)}" y1="{y - 14}" x2="{_x(start)}" y2="{y + 6}"/>',
                f'<text class="strong" x="{(_x(start) + _x(end)) / 2}" y="{y}" text-anchor="middle">{text}</text>',
            ]
        if self.now is not None:
            parts += [
                f'<line class="now" x1="{_x(self.now)}" y1="16" x2="{_x(self.now)}" y2="{axis}"/>',
                f'<text class="now" x="{_x(self.now)}" y="12" text-anchor="middle">T = {self.now:g}</text>',
            ]
        return _svg(self.title, LEFT + self.until * SECOND + 40, TOP + (len(self.lives) + 3) * LINE, parts)


@dataclass(frozen=True)
class Comparison:
    """The same question over a window that slides and one that hops: two step lines, and the error between them."""

    title: str
    rows: tuple[tuple[float, float], ...]
    window: float
    hop: float
    until: float
    alarm: float

    def sliding(self) -> Steps:
        """The sum of the rows valid at each instant."""
        instants = {0.0} | {at for ts, _ in self.rows for at in (ts, ts + self.window)}
        return tuple((at, self._sum(at)) for at in sorted(instants))

    def hopping(self) -> Steps:
        """The sum of the last complete hopping window."""
        return tuple((hop * self.hop, self._sum(hop * self.hop)) for hop in range(int(self.until / self.hop) + 1))

    def _sum(self, at: float) -> float:
        return sum(value for ts, value in self.rows if ts <= at < ts + self.window)

    def _errors(self) -> Iterator[tuple[float, float, float, float]]:
        """From when until when the hopping answer differs, and both answers."""
        slide, hop = self.sliding(), self.hopping()
        for start, end in pairwise(sorted({at for at, _ in (*slide, *hop)} | {self.until})):
            right, shown = (next(v for at, v in reversed(steps) if at <= start) for steps in (slide, hop))
            if right != shown:
                yield start, end, right, shown

    def draw(self) -> str:
        """The picture as SVG."""
        wide, base, unit = 540, 248, 6.2

        def x(at: float) -> float:
            return round(44 + at / self.until * (wide - 64), 1)

        def y(value: float) -> float:
            return round(base - value * unit, 1)

        def path(steps: Steps) -> str:
            ends = [at for at, _ in steps[1:]] + [self.until]
            return "M" + " L".join(
                f"{x(a)} {y(v)} L{x(b)} {y(v)}" for (a, v), b in zip(steps, ends, strict=True)
            )  # fmt: skip

        parts = [
            '<text class="slide strong" x="44" y="22">sliding window: exact at every instant</text>',
            f'<text class="hop strong" x="44" y="42">window that hops every {self.hop:g} s: late, and misses the peak</text>',
        ]
        for start, end, right, shown in self._errors():
            top = y(max(right, shown))
            box = f'x="{x(start)}" y="{top}" width="{x(end) - x(start):.1f}" height="{abs(right - shown) * unit:.1f}"'
            parts.append(f'<rect class="gap" {box}/>')
        level = y(self.alarm)
        parts += [
            f'<line class="tick" x1="44" y1="{level}" x2="{wide - 20}" y2="{level}"/>',
            f'<text x="{wide - 20}" y="{level - 5}" text-anchor="end">alarm above {self.alarm:g}</text>',
            f'<path class="hop" d="{path(self.hopping())}"/>',
            f'<path class="slide" d="{path(self.sliding())}"/>',
            f'<line class="axis" x1="44" y1="{base}" x2="{wide - 20}" y2="{base}"/>',
            f'<text x="8" y="{base + 20}">s</text>',
        ]
        for second in range(0, int(self.until) + 1, int(self.hop)):
            parts.append(f'<text x="{x(second)}" y="{base + 20}" text-anchor="middle">{second}</text>')
        start, peak = max(self.sliding(), key=lambda step: step[1])
        parts += [
            f'<text class="slide strong" x="{x(start) + 6}" y="{y(peak) - 6}">{peak:g}</text>',
            f'<text x="8" y="{base + 48}">sale</text>',
        ]
        for ts, value in self.rows:
            parts += [
                f'<circle class="live" cx="{x(ts)}" cy="{base + 43}" r="14"/>',
                f'<text class="strong" x="{x(ts)}" y="{base + 48}" text-anchor="middle" style="fill: #fff">{value:g}</text>',
            ]
        return _svg(self.title, wide, base + 66, parts)


def _x(second: float) -> float:
    return LEFT + second * SECOND


def _svg(title: str, width: float, height: float, parts: list[str]) -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    )
    page = f'<rect class="page" width="{width}" height="{height}" rx="6"/>'
    return "\n".join([opening, f"<title>{title}</title>", STYLE, page, *parts, "</svg>", ""])


SALES = (Life("6 at 1", 1, 6), Life("9 at 2", 2, 7), Life("5 at 4", 4, 9), Life("8 at 5", 5, 10))
SUMS = ((0, "NULL"), (1, "6"), (2, "15"), (4, "20"), (5, "28"), (6, "22"), (7, "13"), (9, "8"), (10, "NULL"))
HOPS = (Life("6 at 1", 2, 6), Life("9 at 2", 2, 8), Life("5 at 4", 4, 10), Life("8 at 5", 6, 10))
JOINED = (Life("left, 2", 2, 7), Life("right, 4", 4, 9), Life("result", 4, 7))

DRAWN: dict[str, Drawing] = {
    "hopping": Comparison(
        "The sales of the last minute, by a window that slides and by one that hops",
        rows=((10, 6), (25, 9), (50, 5), (65, 8)), window=60, hop=20, until=140, alarm=25,
    ),
    "sliding": Picture("A window of 5 seconds slides", SALES, 11, SUMS, "SUM", now=6.5),
    "slide": Picture(
        "A window of 5 seconds that slides by 2", HOPS, 11,
        ((0, "NULL"), (2, "15"), (4, "20"), (6, "22"), (8, "13"), (10, "NULL")), "SUM",
    ),
    "join": Picture("A join's row is valid while both of its rows are", JOINED, 10, ((0, "0"), (4, "1"), (7, "0")), "rows"),
    "rows": Picture(
        "The last two rows", (Life("a at 1", 1, 4), Life("b at 2", 2, 7), Life("c at 4", 4, 10), Life("d at 7", 7, 10)),
        10, ((0, "none"), (1, "a"), (2, "a b"), (4, "b c"), (7, "c d")), "[ROWS 2]",
    ),
}  # fmt: skip


def main() -> None:
    """Write all of them."""
    PICTURES.mkdir(exist_ok=True)
    for name, picture in DRAWN.items():
        (PICTURES / f"{name}.svg").write_text(picture.draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
