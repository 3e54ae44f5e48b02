"""NOW() in WHERE: rows become valid, and cease to be, at times that are computed from them."""

from __future__ import annotations

from tests.oracle.case import Case, case, table
from tests.oracle.duck import View

_ROWS = table(
    "ts k due d",
    *((1, 1, 10, 3), (3, 2, 5, 1), (3, 2, 5, 1), (4, 1, None, None), (9, 1, 2, 2), (11, 2, 30, 5), (12, 1, 12, 0)),
    *((20, None, 21, 1), (21, 2, 35, 4), (25, 1, 25, 2)),
)
_SCHEMA = "ts TIMESTAMP, k INT, due TIMESTAMP, d INT"
_EDGES = tuple(range(60))
_NOW = "make_timestamp(getvariable('now'))"


def _case(name: str, text: str, view: View, *, empties: bool = True) -> Case:
    return case(
        f"now_{name}",
        "",
        {"s": view},
        sash=text,
        duck=text.replace("NOW()", _NOW).replace("CURRENT_TIMESTAMP", _NOW),
        streams={"s": _ROWS},
        schemas={"s": _SCHEMA},
        until=58,
        empties=empties,
    )


def _cases() -> list[Case]:
    conditions = {
        "since": "ts > NOW() - INTERVAL 4 SECONDS",
        "since_inclusive": "ts + INTERVAL 4 SECONDS >= NOW() AND ts <= NOW()",
        "until_a_column": "due > NOW()",
        "until_a_column_inclusive": "NOW() <= due",
        "from_a_column": "due <= CURRENT_TIMESTAMP",
        "after_a_column": "NOW() > due + INTERVAL 1 SECOND",
        "around_a_column": "due - INTERVAL 2 SECONDS <= NOW() AND NOW() < due + INTERVAL 3 SECONDS AND k > 0",
        "at_a_column": "due = NOW()",
    }
    made = []
    for kind, view in {"endless": View("s", edges=_EDGES), "range": View("s", 13, edges=_EDGES)}.items():
        for name, condition in conditions.items():
            made.append(_case(f"{name}_{kind}", f"SELECT k, d FROM {{s}} WHERE {condition}", view))
        grouped = "SELECT k, COUNT(*) AS n, MAX(d) AS m FROM {s} WHERE due > NOW() AND due - INTERVAL 6 SECONDS <= NOW() GROUP BY k"
        made.append(_case(f"grouped_{kind}", grouped, view))
        distinct = "SELECT DISTINCT k FROM (SELECT k FROM {s} WHERE due BETWEEN NOW() - INTERVAL 5 SECONDS AND NOW())"
        made.append(_case(f"distinct_{kind}", distinct, view))
    joined = (
        "SELECT a.k, a.d, b.d AS e FROM {s} AS a JOIN {s} AS b ON a.k = b.k "
        "WHERE a.ts > NOW() - INTERVAL 6 SECONDS AND b.ts > NOW() - INTERVAL 3 SECONDS"
    )
    made.append(_case("join", joined, View("s", edges=_EDGES)))
    late = "SELECT a.k, b.d FROM {s} AS a JOIN {s} AS b ON a.k = b.k WHERE a.due <= NOW() AND b.due > NOW()"
    made.append(_case("above_a_join", late, View("s", 9, edges=_EDGES)))
    sampled = View("s", 8, 3, edges=_EDGES)
    made.append(
        _case("sampled", "SELECT k, d FROM {s} WHERE ts > NOW() - INTERVAL 4 SECONDS AND due <= NOW()", sampled)
    )
    return made


CASES = tuple(_cases())
