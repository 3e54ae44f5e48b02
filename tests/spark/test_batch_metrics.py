"""Batch metrics, their totals, and the histogram of delays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from sash.plan.types import BIGINT
from sash.spark.batch_metrics import EDGES, PARTS, BatchMetrics, DelayHistogram, total
from sash.state.changes import ChangeBatch
from sash.time import FOREVER, HOUR

NOW = 1_767_225_600_000_000
_NAMES = ["0.0.Filter", "0.1.Aggregate"]


def _operator(*numbers: int) -> dict[str, int]:
    return dict(zip(PARTS, [*numbers, *([0] * len(PARTS))], strict=False))


def _delays(*buckets: int) -> list[int]:
    return [*buckets, *([0] * (len(EDGES) + 1 - len(buckets)))]


def test_metrics_are_summed_except_clock_and_longest_delay() -> None:
    metrics = [
        BatchMetrics(rows_in=5, bad=1),
        BatchMetrics(rows_out=3, clock=70, operators={"0.0.Filter": _operator(4, 1)}, delays=_delays(3, 1), delay_sum=40,
             delay_longest=25, switches=1),
        BatchMetrics(rows_out=1, clock=50, late=2, operators={"0.0.Filter": _operator(2, 2), "0.1.Aggregate": _operator(7)},
             delays=_delays(0, 2), delay_sum=20, delay_longest=12, switches=2,
             current_choice={"0.0.Filter": {"1": ("b", "so")}}),
    ]  # fmt: skip
    seen = total([one.to_json() for one in metrics], _NAMES)
    assert (seen.rows_in, seen.rows_out, seen.bad, seen.late, seen.clock) == (5, 4, 1, 2, 50)
    assert seen.operators == {"0.0.Filter": _operator(6, 3), "0.1.Aggregate": _operator(7)}
    assert seen.current_choice == {"0.0.Filter": {"1": ["b", "so"]}}
    assert (seen.delays, seen.delay_sum, seen.delay_longest) == (_delays(3, 3), 60, 25)
    assert (seen.delay_average, seen.switches) == (0.01, 3)


def test_a_batch_without_metrics_counts_nothing() -> None:
    seen = total([], _NAMES)
    assert (seen.rows_in, seen.clock, seen.delay_average) == (0, None, None)
    assert seen.operators == dict.fromkeys(_NAMES, _operator())
    assert seen.delays == _delays()


def _record(*ts: int) -> DelayHistogram:
    """The delays of changes at these times."""
    delays, count = DelayHistogram(), len(ts)
    signs, ends = np.ones(count, np.int8), np.full(count, FOREVER)
    delays.record(ChangeBatch(np.array(ts, np.int64), ends, signs, (pa.array(range(count), BIGINT),)), NOW)
    return delays


def test_changes_at_time_zero_have_no_delay() -> None:
    assert _record(0, NOW - HOUR).buckets.sum() == 1


def test_changes_of_rows_from_an_archive_have_no_delay() -> None:
    archived = _record(1, NOW - 25 * HOUR)
    assert (archived.buckets.sum(), archived.sum, archived.longest) == (0, 0, 0)
    mixed = _record(NOW - 25 * HOUR, NOW - 2 * HOUR)
    assert mixed.buckets.sum() == 1
    assert mixed.longest == mixed.sum == 2 * 3_600_000
