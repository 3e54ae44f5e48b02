from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sash.plan.options import Mode
from sash.plan.types import BIGINT, STRING, Field
from sash.spark.folders import Folder
from sash.spark.ledger import Ledger
from sash.spark.outbox import Outbox
from sash.spark.sinks.base import OutputSpec

SCHEMA = (Field("k", STRING), Field("n", BIGINT))
Row = tuple[Any, ...]


def folder(path: Path) -> Folder:
    return Folder(None, str(path))  # type: ignore[arg-type]


def outbox(path: Path, limit: int = 1 << 20, mode: Mode = "changes", key: tuple[int, ...] | None = None) -> Outbox:
    return Outbox(folder(path), "a query", OutputSpec(SCHEMA, BIGINT, mode, key, "one"), limit)


def table(*rows: Row) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    types = [pa.string(), pa.int64(), pa.string(), pa.int64()]
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["_op", "_ts", "k", "n"])


def delivered(box: Outbox) -> list[tuple[int, list[Row]]]:
    found: list[tuple[int, list[Row]]] = []
    box.deliver(lambda rows, number: found.append((number, [tuple(row.values()) for row in rows.to_pylist()])))
    return found


def test_batches_are_delivered_in_order_under_their_numbers(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    box.add(9, table(("+", 1, "a", 1)))
    box.add(10, table())
    box.add(11, table(("-", 2, "a", 1), ("+", 2, "a", 2)))
    box.add(11, table(("-", 2, "a", 1), ("+", 2, "a", 2)))
    again = outbox(tmp_path)
    assert len(again) == 2
    assert delivered(again) == [(9, [("+", 1, "a", 1)]), (11, [("-", 2, "a", 1), ("+", 2, "a", 2)])]
    assert delivered(outbox(tmp_path)) == []


def test_a_sink_that_fails_again_keeps_what_it_has_not_got(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    for number in range(3):
        box.add(number, table(("+", number, "a", number)))
    written: list[int] = []

    def write(_: pa.Table, number: int) -> None:
        if number == 1:
            raise ConnectionError
        written.append(number)

    with pytest.raises(ConnectionError):
        box.deliver(write)
    assert written == [0]
    assert [number for number, _ in delivered(outbox(tmp_path))] == [1, 2]


def test_past_the_bound_the_net_changes_are_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    box = outbox(tmp_path, limit=1)
    box.add(3, table(("+", 1, "first", 0)))
    for number in range(4, 40):
        box.add(number, table(("+", number, "a", number), *([("-", number, "a", number - 1)] if number > 4 else [])))
    assert box.netted
    assert len(box) == 2
    assert delivered(box) == [(3, [("+", 1, "first", 0)]), (39, [("+", 39, "a", 39)])]
    assert caplog.text.count("net difference") == 1


@pytest.mark.parametrize("mode", ["changes", "upsert"])
def test_differential_what_is_delivered_folds_to_the_answer(tmp_path: Path, mode: Mode) -> None:
    rnd, box = random.Random(1), outbox(tmp_path, 3000, mode, (0,) if mode == "upsert" else None)
    answer: dict[str, int] = {}
    for number in range(60):
        rows: list[Row] = []
        for key in rnd.sample("abcdefgh", 3):
            old, new = answer.pop(key, None), rnd.choice([None, number])
            if old is not None and (mode == "changes" or new is None):
                rows.append(("-", number, key, old))
            if new is not None:
                rows.append(("+", number, key, new))
                answer[key] = new
        box.add(number, table(*rows))
        box = outbox(tmp_path, 3000, mode, (0,) if mode == "upsert" else None) if number % 7 == 0 else box
    folded: Counter[Row] = Counter()
    latest: dict[str, int] = {}
    for _, rows in delivered(box):
        for op, _, key, value in rows:
            folded[key, value] += 1 if op == "+" else -1
            latest.pop(key, None)
            if op == "+":
                latest[key] = value
    assert (latest if mode == "upsert" else {k: v for (k, v), count in folded.items() if count}) == answer
    assert mode == "upsert" or all(count in (0, 1) for count in folded.values())


def test_a_writer_that_dies_while_it_nets_leaves_each_change_once(tmp_path: Path) -> None:
    box = outbox(tmp_path)
    for number in range(5):
        box.add(number, table(("+", number, "a", number)))
    kept = {path: path.read_bytes() for path in (tmp_path / "a%20query").iterdir()}
    box._net()
    for path, data in kept.items():
        path.write_bytes(data)
    found = delivered(outbox(tmp_path))
    assert [number for number, _ in found] == [0, 4]
    assert sorted(row[3] for _, rows in found for row in rows) == [0, 1, 2, 3, 4]


def test_a_ledger_remembers_who_has_the_batch(tmp_path: Path) -> None:
    ledger = Ledger(folder(tmp_path))
    assert ledger.begin(7) == frozenset()
    ledger.commit("a")
    ledger.commit("b\n")
    with (tmp_path / "7").open("a") as file:
        file.write('"half')
    again = Ledger(folder(tmp_path))
    assert again.begin(7) == {"a", "b\n"}
    again.commit("c")
    assert Ledger(folder(tmp_path)).begin(7) == {"a", "b\n", "c"}
    assert again.begin(8) == frozenset()
    assert [path.name for path in tmp_path.iterdir()] == []
