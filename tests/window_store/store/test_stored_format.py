"""Stores written by earlier versions: they open, answer from their stored summaries, and can be written further."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from sash.window_store.options import SnapshotOptions
from sash.window_store.queries import WindowQueries
from tests.window_store.feeding import Rows, counted, layout, table

ARCHIVE = Path(__file__).parent / "data" / "store_format_2.tar.gz"
STORED = {
    "SELECT k, COUNT(*) AS n, SUM(x) AS t, MEDIAN(v) AS m, MIN(x) AS low, LAST(v) AS l, APPROX_COUNT_DISTINCT(v) AS d "
    "FROM s GROUP BY k": [
        {"k": "a", "n": 7, "t": 37731090953.0763, "m": 1.0, "low": -452070922162.5041, "l": 0, "d": 4},
        {"k": "c", "n": 2, "t": 0.0, "m": 5.0, "low": 0.0, "l": None, "d": 1},
        {"k": "b", "n": 1, "t": 0.0, "m": 4.0, "low": 0.0, "l": 4, "d": 1},
        {"k": None, "n": 1, "t": 2.7345314799823086, "m": 5.0, "low": 2.7345314799823086, "l": 5, "d": 1},
    ],
    "SELECT k, x FROM s ORDER BY x DESC, k LIMIT 3": [
        {"k": "a", "x": 867124329361.2578},
        {"k": None, "x": 2.7345314799823086},
        {"k": "a", "x": 1.2389613599147093},
    ],
}
NUMBER_OF_ROWS = "SELECT COUNT(*) AS n, MIN(ts) AS first, MAX(ts) AS last FROM s"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Sub-windows 1 to 3 of 10 us, sub-window 0 expired but retained, 4 rows pending, batch 2 applied."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "store"


@pytest.mark.parametrize("sql", STORED)
def test_an_old_store_answers_from_its_summaries(store: Path, sql: str) -> None:
    queries = WindowQueries(1)
    queries.attach("s", store)
    (answer,) = queries.submit(sql, SnapshotOptions()).result()
    assert counted(answer.to_pylist()) == counted(STORED[sql])
    assert (answer.as_of, answer.update, answer.sub_windows_read, answer.summaries_built) == (40, 3, 0, 0)
    queries.close()


def test_an_old_store_is_written_further(store: Path) -> None:
    queries = WindowQueries(1)
    writer = queries.write(store, layout(10, 3, retain=1))
    late: Rows = [{"ts": 46, "k": "a", "v": 1, "x": 1.0}]
    timely: Rows = [{"ts": 49, "k": "a", "v": 1, "x": 1.0}]
    assert writer.apply(2, table(timely), 50) == 0
    assert writer.apply(3, table([*late, *timely]), 50) == 1
    assert (writer.manifest.late, [part.number for part in writer.manifest.expired]) == (1, [1])
    (answer,) = queries.submit(NUMBER_OF_ROWS, SnapshotOptions()).result()
    pending = writer.manifest.live[-1].rows
    assert answer.to_pylist() == [{"n": 6 + 2 + pending, "first": answer.to_pylist()[0]["first"], "last": 49}]
    assert answer.as_of == 50
    queries.close()
    writer.close()
