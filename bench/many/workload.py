"""The queries that run together: a hundred mixed ones, and any number that differ in a constant only.

The mixed ones are drawn from nine shapes with a fixed seed, so that the list is the same in every run. Shapes are spread
evenly, so that any ten that follow each other are a mixture. Their constants suit 10,000 events per second and stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from random import Random
from typing import Literal

from bench.many.streams import ACCOUNTS, MEAN_AMOUNT, MERCHANTS

SEED = 17
WINDOWS = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60)
"""The lengths of the windows in seconds."""

BROAD = {
    "payments": (
        *("amount > 20", "amount > 35", "amount > 50", "amount < 15", "amount BETWEEN 10 AND 60", "items >= 6"),
        *("items <= 2", "merchant < 12", "merchant >= 60", "country = 0", "country > 4"),
    ),
    "clicks": (
        *("millis > 200", "millis > 500", "millis < 150", "millis BETWEEN 100 AND 400", "device = 0", "device >= 3"),
        *("page < 25", "page >= 200", "country = 0", "country > 6"),
    ),
}
"""Filters that between 13 % and 70 % of the events pass."""

NARROW = {
    "payments": (
        *("amount > 120", "amount > 150", "amount > 180", "amount > 200", "amount < 2", "amount BETWEEN 100 AND 120"),
        *("country = 2", "country = 7", "country IN (9, 11, 13)", "merchant = 3", "merchant BETWEEN 40 AND 50"),
        *("items = 9 AND amount > 40", "country = 0 AND amount > 90", "merchant < 5 AND items = 1"),
    ),
    "clicks": (
        *("millis > 1100", "millis > 1300", "millis > 1600", "millis < 20", "device = 7", "device = 5"),
        *("country = 3", "country = 8", "country IN (10, 12, 14)", "page = 4", "page BETWEEN 90 AND 110"),
        *("device = 2 AND millis > 600", "country = 0 AND millis > 700", "page < 5 AND device = 1"),
    ),
}
"""Filters that at most 10 % of the events pass."""

_KEYS = {"payments": ("merchant", "country"), "clicks": ("page", "country", "device")}
_VALUES = {"payments": ("amount", "items"), "clicks": ("millis",)}
_LOOKUPS = {
    "payments": (("merchants", "merchant", "category"), ("countries", "country", "region")),
    "clicks": (("pages", "page", "section"), ("countries", "country", "region")),
}
_STREAMS = ("payments", "clicks")


@dataclass(frozen=True)
class JobQuery:
    """A query, with what it consists of: its windows in seconds, its filters, each with its stream, and its kind of join."""

    name: str
    sql: str
    windows: tuple[int, ...]
    filters: tuple[tuple[str, str], ...] = ()
    join: Literal["none", "table", "streams"] = "none"


_Drawn = tuple[str, tuple[int, ...], tuple[tuple[str, str], ...], Literal["none", "table", "streams"]]


def _aggregates(draw: Random, stream: str) -> str:
    value = draw.choice(_VALUES[stream])
    first = draw.choice(("COUNT(*) AS n", f"SUM({value}) AS total", f"AVG({value}) AS mean"))
    second = draw.choice(
        ("", f", MAX({value}) AS most", f", MIN({value}) AS least", ", COUNT(DISTINCT account) AS accounts")
    )
    return first + second


def _where(stream: str, filters: tuple[str, ...]) -> tuple[str, tuple[tuple[str, str], ...]]:
    return f" WHERE {' AND '.join(filters)}" if filters else "", tuple((stream, one) for one in filters)


def _group(draw: Random) -> _Drawn:
    """Aggregates by a key, of all events or of those that pass a broad filter; by account, of those that pass a narrow one."""
    stream, window = draw.choice(_STREAMS), draw.choice(WINDOWS)
    key = draw.choice((*_KEYS[stream], "account", "account, country"))
    pool = NARROW[stream] if "account" in key else (*BROAD[stream], *NARROW[stream], None)
    chosen = draw.choice(pool)
    where, filters = _where(stream, () if chosen is None else (chosen,))
    sql = f"SELECT {key}, {_aggregates(draw, stream)} FROM {stream} [RANGE {window} SECONDS]{where} GROUP BY {key}"
    return sql, (window,), filters, "none"


def _having(draw: Random) -> _Drawn:
    """Accounts with more than so many events, of all events: an alert."""
    stream, window = draw.choice(_STREAMS), draw.choice(WINDOWS)
    least = draw.randint(4, 9) + window
    sql = f"SELECT account, COUNT(*) AS n FROM {stream} [RANGE {window} SECONDS] GROUP BY account HAVING COUNT(*) > {least}"
    return sql, (window,), (), "none"


def _total(draw: Random) -> _Drawn:
    stream, window = draw.choice(_STREAMS), draw.choice(WINDOWS)
    where, filters = _where(stream, (draw.choice((*BROAD[stream], *NARROW[stream])),))
    return (
        f"SELECT {_aggregates(draw, stream)} FROM {stream} [RANGE {window} SECONDS]{where}",
        (window,),
        filters,
        "none",
    )


def _distinct(draw: Random) -> _Drawn:
    stream, window = draw.choice(_STREAMS), draw.choice(WINDOWS)
    columns = draw.choice(("account", f"account, {_KEYS[stream][0]}"))
    where, filters = _where(stream, (draw.choice(NARROW[stream]),))
    return f"SELECT DISTINCT {columns} FROM {stream} [RANGE {window} SECONDS]{where}", (window,), filters, "none"


def _top(draw: Random) -> _Drawn:
    stream, window, most = draw.choice(_STREAMS), draw.choice(WINDOWS), draw.choice((3, 5, 10))
    key, value = _KEYS[stream][0], draw.choice(_VALUES[stream])
    where, filters = _where(stream, (draw.choice((*BROAD[stream], *NARROW[stream])),))
    sql = (
        f"SELECT {key}, SUM({value}) AS total FROM {stream} [RANGE {window} SECONDS]{where} GROUP BY {key} "
        f"ORDER BY total DESC, {key} LIMIT {most}"
    )
    return sql, (window,), filters, "none"


def _except(draw: Random) -> _Drawn:
    """Accounts in one stream that are not in the other."""
    first, second = draw.sample(_STREAMS, 2)
    shorter, longer = sorted(draw.sample(WINDOWS, 2))
    kept, left_out = draw.choice(NARROW[first]), draw.choice((*BROAD[second], *NARROW[second]))
    sql = (
        f"SELECT account FROM {first} [RANGE {shorter} SECONDS] WHERE {kept} EXCEPT "
        f"SELECT account FROM {second} [RANGE {longer} SECONDS] WHERE {left_out}"
    )
    return sql, (shorter, longer), ((first, kept), (second, left_out)), "none"


def _rows(draw: Random) -> _Drawn:
    stream, window = draw.choice(_STREAMS), draw.choice(WINDOWS)
    where, filters = _where(stream, (draw.choice(NARROW[stream]),))
    columns = f"account, {_KEYS[stream][0]}, {_VALUES[stream][0]}"
    return f"SELECT {columns} FROM {stream} [RANGE {window} SECONDS]{where}", (window,), filters, "none"


def _with_table(draw: Random) -> _Drawn:
    """Aggregates by a column of a table, or the events of accounts that are watched, the 2 % in a table."""
    stream, window = draw.choice(_STREAMS), draw.choice(WINDOWS)
    chosen = draw.choice((*BROAD[stream], *NARROW[stream]))
    filters = ((stream, chosen),)
    if draw.random() < 0.3:
        value = _VALUES[stream][0]
        sql = (
            f"SELECT s.account, COUNT(*) AS n, SUM(s.{value}) AS total FROM {_filtered(stream, window, chosen)} AS s "
            "JOIN watched AS w ON s.account = w.account GROUP BY s.account"
        )
        return sql, (window,), filters, "table"
    table, key, column = draw.choice(_LOOKUPS[stream])
    value = draw.choice(_VALUES[stream])
    made = draw.choice(("COUNT(*) AS n", f"SUM(s.{value}) AS total", f"AVG(s.{value}) AS mean, MAX(s.{value}) AS most"))
    sql = (
        f"SELECT t.{column}, {made} FROM {_filtered(stream, window, chosen)} AS s JOIN {table} AS t ON s.{key} = t.{key} "
        f"GROUP BY t.{column}"
    )
    return sql, (window,), filters, "table"


def _of_streams(draw: Random) -> _Drawn:
    """Payments and clicks of the same account: pairs, or their number by a column of either."""
    windows = draw.choice(WINDOWS), draw.choice(WINDOWS)
    chosen = draw.choice(NARROW["payments"]), draw.choice(NARROW["clicks"])
    sides = map(_filtered, _STREAMS, windows, chosen)
    joined = " JOIN ".join(f"{side} AS {alias}" for side, alias in zip(sides, ("p", "c"), strict=True))
    shape = draw.choice(
        (
            ("p.account, p.amount, c.page", ""),
            ("p.merchant, COUNT(*) AS n", " GROUP BY p.merchant"),
            ("c.device, SUM(p.amount) AS total", " GROUP BY c.device"),
            ("DISTINCT p.account", ""),
        )
    )
    sql = f"SELECT {shape[0]} FROM {joined} ON p.account = c.account{shape[1]}"
    return sql, windows, tuple(zip(_STREAMS, chosen, strict=True)), "streams"


def _filtered(stream: str, window: int, filter_: str) -> str:
    return f"(SELECT * FROM {stream} [RANGE {window} SECONDS] WHERE {filter_})"


_SHAPES: dict[Callable[[Random], _Drawn], int] = {
    _group: 30,
    _having: 10,
    _total: 10,
    _distinct: 8,
    _top: 8,
    _except: 6,
    _rows: 4,
    _with_table: 13,
    _of_streams: 11,
}
"""How many of the mixed queries have each shape."""

MIXED = sum(_SHAPES.values())
"""The number of mixed queries."""


def mixed(count: int) -> tuple[JobQuery, ...]:
    """The first so many of the mixed queries."""
    draw = Random(SEED)
    places = [((place + draw.random()) / share, shape) for shape, share in _SHAPES.items() for place in range(share)]
    shapes = [shape for _, shape in sorted(places, key=lambda placed: placed[0])]
    drawn: dict[str, _Drawn] = {}
    for shape in shapes:
        made = shape(draw)
        while made[0] in drawn:
            made = shape(draw)
        drawn[made[0]] = made
    return tuple(JobQuery(f"q{number:03d}", *made) for number, made in enumerate(list(drawn.values())[:count]))


_ALIKE_WINDOW = 30


def alike(count: int, rate: int) -> tuple[JobQuery, ...]:
    """So many queries that differ in a constant only: every other one in an equality, the others in a HAVING.

    About 1 % of the merchants pass each HAVING, two of 200: the thresholds lie between the expected totals of the third
    and the second merchant at this rate. So the rows of the first ones change in every batch, and some come and go.
    """
    second, third = (rate * _ALIKE_WINDOW * MEAN_AMOUNT * _share_of_merchant(rank) for rank in (1, 2))
    half = max(1, count // 2)
    return tuple(
        by_account(number // 2 * (ACCOUNTS // max(half, count - half)))
        if number % 2 == 0
        else _above(number // 2, third + (second - third) * (number // 2 + 0.5) / half)
        for number in range(count)
    )


def by_account(account: int) -> JobQuery:
    """The payments of one account."""
    sql = (
        f"SELECT COUNT(*) AS n, SUM(amount) AS total FROM payments [RANGE {_ALIKE_WINDOW} SECONDS] "
        f"WHERE account = {account}"
    )
    return JobQuery(f"account{account}", sql, (_ALIKE_WINDOW,), (("payments", f"account = {account}"),))


def _above(number: int, threshold: float) -> JobQuery:
    sql = (
        f"SELECT merchant, SUM(amount) AS total FROM payments [RANGE {_ALIKE_WINDOW} SECONDS] GROUP BY merchant "
        f"HAVING SUM(amount) > {threshold:.1f}"
    )
    return JobQuery(f"above{number}", sql, (_ALIKE_WINDOW,))


def _share_of_merchant(rank: int) -> float:
    return sqrt((rank + 1) / MERCHANTS) - sqrt(rank / MERCHANTS)
