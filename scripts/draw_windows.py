"""Draws the pictures of docs/semantics.md: `python scripts/draw_windows.py` writes docs/pictures/*.svg."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
LEFT, TOP, SECOND, LINE = 120, 30, 46, 26
LIVE, ENDED, MARK, INK = "#5c6bc0", "#c5cae9", "#ef6c00", "#546e7a"


@dataclass(frozen=True)
class Life:
    """A row: its name, and from when until when it is in the window."""

    name: str
    start: float
    end: float


@dataclass(frozen=True)
class Picture:
    """Lives of rows over an axis of seconds; what the answer is, step by step, stands below."""

    title: str
    lives: tuple[Life, ...]
    until: int
    answer: tuple[tuple[float, str], ...]
    label: str
    now: float | None = None

    def draw(self) -> str:
        """The picture as SVG."""
        width, height = LEFT + self.until * SECOND + 40, TOP + (len(self.lives) + 3) * LINE
        axis = TOP + len(self.lives) * LINE + 8
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            f'<title>{self.title}</title><g font-family="sans-serif" font-size="13">',
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
        ]
        for line, life in enumerate(self.lives):
            y = TOP + line * LINE
            over = self.now is not None and not life.start <= self.now < life.end
            long, color = (life.end - life.start) * SECOND, ENDED if over else LIVE
            parts += [
                f'<text x="8" y="{y + 14}" fill="{INK}">{life.name}</text>',
                f'<rect x="{_x(life.start)}" y="{y}" width="{long}" height="18" rx="3" fill="{color}"/>',
            ]
        parts.append(f'<line x1="{LEFT}" y1="{axis}" x2="{_x(self.until)}" y2="{axis}" stroke="{INK}"/>')
        for second in range(self.until + 1):
            parts.append(f'<text x="{_x(second)}" y="{axis + 16}" fill="{INK}" text-anchor="middle">{second}</text>')
        y = axis + 2 * LINE - 8
        parts.append(f'<text x="8" y="{y}" fill="{INK}">{self.label}</text>')
        ends = [start for start, _ in self.answer[1:]] + [self.until]
        for (start, text), end in zip(self.answer, ends, strict=True):
            middle = (_x(start) + _x(end)) / 2
            parts += [
                f'<line x1="{_x(start)}" y1="{y - 14}" x2="{_x(start)}" y2="{y + 6}" stroke="{ENDED}"/>',
                f'<text x="{middle}" y="{y}" fill="{INK}" text-anchor="middle" font-weight="bold">{text}</text>',
            ]
        if self.now is not None:
            parts += [
                f'<line x1="{_x(self.now)}" y1="14" x2="{_x(self.now)}" y2="{axis}" stroke="{MARK}" stroke-width="2"/>',
                f'<text x="{_x(self.now)}" y="11" fill="{MARK}" text-anchor="middle">T = {self.now:g}</text>',
            ]
        return "\n".join([*parts, "</g></svg>", ""])


def _x(second: float) -> float:
    return LEFT + second * SECOND


SALES = (Life("6 at 1", 1, 6), Life("9 at 2", 2, 7), Life("5 at 4", 4, 9), Life("8 at 5", 5, 10))
SUMS = ((0, "NULL"), (1, "6"), (2, "15"), (4, "20"), (5, "28"), (6, "22"), (7, "13"), (9, "8"), (10, "NULL"))
HOPS = (Life("6 at 1", 2, 6), Life("9 at 2", 2, 8), Life("5 at 4", 4, 10), Life("8 at 5", 6, 10))
JOINED = (Life("left, 2", 2, 7), Life("right, 4", 4, 9), Life("result", 4, 7))

DRAWN = {
    "sliding": Picture("A window of 5 seconds slides", SALES, 11, SUMS, "SUM", now=6.5),
    "slide": Picture(
        "A window of 5 seconds that slides by 2", HOPS, 11,
        ((0, "NULL"), (2, "15"), (4, "20"), (6, "22"), (8, "13"), (10, "NULL")), "SUM",
    ),
    "join": Picture("A join's row lives while both of its rows do", JOINED, 10, ((0, "0"), (4, "1"), (7, "0")), "rows"),
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
