from __future__ import annotations

from pathlib import Path

import pytest

from sash.errors import OptionError
from sash.history.limits import HistoryLimits
from tests.history.rings import WrittenHistory, changes, kept, listed, rows


def tea(n: int) -> dict[str, object]:
    return {"item": "tea", "n": n}


def test_the_answer_at_every_instant_is_that_of_the_changes_up_to_it(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path).open(fresh=True)
    kept_by.batch(0, 10, {"q": changes(("+", 1, "tea", 1), ("-", 5, "tea", 1), ("+", 5, "tea", 2))})
    kept_by.batch(1, 20, {"q": changes(("+", 12, "jam", 1), ("-", 15, "tea", 2))})
    ring = kept_by.settled()
    assert rows(ring, at=1) == [tea(1)]
    assert rows(ring, at=5) == rows(ring, at=11) == [tea(2)]
    assert rows(ring, at=14) == [{"item": "jam", "n": 1}, tea(2)]
    assert rows(ring) == rows(ring, at=19) == [{"item": "jam", "n": 1}]
    assert "not yet known" in str(rows(ring, at=20))
    assert rows(ring, at=0) == []
    assert ring.position("q") == (1, 2)
    assert listed(ring) == [(0, 0, "tea"), (0, 1, "tea"), (0, 2, "tea"), (1, 0, "jam"), (1, 1, "tea")]
    assert listed(ring, after=(0, 2)) == [(0, 2, "tea"), (1, 0, "jam"), (1, 1, "tea")]
    assert listed(ring, after=(1, 2)) == []
    assert listed(ring, after=(9, 0)) is None
    kept_by.close()


def test_a_batch_that_is_not_committed_is_not_shown_and_a_repeated_one_appears_once(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(kept("q"), kept("r"), fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1)), "r": changes()})
    first.batch(1, 20, {"q": changes(("+", 11, "jam", 1)), "r": changes(("+", 12, "nut", 1))}, commit=False)
    assert listed(first.settled()) == [(0, 0, "tea")]
    first.close()
    again = WrittenHistory(tmp_path).open(kept("q"), kept("r"))
    again.batch(1, 20, {"q": changes(("+", 11, "jam", 1))}, done=["r"])  # the sink of r has the batch
    ring = again.settled()
    assert listed(ring) == [(0, 0, "tea"), (1, 0, "jam")]
    assert listed(ring, "r") == [(1, 0, "nut")]
    assert rows(ring, "r") == [{"item": "nut", "n": 1}]
    again.batch(2, 30, {"q": changes()})
    assert rows(again.settled(), at=25) == [{"item": "jam", "n": 1}, tea(1)]
    again.close()


def test_the_next_batch_tells_that_the_one_before_was_committed(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1))}, commit=False)
    first.settled()
    first.close()
    again = WrittenHistory(tmp_path).open()
    again.writer.begin(1)
    assert listed(again.settled()) == [(0, 0, "tea")]
    again.close()


def test_batches_that_are_missing_make_answers_unknown(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1))})
    first.settled()
    first.close()
    again = WrittenHistory(tmp_path).open()
    again.batch(2, 30, {"q": changes(("+", 21, "jam", 1))})
    ring = again.settled()
    assert "not known" in str(rows(ring))
    assert listed(ring, after=(0, 1)) is None
    assert listed(ring) == [(2, 0, "jam")]
    again.close()


def test_a_sink_that_had_its_batch_before_the_history_did_makes_its_query_unknown(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(kept("q"), kept("r"), fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1)), "r": changes()})
    first.settled()
    first.close()
    again = WrittenHistory(tmp_path).open(kept("q"), kept("r"))
    again.batch(1, 20, {"q": changes()}, done=["r"])
    ring = again.settled()
    assert rows(ring) == [tea(1)]
    assert "too many" in str(rows(ring, "r"))
    again.close()


def test_old_segments_go_and_answers_since_then_stay(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path, HistoryLimits(80, 1 << 20)).open(fresh=True)
    for number in range(40):
        before = [("-", 10 * number, "tea", number)] if number else []
        kept_by.now += 10
        kept_by.batch(number, 10 * number + 10, {"q": changes(*before, ("+", 10 * number, "tea", number + 1))})
        kept_by.settled()
    ring = kept_by.settled()
    assert rows(ring) == [tea(40)]
    assert rows(ring, at=365) == [tea(37)]
    assert "no longer kept" in str(rows(ring, at=5))
    assert listed(ring, after=(0, 0)) is None
    first, last = ring.span("q")
    assert first is not None
    assert last is not None
    assert 250_000_000 < first < 330_000_000
    assert last == 400_000_000 - 1
    kept_by.close()


def test_the_ring_stays_within_its_bytes(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path, HistoryLimits(1e9, 1 << 16)).open(fresh=True)
    for number in range(60):
        given = [("+", number, f"item {number} {place * 7919}", place) for place in range(100)]
        gone = [("-", number, f"item {number - 1} {place * 7919}", place) for place in range(100)] if number else []
        kept_by.batch(number, number + 1, {"q": changes(*gone, *given)})
    ring = kept_by.settled()
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1.3 * (1 << 16)
    assert len(rows(ring)) == 100
    assert listed(ring, after=(0, 0)) is None
    kept_by.close()


def test_what_is_too_large_is_lost_and_said_so(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path).open(fresh=True)
    kept_by.batch(0, 10, {"q": changes(("+", 1, "tea", 1))})
    kept_by.batch(1, 20, {"q": None})
    kept_by.batch(2, 30, {"q": changes(("+", 21, "jam", 1))})
    ring = kept_by.settled()
    assert "too many" in str(rows(ring))
    assert rows(ring, at=8) == [tea(1)]
    assert listed(ring, after=(0, 1)) is None
    assert listed(ring, after=(1, 0)) == [(2, 0, "jam")]
    kept_by.close()


def test_an_answer_by_key_is_that_after_a_batch(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path).open(kept(mode="upsert"), fresh=True)
    kept_by.batch(0, 10, {"q": changes(("+", 1, "tea", 1), ("+", 1, "jam", 1))})
    kept_by.batch(1, 20, {"q": changes(("+", 12, "tea", 2), ("-", 15, "jam", 1))})
    ring = kept_by.settled()
    assert rows(ring) == [tea(2)]
    found = ring.answer("q", 13_000_000)
    assert found.as_of == 10_000_000 - 1
    assert rows(ring, at=13) == [{"item": "jam", "n": 1}, tea(1)]
    kept_by.close()


def test_a_query_that_is_added_begins_empty_and_one_that_is_created_again_begins_anew(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path).open(kept("q"), fresh=True)
    kept_by.batch(0, 10, {"q": changes(("+", 1, "tea", 1))})
    kept_by.writer.set_queries([kept("q"), kept("r")])
    kept_by.batch(1, 20, {"q": changes(), "r": changes(("+", 11, "jam", 1))})
    ring = kept_by.settled()
    assert rows(ring, "r") == [{"item": "jam", "n": 1}]
    assert rows(ring, "q") == [tea(1)]
    kept_by.writer.set_queries([kept("r")])
    kept_by.writer.set_queries([kept("q"), kept("r")])
    kept_by.batch(2, 30, {"q": changes(("+", 21, "nut", 1)), "r": changes()})
    ring = kept_by.settled()
    assert rows(ring, "q") == [{"item": "nut", "n": 1}]
    assert listed(ring, "q", (0, 1)) is None
    kept_by.close()


def test_a_job_that_was_changed_goes_on_with_the_number_of_the_change(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1))}, commit=False)
    first.settled()
    first.close()
    again = WrittenHistory(tmp_path).open(kept("q"), kept("r"), switched=1)
    again.writer.add("r", 1, changes(("+", 10, "jam", 1)), None)
    again.batch(2, 20, {"q": changes(), "r": changes()})
    ring = again.settled()
    assert rows(ring, "q") == [tea(1)]
    assert rows(ring, "r") == [{"item": "jam", "n": 1}]
    assert listed(ring, "r") == [(1, 0, "jam")]
    again.close()


def test_a_torn_record_is_cut_off(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1))})
    first.settled()
    first.close()
    (segment,) = tmp_path.iterdir()
    with segment.open("ab") as file:
        file.write(segment.read_bytes()[:30])
    again = WrittenHistory(tmp_path).open()
    again.batch(1, 20, {"q": changes(("+", 11, "jam", 1))})
    assert listed(again.settled()) == [(0, 0, "tea"), (1, 0, "jam")]
    again.close()


def test_the_bounds_are_checked() -> None:
    assert HistoryLimits.parse("OFF") is None
    for wrong in ("soon", "0 seconds", "10 minutes, 1 KB", ""):
        with pytest.raises(OptionError, match="history"):
            HistoryLimits.parse(wrong)
