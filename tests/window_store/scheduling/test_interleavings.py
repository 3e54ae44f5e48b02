"""Ten thousand random interleavings per level: every committed query reads a state that the window had (paper 2, 3.2)."""

from __future__ import annotations

import random

import pytest

from sash.testing.histories import Recorder, classify
from sash.window_store.scheduling.levels import LEVELS
from sash.window_store.scheduling.reader import Reader
from sash.window_store.scheduling.scheduler import Scheduler
from tests.window_store.scheduling.interleaving import Committed, interleave

INTERLEAVINGS = 10_000


def one(seed: int, level: str, scheduler_type: type[Scheduler] = Scheduler) -> tuple[Recorder, int, list[Committed]]:
    rng = random.Random(seed)
    n, recorder = rng.randint(1, 6), Recorder()
    scheduler = scheduler_type(
        n, rng.choice([-1, n - 1, n + 2]), isolation=level, retain=rng.choice([0, 0, 1, n]), recorder=recorder
    )
    return recorder, n, interleave(rng, scheduler, recorder, inserts=rng.random() < 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_every_committed_query_read_a_true_state(level: str) -> None:
    committed = restarts = met = 0
    for seed in range(INTERLEAVINGS):
        recorder, n, outcomes = one(seed, level)
        assert LEVELS[level].reaches in classify(recorder.history, n, recorder.lengths), (seed, recorder.history)
        for query in outcomes:
            assert query.answer == query.truth, (seed, recorder.history)
            if query.follows:
                assert query.as_of == query.latest, (seed, recorder.history)
            committed += 1
            restarts += query.restarts
            met += query.as_of < query.latest
    assert committed > INTERLEAVINGS
    assert (restarts > 0) == (level != "serial")
    assert (met > 0) == (level == "window-serializable")


def test_levels_mixed_on_one_window_each_keep_their_own() -> None:
    for seed in range(500):
        rng = random.Random(seed)
        n, recorder = rng.randint(1, 6), Recorder()
        scheduler = Scheduler(n, n - 1, retain=rng.choice([0, n]), recorder=recorder)
        for level in rng.choices(list(LEVELS), k=3):
            for query in interleave(rng, scheduler, recorder, level):
                assert query.answer == query.truth
                assert query.as_of == query.latest or not query.follows
        assert "window-serializable" in classify(recorder.history, n, recorder.lengths)


class Careless(Scheduler):
    """A broken scheduler: a query in conflict continues without a restart (Algorithm 1 without line 7)."""

    def _restart(self, reader: Reader) -> None:
        seen = {version % self.n for version in reader.done}
        reader.unread = {version for version in reader.unread if version % self.n not in seen}


@pytest.mark.parametrize("level", ["latest-window-serializable", "ttu"])
def test_the_checker_catches_a_broken_scheduler(level: str) -> None:
    caught = set()
    for seed in range(1_000):
        recorder, n, outcomes = one(seed, level, Careless)
        levels = classify(recorder.history, n, recorder.lengths)
        if any(query.answer != query.truth for query in outcomes):
            assert "latest-window-serializable" not in levels, (seed, recorder.history)
            caught.add(frozenset(levels))
    assert frozenset({"serializable"}) in caught  # old and new sub-windows mixed, as in the paper's Ha
