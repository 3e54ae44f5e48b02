"""Alike queries that run as one give each query's own answers: at every instant, or netted at the end of every batch."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest

from tests.alike.runs import answers_alone, run_alike

SHAPES = {
    "equality below GROUP BY": "SELECT account, SUM(qty) AS t FROM s [RANGE 40 MICROSECONDS] WHERE account = {a} GROUP BY account",
    "equality below a global aggregate": "SELECT COUNT(*) AS n, SUM(qty) AS t, MAX(item) AS m FROM s [RANGE 40 MICROSECONDS] WHERE account = {a}",
    "HAVING of a global aggregate": "SELECT COUNT(*) + 1 AS n FROM s [RANGE 40 MICROSECONDS] WHERE account = {a} HAVING COUNT(*) < {b}",
    "fixed HAVING of a global aggregate": "SELECT COUNT(qty) AS n FROM s [RANGE 40 MICROSECONDS] WHERE account = {a} HAVING COUNT(*) > 1",
    "equality of two columns": "SELECT item, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS] WHERE account = {a} AND qty = {b} GROUP BY item",
    "equality of an expression": "SELECT item, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS] WHERE upper(item) = '{t}' GROUP BY item",
    "threshold in HAVING": "SELECT item, SUM(qty) AS t FROM s [RANGE 40 MICROSECONDS] GROUP BY item HAVING SUM(qty) > {b}",
    "threshold of doubles": "SELECT item, AVG(price) AS t FROM s [RANGE 40 MICROSECONDS] GROUP BY item HAVING AVG(price) <= {b}.5",
    "threshold of decimals": "SELECT item, SUM(cost) AS t FROM s [RANGE 40 MICROSECONDS] GROUP BY item HAVING SUM(cost) >= {b}.25",
    "threshold of text": "SELECT item, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS] GROUP BY item HAVING MIN(item) > '{u}'",
    "threshold of an expression": "SELECT item, t FROM (SELECT item, SUM(qty) AS t, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS] GROUP BY item) WHERE t / n < {b}",
    "interval": "SELECT item, SUM(qty) AS t FROM s [RANGE 40 MICROSECONDS] GROUP BY item HAVING SUM(qty) BETWEEN {a} AND {b}",
    "equality and threshold": "SELECT item, MAX(qty) AS t, {b} AS level FROM s [RANGE 40 MICROSECONDS] WHERE account = {a} GROUP BY item HAVING MAX(qty) >= {b}",
    "plain rows": "SELECT item, qty FROM s [RANGE 40 MICROSECONDS] WHERE account = {a}",
    "plain rows above a level": "SELECT item FROM s [RANGE 40 MICROSECONDS] WHERE qty > {b}",
    "either": "SELECT item FROM s [RANGE 40 MICROSECONDS] WHERE account = {a} OR qty = {b}",
    "ROWS": "SELECT item, qty FROM s [ROWS 5] WHERE account = {a}",
    "SLIDE": "SELECT account, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS SLIDE 7 MICROSECONDS] WHERE account = {a} GROUP BY account",
    "DISTINCT": "SELECT DISTINCT item FROM s [RANGE 40 MICROSECONDS] WHERE account = {a}",
    "COUNT DISTINCT": "SELECT COUNT(DISTINCT item) AS n FROM s [RANGE 40 MICROSECONDS] WHERE account = {a}",
    "join with a table": "SELECT kind, SUM(qty) AS t FROM s [RANGE 40 MICROSECONDS] JOIN items ON s.item = items.item WHERE account = {a} GROUP BY kind",
    "table's column": "SELECT s.item, qty FROM s [RANGE 40 MICROSECONDS] JOIN items ON s.item = items.item WHERE kind = '{t}'",
    "left join with a table": "SELECT s.item, kind FROM s [RANGE 40 MICROSECONDS] LEFT JOIN items ON s.item = items.item WHERE account = {a}",
    "except above GROUP BY": "SELECT item FROM (SELECT item, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS] GROUP BY item EXCEPT SELECT item, COUNT(*) AS n FROM s [RANGE 10 MICROSECONDS] GROUP BY item) WHERE n >= {a}",
    "top k": "SELECT item, n FROM (SELECT item, COUNT(*) AS n FROM s [RANGE 40 MICROSECONDS] GROUP BY item ORDER BY n DESC LIMIT 2) WHERE n > {a}",
}

UNTIL = 260


def random_rows(random: random.Random) -> dict[str, Any]:
    ts, rows = 0, []
    for _ in range(60):
        ts += random.choice((0, 1, 3, 6, 20)) if random.random() < 0.9 else 30
        rows.append(
            {
                "ts": ts,
                "account": random.choice((0, 1, 2, 3, None)),
                "item": random.choice("abcd"),
                "qty": random.choice((0, 1, 2, 5, None)),
                "price": random.choice((-0.0, 0.0, 1.5, 2.25, float("nan"), None)),
                "cost": random.choice((Decimal("0.25"), Decimal("1.50"), Decimal("2.25"), None)),
            }
        )
    return {
        "streams": {"s": [row for row in rows if row["ts"] < 200]},
        "relations": {"items": [{"item": "a", "kind": "A"}, {"item": "b", "kind": "B"}, {"item": "c", "kind": "A"}]},
        "keys": {"items": ["item"]},
        "schemas": {"s": "ts BIGINT, account INT, item STRING, qty BIGINT, price DOUBLE, cost DECIMAL(10, 2)"},
    }


def random_queries(shape: str, random: random.Random) -> list[str]:
    numbers = [(a, b) for a in range(4) for b in range(4)]
    random.shuffle(numbers)
    made = [shape.format(a=a, b=b, t="ABCX"[a], u="ab0d"[b]) for a, b in numbers]
    return list(dict.fromkeys(made))[:6]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_every_query_has_its_own_answers(name: str, shards: int) -> None:
    chance = random.Random(f"{name} {shards}")
    given, queries = random_rows(chance), random_queries(SHAPES[name], chance)
    run = run_alike(queries, given, UNTIL, batch=chance.choice((7, 25, None)), shards=shards)
    for number, sql in enumerate(queries):
        alone = answers_alone(sql, given, UNTIL)
        for ts in sorted(run.instants(number) | alone.instants(0)):
            assert run.at(number, ts) == alone.at(0, ts), f"{sql} at {ts}"


@pytest.mark.parametrize("net", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_queries_are_added_and_removed_while_running(name: str, net: bool) -> None:
    chance = random.Random(f"{name} {net} changing")
    given, queries = random_rows(chance), random_queries(SHAPES[name], chance)
    start = {number: chance.randrange(4) for number in range(len(queries))}
    stop = {number: start[number] + chance.choice((1, 2, 99)) for number in start}
    added = {batch: [n for n in start if start[n] == batch] for batch in range(9)}
    removed = {batch: [n for n in stop if stop[n] == batch] for batch in range(9)}
    run = run_alike(queries, given, UNTIL, batch=10, added=added, removed=removed, net=net)
    clocks = [0, *run.clocks]
    for number, sql in enumerate(queries):
        alone = answers_alone(sql, given, UNTIL)
        first = clocks[start[number]]
        last = clocks[stop[number]] if stop[number] < len(clocks) - 1 else UNTIL + 1
        every = {first - 1, first, last - 1, min(last, UNTIL)} | run.instants(number) | alone.instants(0)
        for ts in sorted({clock - 1 for clock in clocks} if net else every):
            own = alone.at(0, ts) if first <= ts < last else {}
            assert run.at(number, ts) == own, f"{sql} at {ts}: there from {first} to {last}"


def test_nothing_is_kept_once_the_stream_has_drained_and_the_queries_are_gone() -> None:
    chance = random.Random(5)
    for name in ("plain rows", "threshold in HAVING", "equality below a global aggregate"):
        given, queries = random_rows(chance), random_queries(SHAPES[name], chance)
        everyone = range(len(queries))
        run = run_alike(queries, given, UNTIL, batch=10, added={0: everyone}, removed={1: everyone})
        assert run.state_rows == 0, name
