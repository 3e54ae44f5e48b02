"""Rows assigned to windows of time: with a declared window, which decides how long they are valid, and without one."""

from __future__ import annotations

from tests.oracle.case import Case, case, table
from tests.oracle.duck import View

_ROWS = table(
    "ts k v",
    *((1, 1, 10), (3, 2, 20), (4, 1, 5), (4, 1, 5), (5, None, 2), (9, 1, 1), (10, 2, 3), (11, 2, 2), (12, 1, None)),
    *((19, 1, 7), (27, 1, 8), (30, 2, 8), (31, 2, 4), (44, 1, 6)),
)
_OTHER = table("ts k v", (2, 1, 1), (4, 2, 2), (9, 1, 4), (10, 1, 8), (13, 2, 16), (20, 1, 32), (28, 1, 64), (44, 1, 2))
_STREAMS = {"s": _ROWS, "r": _OTHER}
_SCHEMA = "ts TIMESTAMP, k INT, v INT"


def _hop(view: str, size: int, step: int, *, opened: bool, origin: int = 0) -> str:
    """DuckDB: the rows of the view in every window that they are in; only in those that are open, if none is declared."""
    now = "AND w + size > getvariable('now')" if opened else ""
    return (
        f"(SELECT t.*, make_timestamp(w) AS window_start, make_timestamp(w + size) AS window_end FROM {view} AS t, "
        f"(SELECT range AS w, {size}000000 AS size FROM range({origin - 240}000000, 300000000, {step}000000)) "
        f"WHERE w <= epoch_us(t.ts) AND epoch_us(t.ts) < w + size {now})"
    )


def _cumulate(view: str, size: int, step: int, *, opened: bool) -> str:
    now = "AND w + n > getvariable('now')" if opened else ""
    return (
        f"(SELECT t.*, make_timestamp(w) AS window_start, make_timestamp(w + n) AS window_end FROM {view} AS t, "
        f"(SELECT range AS w FROM range(-240000000, 300000000, {size}000000)), "
        f"(SELECT range AS n FROM range({step}000000, {size}000001, {step}000000)) "
        f"WHERE w <= epoch_us(t.ts) AND epoch_us(t.ts) < w + n AND epoch_us(t.ts) < w + {size}000000 {now})"
    )


_GROUPED = (
    "SELECT window_start, window_end, k, COUNT(*) AS n, SUM(v) AS t FROM {rows} GROUP BY window_start, window_end, k"
)


def _table_function(name: str, view: View, sash: str, duck: str) -> list[Case]:
    given = {"streams": _STREAMS, "schemas": {"s": _SCHEMA}}
    plain = "SELECT k, v, window_start, window_end FROM {rows}"
    return [
        case(f"{name}_{kind}", text, {"s": view}, sash=text.format(rows=sash), duck=text.format(rows=duck), **given)
        for kind, text in (("grouped", _GROUPED), ("plain", plain))
    ]


def _windows() -> list[Case]:
    tumble = "TABLE(TUMBLE(TABLE {s}, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
    hop = "HOP(TABLE {s}, DESCRIPTOR(ts), INTERVAL '4' SECONDS, INTERVAL '12' SECONDS)"
    odd = "TABLE(HOP(DATA => TABLE {s}, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '4' SECONDS, SIZE => INTERVAL '10' SECONDS))"
    cumulate = "CUMULATE(TABLE {s}, DESCRIPTOR(ts), INTERVAL '3' SECONDS, INTERVAL '12' SECONDS)"
    declared = {"range": View("s", 7), "sampled": View("s", 8, 3), "rows": View("s", rows=4), "endless": View("s")}
    made = [
        *_table_function("tumble_open", View("s", aligned=(10, 10)), tumble, _hop("{s}", 10, 10, opened=True)),
        *_table_function("hop_open", View("s", aligned=(12, 4)), hop, _hop("{s}", 12, 4, opened=True)),
        *_table_function("hop_uneven_open", View("s", aligned=(10, 4)), odd, _hop("{s}", 10, 4, opened=True)),
        *_table_function(
            "cumulate_open", View("s", aligned=(12, 12, 3)), cumulate, _cumulate("{s}", 12, 3, opened=True)
        ),
    ]
    for kind, view in declared.items():
        made += _table_function(f"tumble_{kind}", view, tumble, _hop("{s}", 10, 10, opened=False))
        made += _table_function(f"hop_{kind}", view, hop, _hop("{s}", 12, 4, opened=False))
        made += _table_function(f"cumulate_{kind}", view, cumulate, _cumulate("{s}", 12, 3, opened=False))
    return made


def _function() -> list[Case]:
    """Spark's window(...)."""
    given = {"streams": _STREAMS, "schemas": {"s": _SCHEMA}}
    made = []
    for kind, view in {"open": View("s", aligned=(12, 4)), "declared": View("s", 9)}.items():
        rows = _hop("{s}", 12, 4, opened=kind == "open")
        made += [
            case(
                f"window_{kind}",
                "",
                {"s": view},
                sash="SELECT window.start AS a, window(ts, '12 seconds', '4 seconds').end AS b, MAX(v) AS m FROM {s} "
                "WHERE k > 0 GROUP BY window(ts, '12 seconds', '4 seconds') HAVING COUNT(*) > 1",
                duck=f"SELECT window_start AS a, window_end AS b, MAX(v) AS m FROM {rows} WHERE k > 0 "
                "GROUP BY window_start, window_end HAVING COUNT(*) > 1",
                **given,
            ),
            case(
                f"window_rows_{kind}",
                "",
                {"s": view},
                sash="SELECT k, window(ts, '12 seconds', '4 seconds').start AS a, "
                "window_time(window(ts, '12 seconds', '4 seconds')) AS t FROM {s}",
                duck=f"SELECT k, window_start AS a, window_end - INTERVAL 1 MICROSECOND AS t FROM {rows}",
                **given,
            ),
        ]
    origin = _hop("{s}", 10, 10, opened=False, origin=2)
    made.append(
        case(
            "window_with_start",
            "",
            {"s": View("s", 9)},
            sash="SELECT window.start AS a, COUNT(*) AS n FROM {s} GROUP BY window(ts, '10 seconds', '10 seconds', '2 seconds')",
            duck=f"SELECT window_start AS a, COUNT(*) AS n FROM {origin} GROUP BY ALL",
            **given,
        )
    )
    return made


def _above() -> list[Case]:
    """Operators above the assignment, and assignments above others."""
    both = {"s": _SCHEMA, "r": _SCHEMA}
    views = {"s": View("s", aligned=(10, 10)), "r": View("r", aligned=(10, 10))}
    tumble = "TABLE(TUMBLE(TABLE {%s}, DESCRIPTOR(ts), INTERVAL '10' SECONDS))"
    left, right = (_hop(f"{{{name}}}", 10, 10, opened=True) for name in ("s", "r"))
    joined = (
        "SELECT a.k, a.v, b.v AS w, a.window_end FROM {left} AS a JOIN {right} AS b "
        "ON a.k = b.k AND a.window_start = b.window_start"
    )
    hop = "HOP(TABLE {s}, DESCRIPTOR(ts), INTERVAL 5 SECONDS, INTERVAL 10 SECONDS)"
    opened = _hop("{s}", 10, 5, opened=True)
    given = {"streams": _STREAMS}
    single = {"s": View("s", aligned=(10, 5))}
    texts = {
        "distinct": "SELECT DISTINCT window_start, k FROM {rows}",
        "top": "SELECT window_end, v, k FROM {rows} ORDER BY v DESC, window_end LIMIT 3",
        "max": "SELECT MAX(n) AS m FROM (SELECT window_end, COUNT(*) AS n FROM {rows} GROUP BY window_end)",
        "filter": "SELECT window_end, SUM(v) AS t FROM {rows} WHERE window_end > TIMESTAMP '1970-01-01 00:00:10' AND v > 1 "
        "GROUP BY window_end",
        "median": "SELECT window_start, MEDIAN(v) AS m FROM {rows} GROUP BY window_start",
    }
    return [
        case(
            "tumble_join",
            "",
            views,
            sash=joined.format(left=tumble % "s", right=tumble % "r"),
            duck=joined.format(left=left, right=right),
            schemas=both,
            **given,
        ),
        *(
            case(
                f"hop_{name}",
                "",
                single,
                sash=text.format(rows=hop),
                duck=text.format(rows=opened),
                schemas={"s": _SCHEMA},
                empties=name != "max",
                **given,
            )
            for name, text in texts.items()
        ),
        case(
            "tumble_over_subquery",
            "",
            {"s": View("s", aligned=(10, 10))},
            sash="SELECT k, window.start AS a, COUNT(*) AS n FROM (SELECT ts AS at, k FROM {s} WHERE v > 2) "
            "GROUP BY k, window(at, '10 seconds')",
            duck=f"SELECT k, window_start AS a, COUNT(*) AS n FROM {_hop('{s}', 10, 10, opened=True)} WHERE v > 2 GROUP BY ALL",
            schemas={"s": _SCHEMA},
            **given,
        ),
    ]


CASES = (*_windows(), *_function(), *_above())
