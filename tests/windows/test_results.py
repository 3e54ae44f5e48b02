from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from sash.errors import WindowError
from sash.plan.types import BIGINT, STRING, Field
from sash.windows.manifest import Layout
from sash.windows.queries import WindowQueries

SCHEMA = (Field("k", STRING), Field("n", BIGINT))
Change = tuple[int, int, str, int]


def made_up(seed: int) -> list[Change]:
    """Changes of a bag of rows, one per instant: a `-` takes back a row that is there."""
    rnd, there, changes = random.Random(seed), [], []
    for ts in range(200):
        if there and rnd.random() < 0.45:
            row = there.pop(rnd.randrange(len(there)))
            changes.append((ts, -1, *row))
        else:
            row = (rnd.choice("abc"), rnd.randrange(4))
            there.append(row)
            changes.append((ts, 1, *row))
    return changes


def at(changes: list[Change], instant: int) -> Counter[tuple[str, int]]:
    bag: Counter[tuple[str, int]] = Counter()
    for ts, sign, k, n in changes:
        if ts < instant:
            bag[k, n] += sign
    return +bag


@pytest.mark.parametrize("access", ["WS", "SS"])
@pytest.mark.parametrize("seed", range(3))
def test_an_answer_that_changes_is_asked_as_of_every_update(tmp_path: Path, seed: int, access: str) -> None:
    queries = WindowQueries(1)
    writer = queries.write(tmp_path, Layout("r", SCHEMA, "", "result", 10, 4))
    changes, rnd, start = made_up(seed), random.Random(seed), 0
    for batch in range(100):
        stop = min(len(changes), start + rnd.randrange(5, 35))
        columns = zip(*changes[start:stop], strict=True)
        arrays = [pa.array(list(c), f.type) for c, f in zip(columns, writer.layout.arrow, strict=True)]
        writer.apply(batch, pa.Table.from_arrays(arrays, schema=writer.layout.arrow), changes[stop - 1][0])
        start = stop
        if writer.manifest.live:
            _check(queries, changes, access)
        if stop == len(changes):
            break
    assert writer.manifest.base is not None
    with pytest.raises(WindowError, match="without a window"):
        queries.snapshot("SELECT k FROM r [RANGE 1 SECOND]")
    queries.close()
    writer.close()


def _check(queries: WindowQueries, changes: list[Change], access: str) -> None:
    sql = (
        "SELECT k, COUNT(*) AS c, SUM(n) AS t, MIN(n) AS low, MAX(n) AS high, COUNT(DISTINCT n) AS d FROM r GROUP BY k"
    )
    (answer,) = queries.snapshot(sql, access=access)
    rows = sorted(at(changes, answer.as_of).elements())
    expected = []
    for key in sorted({k for k, _ in rows}):
        values = [n for k, n in rows if k == key]
        row = {"c": len(values), "t": sum(values), "low": values[0], "high": values[-1], "d": len(set(values))}
        expected.append({"k": key, **row})
    assert sorted(answer.to_pylist(), key=lambda row: str(row["k"])) == expected
    (whole,) = queries.snapshot("SELECT k, n FROM r")
    assert Counter((row["k"], row["n"]) for row in whole.to_pylist()) == at(changes, whole.as_of)
    (best,) = queries.snapshot("SELECT k, n FROM r ORDER BY n DESC, k LIMIT 3")
    assert [(row["k"], row["n"]) for row in best.to_pylist()] == sorted(rows, key=lambda row: (-row[1], row[0]))[:3]
