"""Random queries over windows of time and sessions, whose answers are those of open windows, or are emitted at their ends."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.case import Case
from tests.oracle.duck import Row, View
from tests.oracle.strategies import streams

_SCHEMA = "ts TIMESTAMP, k BIGINT, g STRING, v BIGINT, x DOUBLE"
_SECOND = 1_000_000
_COUNTED = "COUNT(*) AS n, MAX(v) AS m, CAST(SUM(v) AS BIGINT) AS t"


@st.composite
def time_window_cases(draw: st.DrawFn) -> Case:
    """Windows of HOP or sessions, by key or not: those that are open, or each once at its end."""
    rows = draw(streams(12))
    return draw(st.sampled_from((_hops, _sessions)))(draw, rows)


def _hops(draw: st.DrawFn, rows: list[Row]) -> Case:
    """Rows of windows, or aggregates of them."""
    step = draw(st.integers(1, 5))
    size = step * draw(st.integers(1, 3)) + draw(st.sampled_from((0, 0, 1)))
    emitted = draw(st.booleans())
    bound = "w + size <= getvariable('now')" if emitted else "w + size > getvariable('now')"
    assigned = (
        "(SELECT t.*, make_timestamp(w) AS window_start, make_timestamp(w + size) AS window_end FROM w AS t, "
        f"(SELECT range AS w, {size * _SECOND} AS size FROM range({-40 * step * _SECOND}, {400 * _SECOND}, {step * _SECOND})) "
        f"WHERE w <= epoch_us(t.ts) AND epoch_us(t.ts) < w + size AND {bound})"
    )
    source = f"HOP(TABLE s, DESCRIPTOR(ts), INTERVAL '{step}' SECONDS, INTERVAL '{size}' SECONDS)"
    text = draw(
        st.sampled_from(
            (
                f"SELECT window_start, window_end, k, {_COUNTED} FROM {{rows}} GROUP BY window_start, window_end, k",
                f"SELECT window_end, {_COUNTED} FROM {{rows}} WHERE k < 3 GROUP BY window_end",
                "SELECT window_end, k, v, g FROM {rows} WHERE v > 0",
                "SELECT DISTINCT window_end, g FROM {rows}",
            )
        )
    )
    ends = {start + size for row in rows for start in range(row["ts"] - size + 1, row["ts"] + 1) if not start % step}
    return _case(rows, text.format(rows=source), text.format(rows=assigned), ends, emitted=emitted)


def _sessions(draw: st.DrawFn, rows: list[Row]) -> Case:
    """Sessions of the rows so far, of those in a window, or each once at its end."""
    gap = draw(st.sampled_from((1, 2, 3, 4, 10)))
    window = draw(st.sampled_from((None, None, 2, 5, 12)))
    emitted = window is None and draw(st.booleans())
    keyed = draw(st.booleans())
    partition = "PARTITION BY k" if keyed else ""
    key, group = ("k, ", "k, ") if keyed else ("", "")
    fields = f"session_window.start AS a, session_window(ts, '{gap} seconds').end AS b"
    sash = (
        f"SELECT {key}{fields}, {_COUNTED} FROM s{'' if window is None else f' [RANGE {window} SECONDS]'} "
        f"GROUP BY {group}session_window(ts, '{gap} seconds')"
    )
    islands = (
        f"(SELECT *, SUM(fresh) OVER ({partition} ORDER BY ts ROWS UNBOUNDED PRECEDING) AS island FROM (SELECT *, CASE WHEN "
        f"ts - LAG(ts) OVER ({partition} ORDER BY ts) <= INTERVAL {gap} SECONDS THEN 0 ELSE 1 END AS fresh FROM w))"
    )
    end = f"MAX(ts) + INTERVAL {gap} SECONDS"
    bound = f"HAVING epoch_us({end}) {'<=' if emitted else '>'} getvariable('now')" if window is None else ""
    duck = f"SELECT {key}MIN(ts) AS a, {end} AS b, {_COUNTED} FROM {islands} GROUP BY {group}island {bound}"
    ends = {row["ts"] + gap + more for row in rows for more in (0, 1)}
    return _case(rows, sash, duck, ends, emitted=emitted, window=window)


def _case(rows: list[Row], sash: str, duck: str, ends: set[int], *, emitted: bool, window: int | None = None) -> Case:
    """The case; what is emitted stays for ever."""
    return Case(
        "time windows",
        f"{sash} EMIT ON WINDOW CLOSE" if emitted else sash,
        duck,
        {"s": rows},
        {"w": View("s", window, edges=tuple(sorted(ends)))},
        schemas={"s": _SCHEMA},
    )
