"""The loops of GROUP BY that are common to all functions: the instants at which groups change, and the output changes.

A *touch* is one instant at which one group may change. A *version* is a value of a group during one call: the initial
one, and one more per touch. Accumulators compute a value for every version; a touch then outputs `-` the version before
and `+` the version after.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sash.state.jit import kernel
from sash.state.memory import Ints

Signs = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]


class Events(NamedTuple):
    """The removals and arrivals of one call. `order` gives their positions in time order; `sign` and `group` are by
    position; `version`, by event, is the version that is complete after it (-1: the group has more events at this instant).
    `first_group` are the groups that occur, `first_version` the versions they start with."""

    order: Ints
    sign: Signs
    group: Ints
    version: Ints
    first_group: Ints
    first_version: Ints


class Touches(NamedTuple):
    """By touch: its time, the index of its group, and the versions before and after."""

    ts: Ints
    which: Ints
    before: Ints
    after: Ints


@kernel
def touch(
    order: Ints, times: Ints, sign: Signs, group: Ints, rows: Ints, mark: Ints, start: int, starting: bool
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:
    """Versions and touches, and the rows of a group at each version.

    `mark` is zero before and after. If `starting`, group 0 is touched at `start` even without events.
    """
    size = len(order)
    version = np.empty(size, np.int64)
    first_group = np.empty(size + 1, np.int64)
    first_version = np.empty(size + 1, np.int64)
    touch_ts = np.empty(size + 1, np.int64)
    which = np.empty(size + 1, np.int64)
    before = np.empty(size + 1, np.int64)
    after = np.empty(size + 1, np.int64)
    last = np.empty(size + 1, np.int64)
    counts = np.empty(2 * size + 2, np.int64)
    groups = touches = versions = 0
    if starting and (size == 0 or times[order[0]] > start):
        first_group[0] = 0
        first_version[0] = 0
        counts[0] = rows[0]
        touch_ts[0] = start
        which[0] = 0
        before[0] = 0
        after[0] = 0
        last[0] = -1
        groups = touches = versions = 1
        mark[0] = 1
    for event in range(size):
        position = order[event]
        code = group[position]
        now = times[position]
        latest = mark[code] - 1
        if latest < 0 or touch_ts[latest] != now or last[latest] < 0:
            if latest < 0:
                first_group[groups] = code
                first_version[groups] = versions
                counts[versions] = rows[code]
                before[touches] = versions
                which[touches] = groups
                groups += 1
                versions += 1
            else:
                before[touches] = after[latest]
                which[touches] = which[latest]
            touch_ts[touches] = now
            after[touches] = versions
            versions += 1
            latest = touches
            touches += 1
            mark[code] = touches
        else:
            version[last[latest]] = -1
        last[latest] = event
        version[event] = after[latest]
        rows[code] += sign[position]
        counts[after[latest]] = rows[code]
    for index in range(groups):
        mark[first_group[index]] = 0
    return (
        version, first_group[:groups].copy(), first_version[:groups].copy(), counts[:versions].copy(),
        touch_ts[:touches].copy(), which[:touches].copy(), before[:touches].copy(), after[:touches].copy(),
    )  # fmt: skip


@kernel
def note_changes(touches: Touches, bits: Ints, nulls: Mask, changed: Mask) -> None:
    """Mark the touches at which a column differs; `nulls` may be empty for none."""
    for index in range(len(changed)):
        a, b = touches.before[index], touches.after[index]
        if len(nulls) and (nulls[a] or nulls[b]):
            changed[index] |= nulls[a] != nulls[b]
        else:
            changed[index] |= bits[a] != bits[b]


@kernel
def emit(touches: Touches, counts: Ints, changed: Mask, always: bool, starting: bool) -> tuple[Ints, Signs, Ints, Ints]:
    """The output of the touches: (ts, sign, group index, version), with every `-` before any `+` at each instant.

    A group exists while it has rows, or `always`, from the first touch on if `starting`.
    """
    size = len(touches.ts)
    out_ts = np.empty(2 * size, np.int64)
    out_sign = np.empty(2 * size, np.int8)
    out_which = np.empty(2 * size, np.int64)
    out_version = np.empty(2 * size, np.int64)
    count = 0
    begin = 0
    while begin < size:
        end = begin
        while end < size and touches.ts[end] == touches.ts[begin]:
            end += 1
        for sign in (-1, 1):
            for index in range(begin, end):
                was = (always and not (starting and index == 0)) or (not always and counts[touches.before[index]] > 0)
                lives = always or counts[touches.after[index]] > 0
                if was and lives and not changed[index]:
                    continue
                if was if sign < 0 else lives:
                    out_ts[count] = touches.ts[index]
                    out_sign[count] = sign
                    out_which[count] = touches.which[index]
                    out_version[count] = touches.before[index] if sign < 0 else touches.after[index]
                    count += 1
        begin = end
    return out_ts[:count].copy(), out_sign[:count].copy(), out_which[:count].copy(), out_version[:count].copy()


@kernel
def count_events(events: Events, skip: Mask, counts: Ints, out: Ints) -> None:
    """Count the events that are not skipped, by group."""
    for index in range(len(events.first_group)):
        out[events.first_version[index]] = counts[events.first_group[index]]
    for event in range(len(events.order)):
        position = events.order[event]
        code = events.group[position]
        if not (len(skip) and skip[position]):
            counts[code] += events.sign[position]
        if events.version[event] >= 0:
            out[events.version[event]] = counts[code]


@kernel
def count_references(events: Events, pairs: Ints, references: Ints) -> tuple[Mask, Ints]:
    """The mask of events to skip because they neither add the first nor remove the last of equal values, and the pairs
    without references at the end. `pairs` are codes + 1, 0 for none."""
    skip = np.ones(len(pairs), np.bool_)
    gone = np.empty(len(pairs), np.int64)
    count = 0
    for event in range(len(events.order)):
        position = events.order[event]
        pair = pairs[position] - 1
        if pair < 0:
            continue
        if events.sign[position] > 0:
            skip[position] = references[pair] != 0
            references[pair] += 1
        else:
            references[pair] -= 1
            skip[position] = references[pair] != 0
            if references[pair] == 0:
                gone[count] = pair
                count += 1
    dead = 0
    for index in range(count):
        if references[gone[index]] == 0:
            references[gone[index]] = -1
            gone[dead] = gone[index]
            dead += 1
    for index in range(dead):
        references[gone[index]] = 0
    return skip, gone[:dead].copy()
