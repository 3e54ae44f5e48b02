"""The zero-sum test: a million transfers between ten accounts, out of order, balance to nothing at every instant."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from sash.plan.catalog import Catalog, StreamEntry
from sash.planning import plan_query
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.state.changes import ChangeBatch, concat
from sash.time import FOREVER

TRANSFERS, ACCOUNTS, SECOND = 1_000_000, 10, 1_000_000
WINDOW, SLACK, BATCH = 60 * SECOND, 10 * SECOND, 100_000
SQL = """
SELECT account, SUM(amount) AS balance
FROM (SELECT account, amount FROM credits [RANGE 60 SECONDS]
      UNION ALL
      SELECT account, -amount FROM debits [RANGE 60 SECONDS])
GROUP BY account
"""
Ints = npt.NDArray[np.int64]


def transfers(count: int = TRANSFERS, seed: int = 7) -> dict[str, tuple[Ints, Ints]]:
    """Times and accounts of both streams, each shuffled on its own within the slack."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(0, 200 * SECOND, count))
    giver = rng.integers(0, ACCOUNTS, count)
    taker = rng.integers(0, ACCOUNTS, count)
    streams = {}
    for name, account in (("credits", taker), ("debits", giver)):
        # Sorting by a time that is up to the slack later leaves no row further than the slack behind one before it.
        order = np.argsort(ts + rng.integers(0, SLACK, count), kind="stable")
        streams[name] = (ts[order], account[order])
    return streams


def expected_balances(streams: dict[str, tuple[Ints, Ints]], account: int) -> tuple[Ints, Ints]:
    """Every instant at which a row of the account comes or goes, and the balance from then on."""
    times, deltas = [], []
    for name, sign in (("credits", 1), ("debits", -1)):
        ts, accounts = streams[name]
        mine = ts[accounts == account]
        times += [mine, mine + WINDOW]
        deltas += [np.full(len(mine), sign), np.full(len(mine), -sign)]
    ts, delta = np.concatenate(times), np.concatenate(deltas)
    order = np.argsort(ts, kind="stable")
    ts, balance = ts[order], np.cumsum(delta[order])
    last = np.append(ts[1:] != ts[:-1], True)
    return ts[last], balance[last]


class Check:
    """Each account's balance is the expected one whenever it is said, is said whenever it moves, and all sum to 0.

    The changes come in parts, which are in order, and no instant is in two of them.
    """

    def __init__(self, streams: dict[str, tuple[Ints, Ints]]) -> None:
        self._expected = [expected_balances(streams, number) for number in range(ACCOUNTS)]
        self._said = [np.zeros(len(instants) + 1, np.bool_) for instants, _ in self._expected]
        self._last = -1
        self._total = 0
        self.changes = self.instants = 0

    def take(self, ts: Ints, sign: npt.NDArray[np.int8], account: Ints, balance: Ints) -> None:
        """Check a part."""
        if not len(ts):
            return
        assert (np.diff(ts) >= 0).all()
        assert ts[0] > self._last
        self._last = int(ts[-1])
        for number, (instants, balances) in enumerate(self._expected):
            mine = account == number
            added = np.flatnonzero(mine & (sign > 0))
            at = np.searchsorted(instants, ts[added])
            assert (instants[at] == ts[added]).all()
            assert (balances[at] == balance[added]).all()
            self._said[number][np.searchsorted(instants, ts[mine])] = True
        firsts = np.flatnonzero(np.diff(ts, prepend=-1))
        sums = self._total + np.cumsum(np.add.reduceat(balance * sign, firsts))
        assert (sums == 0).all()
        self._total = int(sums[-1])
        self.changes += len(ts)
        self.instants += len(firsts)

    def end(self) -> None:
        """Check that nothing is missing."""
        for said, (_, balances) in zip(self._said, self._expected, strict=True):
            assert said[np.flatnonzero(np.diff(balances, prepend=0))].all()


def check(changes: ChangeBatch, streams: dict[str, tuple[Ints, Ints]]) -> None:
    """Check all changes at once."""
    checked = Check(streams)
    checked.take(changes.ts, changes.sign, changes.columns[0].to_numpy(), changes.columns[1].to_numpy())
    checked.end()


def rows_of(ts: Ints, account: Ints) -> ChangeBatch:
    columns = (pa.array(ts), pa.array(account), pa.array(np.ones(len(ts), np.int64)))
    return ChangeBatch(ts, np.full(len(ts), FOREVER), np.ones(len(ts), np.int8), columns)


@pytest.mark.parametrize("shards", [1, 3])
def test_zero_sum_local(shards: int) -> None:
    streams = transfers()
    schema = parse_schema("ts BIGINT, account BIGINT, amount BIGINT")
    catalog = Catalog({name: StreamEntry(name, schema, "ts") for name in streams})
    run = LocalRun(plan_query(SQL, catalog).physical, {}, shards)
    changes, high = [], dict.fromkeys(streams, 0)
    for start in range(0, TRANSFERS, BATCH):
        rows: dict[str, Any] = {}
        for name, (ts, account) in streams.items():
            rows[name] = rows_of(ts[start : start + BATCH], account[start : start + BATCH])
            high[name] = max(high[name], int(rows[name].ts.max()))
        changes.append(run.advance(rows, {name: clock - SLACK for name, clock in high.items()}))
    changes.append(run.advance({}, dict.fromkeys(streams, int(FOREVER))))
    assert run.late == 0
    assert run.state_rows == 0
    check(concat(changes), streams)
