"""The classification of histories (paper 2, section 3): the paper's examples, and cases that they do not cover."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sash.errors import HistoryError
from sash.testing.histories import Recorder, classify

SERIALIZABLE = {"serializable"}
WINDOW = SERIALIZABLE | {"window-serializable"}
LATEST = WINDOW | {"latest-window-serializable"}

PAPER = {
    "Ha": ("rQ1[0] w5[0] c5 w6[1] c6 rQ1[1] rQ1[2] rQ1[3] rQ1[4] cQ1", SERIALIZABLE),
    "Hb": ("rQ1[0] w5[0] c5 rQ1[1] w6[1] c6 rQ1[2] rQ1[3] rQ1[4] cQ1", WINDOW),
    "Hc": ("rQ1[4] w5[0] c5 rQ1[3] rQ1[2] rQ1[1] w6[1] c6 rQ1[0] cQ1", WINDOW),
    "Hd": ("rQ1[4] w5[0] c5 rQ1[0] rQ1[3] rQ1[2] w6[1] c6 rQ1[1] cQ1", LATEST),
}


@pytest.mark.parametrize("name", PAPER)
def test_histories_of_the_paper(name: str) -> None:
    history, levels = PAPER[name]
    assert classify(history, 5) == levels


def test_two_queries_that_see_updates_in_different_orders_are_not_serializable() -> None:
    assert classify("rQ1[0] w2[0] c2 rQ2[0] rQ2[1] cQ2 w3[1] c3 rQ1[1] cQ1", 2) == set()


def test_one_bad_query_spoils_the_history_unless_it_is_aborted() -> None:
    good = "rQ2[0] rQ2[1] rQ2[2] rQ2[3] rQ2[4] cQ2"
    bad = PAPER["Ha"][0]
    assert classify(f"{bad} {good}", 5) == SERIALIZABLE
    assert classify(f"{bad.replace('cQ1', 'aQ1')} {good}", 5) == LATEST
    assert classify(f"{bad.removesuffix('cQ1')} {good}", 5) == LATEST


def test_updates_after_the_commit_do_not_matter() -> None:
    assert classify("rQ1[0] rQ1[1] cQ1 w2[0] c2 w3[1] c3", 2) == LATEST


def test_a_query_that_meets_n_updates_or_more() -> None:
    # Sub-window 0 is written twice after it was read: both updates come after the query, update 3 before it.
    assert classify("rQ1[0] w2[0] c2 w3[1] c3 w4[0] c4 rQ1[1] cQ1", 2) == SERIALIZABLE
    # The same updates, all before the first read, or each sub-window read in its last version.
    assert classify("w2[0] c2 w3[1] c3 w4[0] c4 rQ1[1] rQ1[0] cQ1", 2) == LATEST
    assert classify("w2[0] c2 rQ1[0] w3[1] c3 rQ1[1] w4[0] c4 w5[1] c5 cQ1", 2) == WINDOW
    # The second rewriting alone is enough to go wrong: version 4 with version 1 is no window.
    assert classify("rQ1[1] w2[0] c2 w3[1] c3 w4[0] c4 rQ1[0] cQ1", 2) == SERIALIZABLE


def test_reading_a_sub_window_again_needs_the_first_read_undone() -> None:
    assert classify("rQ1[0] w2[0] c2 rQ1[0] rQ1[1] cQ1", 2) == set()
    assert classify("rQ1[0] w2[0] c2 uQ1[0] rQ1[0] rQ1[1] cQ1", 2) == LATEST


def test_old_copies() -> None:
    assert classify("rQ1[1] w2[0] c2 rQ1[0:1] cQ1", 2) == WINDOW
    assert classify("rQ1[1] w2[0] c2 w3[1] c3 rQ1[0:1] cQ1", 2) == WINDOW
    assert classify("w2[0] c2 w3[1] c3 rQ1[0:1] rQ1[1] cQ1", 2) == SERIALIZABLE


def test_inserts_into_sub_windows_already_read_must_be_passed_on() -> None:
    assert classify("rQ1[1] w2[0] i2[1] c2 rQ1[0] cQ1", 2) == set()
    assert classify("rQ1[1] w2[0] i2[1] c2 pQ1[1] rQ1[0] cQ1", 2) == LATEST
    assert classify("w2[0] i2[1] c2 rQ1[1] rQ1[0] cQ1", 2) == LATEST


def test_shorter_windows_are_checked_where_their_length_is_known() -> None:
    stale = "rQ1[2] rQ1[1] w3[0] c3 cQ1"
    assert classify(stale, 3) == LATEST
    assert classify(stale, 3, {"Q1": 2}) == WINDOW
    assert classify("rQ1[2] w3[0] c3 rQ1[0] cQ1", 3, {"Q1": 2}) == LATEST
    assert classify("rQ1[1] w3[0] c3 rQ1[0] cQ1", 3, {"Q1": 2}) == SERIALIZABLE


@pytest.mark.parametrize(
    "history",
    ["x5[0]", "rQ1", "c5[0]", "r5[0]", "wQ1[0]", "w5[1] c5", "w5[0]", "w5[0] c5 w7[2] c7", "w5[0] w6[1] c6", "c5",
     "rQ1[5]", "rQ1[0:9] w5[0] c5", "uQ1[0]", "aQ1 cQ1", "a5", "i5[1]", "w5[0:3]"],
)  # fmt: skip
def test_impossible_histories_raise_errors(history: str) -> None:
    with pytest.raises(HistoryError):
        classify(history, 5)


def by_definition(order: list[int], gaps: list[int], n: int) -> set[str]:
    """The levels by Definitions 1 and 2 alone, from the versions that the reads returned."""
    latest, seen = n - 1, set()
    for sub_window, updates in zip(order, gaps, strict=False):
        seen.add(latest - (latest - sub_window) % n)
        latest += updates
    contiguous = max(seen) - min(seen) == n - 1
    levels = set(SERIALIZABLE)
    if contiguous:
        levels.add("window-serializable")
        if max(seen) == latest:
            levels.add("latest-window-serializable")
    return levels


def written(order: list[int], gaps: list[int], n: int) -> str:
    recorder, latest = Recorder(), n - 1
    for sub_window, updates in zip(order, gaps, strict=False):
        recorder.read("Q1", sub_window, latest)
        for _ in range(updates):
            latest += 1
            recorder.update(latest, latest % n)
    recorder.commit("Q1", n)
    return recorder.history


@pytest.mark.parametrize("n", [1, 2, 3])
def test_theorems_agree_with_the_definitions_for_every_small_history(n: int) -> None:
    for order in itertools.permutations(range(n)):
        for gaps in itertools.product(range(2 * n + 2), repeat=n):
            history = written(list(order), list(gaps), n)
            assert classify(history, n) == by_definition(list(order), list(gaps), n), history


@given(
    st.integers(4, 9).flatmap(
        lambda n: st.tuples(st.permutations(range(n)), st.lists(st.integers(0, 4), min_size=n, max_size=n))
    )
)
@example(([4, 0, 3, 2, 1], [1, 0, 0, 1, 0]))
def test_theorems_agree_with_the_definitions(history: tuple[list[int], list[int]]) -> None:
    order, gaps = history
    n = len(order)
    assert classify(written(order, gaps, n), n, {"Q1": n}) == by_definition(order, gaps, n)
