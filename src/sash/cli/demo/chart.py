"""Charts of characters: values over time as columns of blocks."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def columns(values: Sequence[float], most: float, height: int) -> list[str]:
    """The lines of a chart, from top to bottom, with one column per value; the value `most` fills the height.

    >>> columns([1, 4, 4, 0], 4, 2)
    [' ██ ', '▄██ ']
    """
    filled = [0 if most <= 0 else max(0, round(8 * height * value / most)) for value in values]
    return ["".join(_EIGHTHS[min(8, max(0, fill - 8 * row))] for fill in filled) for row in reversed(range(height))]


def sampled(steps: Sequence[tuple[float, float]], start: float, end: float, count: int) -> list[float]:
    """The values at the ends of `count` equal parts of the time from start to end; a value holds until the next.

    >>> sampled([(1, 5.0), (3, 7.0)], 0, 4, 4)
    [5.0, 5.0, 7.0, 7.0]
    """
    values, current, position = [], 0.0, 0
    for part in range(1, count + 1):
        until = start + (end - start) * part / count
        while position < len(steps) and steps[position][0] <= until:
            current = steps[position][1]
            position += 1
        values.append(current)
    return values
