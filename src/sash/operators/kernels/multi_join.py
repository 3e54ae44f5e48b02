"""The loop nest of the multi-way window join: new rows, and per level the rows of one more input that match (paper 4).

An index x of an input keeps its rows in lists by key: `links` has two words per slot, next slot + 1 and key code. An
index may have fewer lists than keys (`BUCKETS`): keys then share a list by remainder, and one list is a plain window.
`lists` has a record per key and list: how many rows have the key, then per index of the attribute how many of them are
its own, and the head (slot + 1) of its list. `rows` has per slot the row's time and expiry, for each index the slot
before it in its list, and the values that are compared.
"""

from __future__ import annotations

import numpy as np

from sash.operators.kernels.growth import grown
from sash.state.changes import Signs
from sash.state.jit import inlined, kernel
from sash.state.memory import Array, Ints

INDEX_FIELDS = 7
LINKS, LISTS, STEP, MEMBER, BUCKETS, PREVIOUS, ATTRIBUTE = range(INDEX_FIELDS)
INPUT_FIELDS = 5
ROWS, WORDS, FIRST_INDEX, LAST_INDEX, VALUES = range(INPUT_FIELDS)
TS, EXP, HEADER = range(3)
"""Of a row's record: its time, its expiry, and how many words stand before the rest."""

PROBES, STATS = range(2)
"""Of the statistics: rows looked at so far, and where the number of keys of each index begins."""

_DONE, _DEAD, _WANTED, _LINKED = range(4)

_INPUT, _INDEX, _SOURCE, _SOURCE_INDEX, _FIRST_CHECK, _LAST_CHECK = range(6)
_OPERATION, _MINE, _LEVEL, _THEIRS = range(4)


@inlined
def _link(j: int, slot: int, inputs: Ints, index: Ints, links: Ints, rows: Ints, lists: Ints, stats: Ints) -> None:
    """Put a row of input j in front of its lists."""
    base, words = inputs[j, ROWS], inputs[j, WORDS]
    for x in range(inputs[j, FIRST_INDEX], inputs[j, LAST_INDEX]):
        at = index[x, LINKS] + 2 * slot
        code, buckets, place = links[at + 1], index[x, BUCKETS], index[x, PREVIOUS]
        record = index[x, LISTS] + index[x, STEP] * code
        lists[record] += 1
        lists[record + index[x, MEMBER]] += 1
        if lists[record + index[x, MEMBER]] == 1:
            stats[STATS + x] += 1
        head = record if buckets == 0 else index[x, LISTS] + index[x, STEP] * (code % buckets)
        head += index[x, MEMBER] + 1
        first = lists[head]
        links[at] = first
        rows[base + words * slot + place] = 0
        if first > 0:
            rows[base + words * (first - 1) + place] = slot + 1
        lists[head] = slot + 1


@inlined
def _unlink(
    j: int, slot: int, inputs: Ints, index: Ints, links: Ints, rows: Ints, lists: Ints, stats: Ints, dead: Ints,
    done: Ints,
) -> None:  # fmt: skip
    """Take a row of input j out of its lists, and note the keys that have no rows left."""
    base, words = inputs[j, ROWS], inputs[j, WORDS]
    for x in range(inputs[j, FIRST_INDEX], inputs[j, LAST_INDEX]):
        at = index[x, LINKS] + 2 * slot
        code, buckets, place = links[at + 1], index[x, BUCKETS], index[x, PREVIOUS]
        record = index[x, LISTS] + index[x, STEP] * code
        lists[record] -= 1
        lists[record + index[x, MEMBER]] -= 1
        if lists[record + index[x, MEMBER]] == 0:
            stats[STATS + x] -= 1
        if lists[record] == 0 and index[x, ATTRIBUTE] >= 0:
            dead[0, done[_DEAD]] = index[x, ATTRIBUTE]
            dead[1, done[_DEAD]] = code
            done[_DEAD] += 1
        head = record if buckets == 0 else index[x, LISTS] + index[x, STEP] * (code % buckets)
        head += index[x, MEMBER] + 1
        following, previous = links[at], rows[base + words * slot + place]
        if previous > 0:
            links[index[x, LINKS] + 2 * (previous - 1)] = following
        else:
            lists[head] = following
        if following > 0:
            rows[base + words * (following - 1) + place] = previous


@inlined
def _holds(operation: int, mine: int, theirs: int) -> bool:
    result = mine == theirs
    if operation == 2:
        result = mine != theirs
    elif operation == 3:
        result = mine < theirs
    elif operation == 4:
        result = mine <= theirs
    elif operation == 5:
        result = mine > theirs
    elif operation == 6:
        result = mine >= theirs
    return result


@kernel
def _checked(
    first: int, last: int, checks: Ints, slot: int, mine: int, origin: int, programs: Array, bound: Ints,
    inputs: Ints, index: Ints, links: Ints, rows: Ints,
) -> bool:  # fmt: skip
    """Whether everything else holds between a row and those bound above it."""
    for c in range(first, last):
        level = checks[c, _LEVEL]
        other, theirs = programs[origin, level, _INPUT], bound[level]
        if checks[c, _OPERATION] == 0:
            code = links[index[checks[c, _MINE], LINKS] + 2 * slot + 1]
            if code != links[index[checks[c, _THEIRS], LINKS] + 2 * theirs + 1]:
                return False
        else:
            one = rows[inputs[mine, ROWS] + inputs[mine, WORDS] * slot + inputs[mine, VALUES] + checks[c, _MINE]]
            two = rows[inputs[other, ROWS] + inputs[other, WORDS] * theirs + inputs[other, VALUES] + checks[c, _THEIRS]]
            if not _holds(checks[c, _OPERATION], one, two):
                return False
    return True


@kernel
def _valid_together(
    origin: int, new: int, depth: int, programs: Array, bound: Ints, inputs: Ints, rows: Ints
) -> bool:  # fmt: skip
    """Whether the rows bound above the origin were there when its new row came."""
    now = rows[inputs[origin, ROWS] + inputs[origin, WORDS] * new + TS]
    for level in range(depth):
        j = programs[origin, level, _INPUT]
        at = inputs[j, ROWS] + inputs[j, WORDS] * bound[level]
        ts = rows[at + TS]
        if rows[at + EXP] <= now or ts > now or (ts == now and j > origin):
            return False
    return True


@inlined
def _repeat(
    begun: int, count: int, now: np.int64, sign: int, origin: int, bottom: int, programs: Array, bound: Ints, emitted: Ints,
    out_ts: Ints, out_sign: Signs, out_slots: Array,
) -> None:  # fmt: skip
    """Write what the results of one innermost loop have in common."""
    for place in range(begun, count):
        out_ts[place] = now
    if len(out_sign) > 0:
        for place in range(begun, count):
            out_sign[place] = sign
    for level in range(bottom):
        row = emitted[programs[origin, level, _INPUT]]
        if row >= 0:
            slot = bound[level]
            for place in range(begun, count):
                out_slots[row, place] = slot


@inlined
def _nest(
    origin: int, first: int, last: int, sign: int, timed: bool,
    event_ts: Ints, event_sign: Signs, event_slots: Ints,
    programs: Array, checks: Ints, inputs: Ints, index: Ints, links: Ints, rows: Ints, lists: Ints, stats: Ints,
    cursor: Ints, wanted: Ints, bound: Ints, least: Ints, done: Ints, emitted: Ints,
    out_ts: Ints, out_exp: Ints, out_sign: Signs, out_slots: Array,
) -> int:  # fmt: skip
    """Join the events of one origin, those of one sign in [first, last), with all other inputs.

    If `timed`, lists may hold rows that are not valid at the new row's time: they are passed over. Of rows of one
    instant the one of the last input counts as the new one. Returns the number of results so far; more than there is
    room for means that the output is full, and what was written of these events is to be written again.
    """
    room, bottom = len(out_ts), len(inputs) - 1
    count: int = done[_DONE]
    probes = 0
    depth = 0
    entering = True
    now = np.int64(0)
    at_origin = -1
    while depth >= 0:
        mine = programs[origin, depth, _INPUT]
        x = programs[origin, depth, _INDEX]
        source = programs[origin, depth, _SOURCE]
        if entering:
            key = np.int64(0)
            if source >= 0:
                key = links[index[programs[origin, depth, _SOURCE_INDEX], LINKS] + 2 * bound[source] + 1]
            wanted[depth] = key
            if mine == origin:
                cursor[depth] = first
                at_origin = depth
            else:
                buckets = index[x, BUCKETS]
                place = key if buckets == 0 else key % buckets
                cursor[depth] = lists[index[x, LISTS] + index[x, STEP] * place + index[x, MEMBER] + 1]
            entering = False
        from_check, to_check = programs[origin, depth, _FIRST_CHECK], programs[origin, depth, _LAST_CHECK]
        key = wanted[depth]
        base = index[x, LINKS]
        base_row, words = inputs[mine, ROWS], inputs[mine, WORDS]
        above = least[depth - 1] if depth > 0 else np.int64(2**63 - 1)
        column, begun, found = emitted[mine], count, -1
        if mine == origin:
            event = cursor[depth]
            while event < last:
                slot = event_slots[event]
                matches = event_sign[event] == sign and (source < 0 or links[base + 2 * slot + 1] == key)
                if matches and from_check < to_check:
                    matches = _checked(
                        from_check, to_check, checks, slot, mine, origin, programs, bound, inputs, index, links, rows
                    )
                if matches and depth > 0 and timed:
                    matches = _valid_together(origin, slot, depth, programs, bound, inputs, rows)
                probes += 1 if depth > 0 else 0
                event += 1
                if matches:
                    found = slot
                    now = event_ts[event - 1]
                    break
            cursor[depth] = event
            if found >= 0 and depth == bottom:
                count += 1
                if count > room:
                    break
                out_exp[begun] = min(above, rows[base_row + words * found + EXP])
                if column >= 0:
                    out_slots[column, begun] = found
                _repeat(begun, count, now, sign, origin, bottom, programs, bound, emitted, out_ts, out_sign, out_slots)
                continue
        else:
            node = cursor[depth]
            past = timed and depth > at_origin and at_origin >= 0
            while node > 0:
                slot = node - 1
                at = np.uint64(base + 2 * slot)  # unsigned: numba asks of signed positions whether they are negative
                node = links[at]
                probes += 1
                if links[at + np.uint64(1)] != key:
                    continue
                if past:
                    ts = rows[base_row + words * slot + TS]
                    expired = rows[base_row + words * slot + EXP] <= now
                    if expired or ts > now or (ts == now and mine > origin):
                        continue
                if from_check < to_check and not _checked(
                    from_check, to_check, checks, slot, mine, origin, programs, bound, inputs, index, links, rows
                ):
                    continue
                if depth < bottom:
                    found = slot
                    break
                if count < room:
                    out_exp[count] = min(above, rows[base_row + words * slot + EXP])
                    if column >= 0:
                        out_slots[column, count] = slot
                count += 1
            cursor[depth] = node
            if count > room:
                break
            if depth == bottom:
                _repeat(begun, count, now, sign, origin, bottom, programs, bound, emitted, out_ts, out_sign, out_slots)
        if found < 0:
            depth -= 1
            if depth < at_origin:
                at_origin = -1
        else:
            bound[depth] = found
            least[depth] = min(above, rows[base_row + words * found + EXP])
            depth += 1
            entering = True
    if count <= room:
        stats[PROBES] += probes
    return count


@kernel
def advance(
    explicit: bool, tau: int, event_ts: Ints, event_sign: Signs, event_slots: Ints, starts: Ints, stops: Ints,
    programs: Array, checks: Ints, emitted: Ints,
    inputs: Ints, index: Ints, links: Ints, rows: Ints, lists: Ints, stats: Ints,
    ts: Ints, exp: Ints, sign: Signs, slots: Array,
) -> tuple[int, Array, Ints, Ints, Signs, Array]:  # fmt: skip
    """Apply the events of all inputs; those of input j stand in [starts[j], stops[j]), which is used up.

    With `tau` 0 they are taken one by one in order of (time, ends first, input). Else those of ((k-1) tau, k tau] are
    taken together: rows come into their lists, then are joined, then what has expired goes (lazy re-evaluation and
    expiration, paper 4, 3.3). Results are written to `ts`, `exp`, `sign` (if the output is explicit) and, for input j,
    to row `emitted[j]` of `slots` (if not negative); with `tau` 0 they are in order of time. Returns their number, the
    (attribute, key) pairs that had no row at some instant, and the four arrays, longer ones if need was.
    """
    events = 0
    for j in range(len(inputs)):
        events += stops[j] - starts[j]
    dead = np.empty((2, events * len(index) + 1), np.int64)
    done = np.zeros(4, np.int64)
    while _left(starts, stops):
        # Outputs grow out here: arrays that are replaced inside of the loop would be counted at every event.
        if done[_WANTED] > len(ts):
            size = max(2 * len(ts), done[_WANTED])
            ts, exp = grown(ts, size), grown(exp, size)
            if explicit:
                sign = grown(sign, size)
            wider = np.empty((len(slots), size), np.int64)
            wider[:, : done[_DONE]] = slots[:, : done[_DONE]]
            slots = wider
        if tau > 0:
            _run_lazily(
                tau, event_ts, event_sign, event_slots, starts, stops, programs, checks, emitted, inputs, index, links,
                rows, lists, stats, done, dead, ts, exp, sign, slots,
            )  # fmt: skip
        else:
            _run_eagerly(
                explicit, event_ts, event_sign, event_slots, starts, stops, programs, checks, emitted, inputs, index,
                links, rows, lists, stats, done, dead, ts, exp, sign, slots,
            )  # fmt: skip
    return done[_DONE], dead[:, : done[_DEAD]], ts, exp, sign, slots


@kernel
def _left(starts: Ints, stops: Ints) -> bool:
    events = 0
    for j in range(len(starts)):
        events += stops[j] - starts[j]
    return events > 0


@kernel
def _run_eagerly(
    explicit: bool, event_ts: Ints, event_sign: Signs, event_slots: Ints, starts: Ints, stops: Ints,
    programs: Array, checks: Ints, emitted: Ints,
    inputs: Ints, index: Ints, links: Ints, rows: Ints, lists: Ints, stats: Ints,
    done: Ints, dead: Array, out_ts: Ints, out_exp: Ints, out_sign: Signs, out_slots: Array,
) -> None:  # fmt: skip
    """Event by event, until they end or the output is full."""
    n = len(inputs)
    work = np.empty((4, n), np.int64)
    cursor, wanted, bound, least = work[0], work[1], work[2], work[3]
    done[_WANTED] = 0
    while True:
        j = -1
        for other in range(n):
            if starts[other] == stops[other]:
                continue
            if j >= 0:
                mine, theirs = event_ts[starts[j]], event_ts[starts[other]]
                if mine < theirs or (mine == theirs and event_sign[starts[j]] <= event_sign[starts[other]]):
                    continue
            j = other
        if j < 0:
            break
        event = starts[j]
        sign, slot = event_sign[event], event_slots[event]
        if done[_LINKED] == 0:
            if sign > 0:
                _link(j, slot, inputs, index, links, rows, lists, stats)
            else:
                _unlink(j, slot, inputs, index, links, rows, lists, stats, dead, done)
        if sign > 0 or explicit:
            count = _nest(
                j, event, event + 1, sign, False, event_ts, event_sign, event_slots,
                programs, checks, inputs, index, links, rows, lists, stats, cursor, wanted, bound, least, done, emitted,
                out_ts, out_exp, out_sign, out_slots,
            )  # fmt: skip
            if count > len(out_ts):
                done[_LINKED] = 1
                done[_WANTED] = count
                break
            done[_DONE] = count
        done[_LINKED] = 0
        starts[j] += 1


@kernel
def _run_lazily(
    tau: int, event_ts: Ints, event_sign: Signs, event_slots: Ints, starts: Ints, stops: Ints,
    programs: Array, checks: Ints, emitted: Ints,
    inputs: Ints, index: Ints, links: Ints, rows: Ints, lists: Ints, stats: Ints,
    done: Ints, dead: Array, out_ts: Ints, out_exp: Ints, out_sign: Signs, out_slots: Array,
) -> None:  # fmt: skip
    """One re-execution after the other, until the events end or the output is full."""
    n = len(inputs)
    work = np.empty((5, n), np.int64)
    cursor, wanted, bound, least, ends = work[0], work[1], work[2], work[3], work[4]
    done[_WANTED] = 0
    while True:
        turn = np.int64(2**63 - 1)
        for j in range(n):
            if starts[j] < stops[j]:
                turn = min(turn, (event_ts[starts[j]] - 1) // tau)
        if turn == np.int64(2**63 - 1):
            break
        for j in range(n):
            ends[j] = starts[j]
            while ends[j] < stops[j] and (event_ts[ends[j]] - 1) // tau == turn:
                if event_sign[ends[j]] > 0 and done[_LINKED] == 0:
                    _link(j, event_slots[ends[j]], inputs, index, links, rows, lists, stats)
                ends[j] += 1
        done[_LINKED] = 1
        before, seen, full = done[_DONE], stats[PROBES], False
        for j in range(n):
            count = _nest(
                j, starts[j], ends[j], 1, True, event_ts, event_sign, event_slots,
                programs, checks, inputs, index, links, rows, lists, stats, cursor, wanted, bound, least, done, emitted,
                out_ts, out_exp, out_sign, out_slots,
            )  # fmt: skip
            if count > len(out_ts):
                done[_WANTED] = count
                full = True
                break
            done[_DONE] = count
        if full:
            done[_DONE], stats[PROBES] = before, seen
            break
        for j in range(n):
            while starts[j] < ends[j]:
                if event_sign[starts[j]] < 0:
                    _unlink(j, event_slots[starts[j]], inputs, index, links, rows, lists, stats, dead, done)
                starts[j] += 1
        done[_LINKED] = 0
