"""The pages of the soak: one job for an hour, and one whose memory is limited."""

from __future__ import annotations

from bench.report import Figures
from bench.soak.measure import SERIES

_GROWS = 0.1
"""A series whose slope is more than this part of its mean per hour is named."""


def hour(found: Figures) -> str:
    """What a job held that ran for an hour."""
    rows, grown = [], []
    for name, one in found["slopes"].items():
        cells = " | ".join(f"{one[part]:,.1f}" for part in ("mean", "least", "most"))
        rows.append(f"| {SERIES[name]} | {cells} | {one['per_hour']:+,.1f} |")
        if one["per_hour"] > _GROWS * one["mean"]:
            grown.append(f"{SERIES[name]} ({one['per_hour'] / one['mean']:+.0%} per hour)")
    slopes = "\n".join(rows)
    return f"""# Soak

A job of five queries (aggregates by keys that come again and by keys that never do, a join, DISTINCT over strings, a top-k) ran \
for {found["seconds"] / 60:,.0f} minutes: {found["rows_per_s"]:,} rows a second, a batch every {found["trigger_s"]:g} s, \
{found["rows"]:,} rows in {found["batches"]:,} batches. The median batch took {found["load"]:.0%} of the time between two. Windows \
are at most a minute long, and changelogs drop what is older than five minutes, so that nothing should grow after the warm-up, \
the first sixth of the time.

SIGTERM ended it in {found["stop_seconds"]:g} s with exit code {found["exit_code"]}. Memory is what a process shares with no \
other; the slope is by least squares over all samples after the warm-up.

| | mean | least | most | slope per hour |
|---|---:|---:|---:|---:|
{slopes}

Series that grow by more than {_GROWS:.0%} of their mean per hour: {"; ".join(grown) or "none"}.

Repeat it with `python -m bench soak --seconds {found["seconds"]:g} --rate {found["rows_per_s"]} --trigger {found["trigger_s"]:g} \
--save`.
"""


def limited(found: Figures) -> str:
    """How a job ended whose memory was limited, and how it went on."""
    return f"""# Limited memory

A job with a window of an hour and {found["rows_per_s"]:,} rows a second ran in a memory cgroup, whose limit was set to \
{found["limit_mb"]:,} MB after some batches. After {found["seconds_to_failure"]:,} s and {found["batches_before"]:,} batches in all, \
its processes together had reached the limit, and the kernel killed {found["killed_by_the_kernel"]} of them. The job ended with \
exit code {found["exit_code"]}, left {found["processes_left"]} processes, and told this reason:

> {found["reason"]}

Started again without a limit, it went on from its checkpoint, and SIGTERM ended it with exit code \
{found["exit_code_afterwards"]}. The changelog of both runs has {found["rows"]:,} rows in {found["groups"]:,} groups: every group \
but the last is complete, and no change is there twice.

Repeat it with `python -m bench soak-limited --rate {found["rows_per_s"]} --save`.
"""
