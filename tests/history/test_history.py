from __future__ import annotations

from pathlib import Path

import pytest

from sash.errors import OptionError
from sash.history import writer
from sash.history.limits import HistoryLimits
from sash.time import SECOND
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


def test_the_answer_is_asked_before_and_after_each_batch(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path).open(fresh=True)
    for number, expected in enumerate(([], [], [tea(1)], [tea(1)], [])):
        given = {2: [("+", 21, "tea", 1)], 4: [("-", 41, "tea", 1)]}.get(number, [])
        assert rows(kept_by.settled()) in ([], [tea(1)])
        kept_by.batch(number, 10 * number + 10, {"q": changes(*given)})
        assert rows(kept_by.settled()) == rows(kept_by.ring) == expected
    kept_by.close()


def test_a_batch_that_is_not_committed_is_not_shown_and_a_repeated_one_appears_once(tmp_path: Path) -> None:
    first = WrittenHistory(tmp_path).open(kept("q"), kept("r"), fresh=True)
    first.batch(0, 10, {"q": changes(("+", 1, "tea", 1)), "r": changes()})
    first.batch(1, 20, {"q": changes(("+", 11, "jam", 1)), "r": changes(("+", 12, "nut", 1))}, commit=False)
    assert listed(first.settled()) == [(0, 0, "tea")]
    first.close()
    again = WrittenHistory(tmp_path).open(kept("q"), kept("r"))
    again.batch(1, 20, {"q": changes(("+", 11, "jam", 1))})  # r was written before the process died
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


def test_of_a_batch_with_too_many_changes_the_net_effect_is_kept(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path).open(kept("q"), kept("r", "upsert"), fresh=True)
    kept_by.batch(0, 10, {"q": changes(("+", 1, "tea", 1)), "r": changes(("+", 1, "tea", 1))})
    large = changes(("-", 11, "tea", 1), ("+", 15, "jam", 2))  # of a batch in which much more came and went
    kept_by.batch(1, 20, {"q": large, "r": changes(("-", 11, "tea", 1), ("+", 15, "jam", 2))}, net=["q", "r"])
    kept_by.batch(2, 30, {"q": changes(("+", 25, "nut", 3)), "r": changes(("+", 25, "nut", 3))})
    jam, nut = {"item": "jam", "n": 2}, {"item": "nut", "n": 3}
    for _ in range(2):  # as it was written, and as a later segment begins
        ring = kept_by.settled()
        for query, before in (("q", 9), ("r", 10)):
            assert rows(ring, query) == [jam, nut]
            assert rows(ring, query, at=24) == [jam]
            assert rows(ring, query, at=before) == [tea(1)]
            assert listed(ring, query, after=(0, 1)) is None
            assert listed(ring, query, after=(1, 0)) == [(2, 0, "nut")]
        assert "within a batch" in str(rows(ring, at=12))
        kept_by.writer.set_queries([kept("q"), kept("r", "upsert"), kept("s")])
    kept_by.close()


@pytest.mark.parametrize("waiting", [32 << 20, 1], ids=["in the file", "while it waits"])
def test_what_is_too_large_only_as_single_changes_is_kept_as_their_net_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    monkeypatch.setattr(writer, "_MOST_WAITING", waiting)
    kept_by = WrittenHistory(tmp_path, HistoryLimits(1e9, 1 << 16)).open(fresh=True)
    came = [("+", 1, f"item {place * 7919 % 6007} {place}", place) for place in range(3_000)]
    gone = [("-", 2, item, n) for _, _, item, n in came[1:]]
    kept_by.batch(0, 10, {"q": changes(*came, *gone)})
    kept_by.batch(1, 20, {"q": changes(("+", 11, "jam", 1))})
    ring = kept_by.settled()
    assert rows(ring) == [{"item": "item 0 0", "n": 0}, {"item": "jam", "n": 1}]
    assert listed(ring) == [(1, 0, "jam")]
    kept_by.batch(2, 30, {"q": changes(*[("+", 21, item, n) for _, _, item, n in came])})
    assert "larger --history" in str(rows(kept_by.settled()))
    assert rows(kept_by.ring, at=19) == [{"item": "item 0 0", "n": 0}, {"item": "jam", "n": 1}]
    kept_by.close()


def test_clocks_may_come_after_the_commit(tmp_path: Path) -> None:
    kept_by = WrittenHistory(tmp_path, HistoryLimits(80, 1 << 20)).open(kept("q"), kept("r", "upsert"), fresh=True)
    for number, item in enumerate(("tea", "jam", "nut", "oil")):
        kept_by.now += 100  # a segment may begin after each batch
        kept_by.writer.begin(number)
        for query in ("q", "r"):
            kept_by.writer.add(query, number, changes(("+", 10 * number + 1, item, 1)), None)
        kept_by.writer.end(number)
        for late in {1: (0, 1), 3: (3,)}.get(number, ()):  # that of batch 2 never comes
            clock = (10 * late + 10) * SECOND
            kept_by.writer.commit(late, {"q": clock, "r": clock})
        if number == 2:
            kept_by.writer.commit(number)
    ring = kept_by.settled()
    for at, items in ((12, ["jam", "tea"]), (25, ["jam", "nut", "tea"]), (39, ["jam", "nut", "oil", "tea"])):
        found = rows(ring, "q", at)
        assert "no longer kept" in found or [row["item"] for row in found] == items, at
    assert [row["item"] for row in rows(ring, "q", at=25)] == ["jam", "nut", "tea"]
    found = ring.answer("r", 25 * SECOND)
    assert found.as_of == 20 * SECOND - 1
    assert [row["item"] for row in rows(ring, "r", at=25)] == ["jam", "tea"]
    again = WrittenHistory(tmp_path).open(kept("q"), kept("r", "upsert"))
    assert again.settled().watermark("q") == 40 * SECOND
    again.close()
    kept_by.close()


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
    assert "larger --history" in str(rows(ring))
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
