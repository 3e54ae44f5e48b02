"""A campaign finds what is wrong, reduces it, keeps it as a file that fails again, and repeats itself by its seed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from campaign.mutation import Trial
from campaign.page import page
from campaign.record import from_json, read_failure, read_runs, save_failure, save_run, to_json
from campaign.search import search
from campaign.subject import Outcome, Subject
from campaign.subjects import SUBJECTS


def test_cases_that_are_not_reduced_are_rounds_of_their_own() -> None:
    def check(number: int) -> Outcome:
        assert number % 3, f"{number} is a multiple"
        return Outcome(Counter(["numbers"]))

    subject = Subject("faults", "numbers", lambda rnd: rnd.randrange(100), check, int, int)
    one, again = search(subject, 4, cases=60), search(subject, 4, cases=60)
    assert one.cases == 60
    assert [failure.case for failure in one.failures] == [failure.case for failure in again.failures]
    assert len(one.failures) + one.words["numbers"] == 60
    assert len({failure.case for failure in one.failures}) > 5
    first = search(subject, 4, cases=60, failures=1)
    assert len(first.failures) == 1
    assert first.cases == one.failures[0].round + 1


def counted(limit: int | None, seen: list[int]) -> Subject[int]:
    """Numbers, of which those from `limit` on fail, and every seventh is refused."""

    def check(number: int) -> Outcome:
        seen.append(number)
        assert limit is None or number < limit, f"{number} is too large"
        refused = number % 7 == 0
        return Outcome(Counter([] if refused else [f"digits {len(str(number))}"]), int(refused))

    return Subject("plans", "numbers", st.integers(0, 10_000), check, lambda number: number, lambda stored: stored)


def test_a_seed_gives_the_same_cases() -> None:
    first: list[int] = []
    again: list[int] = []
    other: list[int] = []
    for seed, seen in ((5, first), (5, again), (6, other)):
        search(counted(None, seen), seed, cases=250)
    assert first == again
    assert first != other


def test_every_case_is_counted_once() -> None:
    seen: list[int] = []
    tally = search(counted(None, seen), 1, cases=250)
    assert tally.cases == len(seen) == 250
    assert tally.refused == sum(number % 7 == 0 for number in seen) > 0
    assert sum(tally.words.values()) == 250 - tally.refused
    assert not tally.failures


def test_an_example_may_be_several_cases() -> None:
    seen: list[int] = []

    def check(number: int) -> Outcome:
        seen.append(number)
        return Outcome(Counter({"numbers": 3}), refused=1, cases=4)

    subject = Subject("plans", "numbers", st.integers(), check, int, int, 4)
    tally = search(subject, 1, cases=90)
    assert len(seen) == 23
    assert (tally.cases, tally.refused, tally.words["numbers"]) == (92, 23, 69)


def test_a_failing_case_is_reduced_and_kept(tmp_path: Path) -> None:
    subject = counted(5_000, [])
    tally = search(subject, 1, cases=300)
    assert {failure.case for failure in tally.failures} == {5_000}
    path = save_failure(subject, tally.failures[0], tmp_path)
    assert read_failure(path) == ("plans", 5_000)
    assert "5000 is too large" in tally.failures[0].error


def test_the_page_is_of_the_saved_runs(tmp_path: Path) -> None:
    for seed in (1, 2):
        save_run(search(counted(9_000, []), seed, cases=200), tmp_path)
    first = next(tmp_path.iterdir())
    first.write_text(json.dumps({**json.loads(first.read_text()), "mended": "tests/test_numbers.py"}))
    runs = read_runs(tmp_path)
    trials = [Trial("a", "rows are lost", "plans --cases 9", error, 7, 3.0, "c") for error in ("wrong", "")]
    text = page(runs, trials)
    assert "| rows are lost | plans | 7 | 3 | c |" in text
    assert "| rows are lost | plans | not found | 3 | c |" in text
    assert "1 of 2 were found" in text
    assert f"| plans | 2 | {sum(run.cases for run in runs):,} |" in text
    assert "9000 is too large`, mended: `tests/test_numbers.py`" in text
    assert f"4 {sum(run.words['digits 4'] for run in runs):,}" in text


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_case_survives_its_file(name: str) -> None:
    subject = SUBJECTS[name]
    stored: list[Any] = []

    def check(case: Any) -> Outcome:
        stored.append(to_json(subject.encode(case)))
        return Outcome()

    kept = Subject(name, subject.about, subject.cases, check, subject.encode, subject.decode)
    search(kept, 3, cases=60)
    assert len(stored) == 60
    again = [to_json(subject.encode(subject.decode(from_json(one)))) for one in stored]
    assert again == stored


@pytest.mark.parametrize(("name", "cases"), [("plans", 240), ("jobs", 60), ("texts", 150), ("values", 60)])
def test_a_short_campaign(name: str, cases: int) -> None:
    tally = search(SUBJECTS[name], 2026, cases=cases)
    assert [failure.error for failure in tally.failures] == []
    assert cases - SUBJECTS[name].size < tally.cases < cases + SUBJECTS[name].size
    assert tally.refused < cases // 4
