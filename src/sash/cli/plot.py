"""A plot in the terminal: a value over time, as columns of block characters.

>>> plot([(0, 1.0), (2, 4.0)], 0, 4, width=4, height=2)
[' ███', '▄███']
"""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▁▂▃▄▅▆▇█"


def plot(steps: Sequence[tuple[float, float]], start: float, end: float, *, width: int, height: int) -> list[str]:
    """The lines of the plot, from top to bottom. `steps` are (time, value) in order of time; a value holds until the next.

    A column shows the value at its end; the highest value fills the height.
    """
    values = sampled(steps, start, end, width)
    most = max([*values, 0.0])
    filled = [0 if most <= 0 else max(0, round(8 * height * value / most)) for value in values]
    return ["".join(_EIGHTHS[min(8, max(0, fill - 8 * row))] for fill in filled) for row in reversed(range(height))]


def sampled(steps: Sequence[tuple[float, float]], start: float, end: float, count: int) -> list[float]:
    """The values at the ends of `count` equal parts of the time from start to end.

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
