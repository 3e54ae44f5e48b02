"""Set operators, as sets and as bags."""

from __future__ import annotations

from tests.oracle.case import SCHEMA, case
from tests.oracle.duck import View

_OPERATORS = ("UNION ALL", "UNION", "EXCEPT ALL", "EXCEPT", "INTERSECT ALL", "INTERSECT")


def _id(operator: str) -> str:
    return operator.lower().replace(" ", "_")


CASES = (
    *(
        case(f"{_id(operator)}_key", f"SELECT k FROM {{s}} {operator} SELECT k FROM {{r}}", {"s": 5, "r": 5})
        for operator in _OPERATORS
    ),
    *(
        case(
            f"{_id(operator)}_rows",
            f"SELECT k, g, v, x FROM {{s}} {operator} SELECT k, g, v, x FROM {{r}}",
            {"s": 6, "r": 3},
        )
        for operator in _OPERATORS
    ),
    *(
        case(
            f"{_id(operator)}_of_itself",
            f"SELECT g FROM {{s9}} {operator} SELECT g FROM {{s}}",
            {"s": 3, "s9": View("s", 9)},
        )
        for operator in _OPERATORS
    ),
    *(
        case(
            f"{_id(operator)}_silent_stream",
            f"SELECT k FROM {{s}} {operator} SELECT k FROM {{r}}",
            {"s": 5, "r": 5},
            streams={"r": []},
            schemas={"r": SCHEMA},
        )
        for operator in ("EXCEPT", "INTERSECT ALL", "UNION")
    ),
    case(
        "minus",
        "",
        {"s": 5, "r": 3},
        sash="SELECT k, g FROM {s} MINUS SELECT k, g FROM {r}",
        duck="SELECT k, g FROM {s} EXCEPT SELECT k, g FROM {r}",
    ),
    case(
        "minus_all",
        "",
        {"s": 5, "r": 3},
        sash="SELECT k FROM {s} MINUS ALL SELECT k FROM {r}",
        duck="SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}",
    ),
    case(
        "union_of_filtered",
        "SELECT k, v FROM {s} WHERE v > 3 UNION ALL SELECT k, v FROM {r} WHERE v > 3",
        {"s": 5, "r": 7},
    ),
    case(
        "three_unions",
        "SELECT k FROM {s} UNION ALL SELECT k FROM {r} UNION ALL SELECT v FROM {q}",
        {"s": 5, "r": 3, "q": 4},
    ),
    case(
        "except_twice",
        "(SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) EXCEPT ALL SELECT k FROM {q}",
        {"s": 6, "r": 3, "q": 3},
    ),
    case(
        "union_then_except",
        "(SELECT k FROM {s} UNION SELECT k FROM {r}) EXCEPT SELECT k FROM {q}",
        {"s": 5, "r": 5, "q": 3},
    ),
    case(
        "intersect_slide",
        "SELECT k FROM {s} INTERSECT ALL SELECT k FROM {r}",
        {"s": View("s", 5, slide=2), "r": View("r", 6, slide=4)},
    ),
    case(
        "intersect_binds_more_tightly",
        "",
        {"s": 6, "r": 4, "q": 5},
        sash="SELECT k FROM {s} EXCEPT SELECT k FROM {r} UNION ALL SELECT k FROM {s} INTERSECT ALL SELECT k FROM {q}",
        duck="(SELECT k FROM {s} EXCEPT SELECT k FROM {r}) UNION ALL (SELECT k FROM {s} INTERSECT ALL SELECT k FROM {q})",
    ),
    case(
        "intersect_between_unions",
        "",
        {"s": 6, "r": 4, "q": 5},
        sash="SELECT k FROM {q} UNION ALL SELECT k FROM {s} INTERSECT SELECT k FROM {r} UNION SELECT v FROM {q}",
        duck="(SELECT k FROM {q} UNION ALL (SELECT k FROM {s} INTERSECT SELECT k FROM {r})) UNION SELECT v FROM {q}",
    ),
    case(
        "not_like",
        "SELECT k, g FROM {s} WHERE g NOT LIKE 'a%' UNION ALL SELECT k, g FROM {r} WHERE NOT g NOT ILIKE 'B'",
        {"s": 5, "r": 3},
    ),
)
