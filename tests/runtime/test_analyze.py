"""EXPLAIN ANALYZE of replays; `python -m tests.physical.test_analyze` writes the golden files anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from sash.testing import Result, replay

GOLDEN = Path(__file__).parent / "golden"
QUERIES = {
    "analyze_group_by": "SELECT k, COUNT(*) AS n FROM s [RANGE 10 SECONDS] GROUP BY k",
    "analyze_negation_and_join": (
        "SELECT t.k FROM (SELECT k FROM s [RANGE 10 SECONDS] EXCEPT ALL SELECT k FROM r [RANGE 10 SECONDS]) AS t "
        "JOIN r [RANGE 5 SECONDS] AS c ON t.k = c.k"
    ),
}


def replayed(name: str) -> Result:
    rows = [{"ts": second, "k": second % 3} for second in range(60)]
    others = [{"ts": second, "k": second % 4} for second in range(0, 60, 3)]
    streams = {"s": rows, "r": others} if "FROM r" in QUERIES[name] else {"s": rows}
    return replay(QUERIES[name], streams=streams, unit="s", batch=10, shards=1)


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_is_explained_as_in_the_golden_file(name: str) -> None:
    assert replayed(name).explain() == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_ends_are_told_apart() -> None:
    """a lives from 0 to 10, but b's match takes it back at 3; the row of 20 ends by itself."""
    streams = {"s": [{"ts": 0, "k": 1}, {"ts": 20, "k": 1}], "r": [{"ts": 3, "k": 1}]}
    sql = "SELECT k FROM s [RANGE 10 SECONDS] EXCEPT ALL SELECT k FROM r [RANGE 10 SECONDS]"
    (counts,) = replay(sql, streams, unit="s").counts.values()
    assert (counts.given, counts.given_negative, counts.premature) == (4, 2, 1)
    assert (counts.expired, counts.messages) == (3, 0), "all rows of both inputs, and no time messages"


def test_rows_pushed_out_of_a_count_window_go_prematurely() -> None:
    rows = [{"ts": second, "k": 1} for second in range(5)]
    counts = replay("SELECT k FROM s [ROWS 2]", {"s": rows}, unit="s").counts
    (seen,) = [counted for name, counted in counts.items() if name.endswith("CountWindow")]
    assert seen.premature == 3


def test_the_estimate_of_a_multi_way_join_is_its_own() -> None:
    """Not that of the projection above it, which keeps nothing and compares nothing."""
    sql = (
        "SELECT a.k + b.v AS x, c.v AS y FROM s [RANGE 10 SECONDS] AS a JOIN r [RANGE 5 SECONDS] AS b ON a.k = b.k "
        "JOIN q [RANGE 2 SECONDS] AS c ON a.k = c.k"
    )
    rows = [{"ts": ts, "k": ts % 3, "v": ts} for ts in range(30)]
    result = replay(sql, dict.fromkeys("srq", rows), unit="s", shards=1)
    lines = result.explain().splitlines()
    (above,) = [n for n, line in enumerate(lines) if line.strip().startswith("Project k + v")]
    (join,) = [n for n, line in enumerate(lines) if line.strip().startswith("MultiJoin")]
    estimates = [next(line for line in lines[n:] if "estimate:" in line).strip() for n in (above, join)]
    assert estimates[0].endswith("/s; 0 kept")
    assert estimates[1].endswith("/s; 17,000 kept")
    assert estimates[0].split(";")[0] == estimates[1].split(";")[0]


if __name__ == "__main__":
    for written in QUERIES:
        (GOLDEN / f"{written}.txt").write_text(replayed(written).explain(), encoding="utf-8")
