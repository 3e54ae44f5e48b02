from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sash.cli.demo.history import AnswerHistory, Change


def write(folder: Path, batch: int, *changes: Change) -> None:
    (folder / f"batch={batch}").mkdir()
    for number, (at, op, row) in enumerate(changes):
        columns = {"_op": [op], "_ts": pa.array([at], pa.timestamp("us", tz="UTC")), "a": [row[0]], "n": [row[1]]}
        pq.write_table(pa.table(columns), folder / f"batch={batch}" / f"part-{number}.parquet")


def test_batches_are_folded_up_to_the_one_given(tmp_path: Path) -> None:
    write(tmp_path, 0, (5, "+", ("x", 1)))
    write(tmp_path, 2, (8, "+", ("x", 2)), (8, "-", ("x", 1)))
    write(tmp_path, 3, (9, "-", ("x", 2)))
    history = AnswerHistory(tmp_path)
    assert (history.as_of, history.at(5)) == (None, ())
    history.advance(0, 6)
    assert (history.as_of, history.at(4), history.at(5), history.at(100)) == (5, (), (("x", 1),), (("x", 1),))
    history.advance(2, 9)  # batch 1 brought no changes
    assert (history.batch, history.as_of, history.instants) == (2, 8, [5, 8])
    assert history.since(7) == [(5, (("x", 1),)), (8, (("x", 2),))]
    assert history.since(8) == [(8, (("x", 2),))]
    assert history.entered == {("x", 2): 8}
    history.advance(3, 10)
    assert history.at(9) == ()


def test_the_clock_never_goes_back() -> None:
    history = AnswerHistory(Path("nowhere"))
    history.advance(0, None)
    history.advance(1, 7)
    history.advance(2, None)
    history.advance(3, 6)
    assert (history.batch, history.clock) == (3, 7)


def test_a_retraction_of_a_row_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ValueError, match="not in the answer"):
        AnswerHistory(Path("nowhere")).apply([(1, "-", ("x", 1))])
