"""The loop nest of the multi-way window join: each level loops over the matching rows of one more input (paper 4).

An index x of an input has a linked list for every key: `links` has two words per slot, next slot + 1 and key code.
Or it has a number of buckets: keys are then assigned by remainder, and a single bucket is a plain window. Buckets are
scanned, so they are packed: consecutive pairs of key code and slot, of which the last replaces a removed one; bucket p
starts at `pack_at[p]` in `links` and has `packed[p]` pairs.

`lists` has a record per key: the number of rows with the key, then per index of the attribute the number of its own rows
and the head (slot + 1) of its list. `rows` has per slot the row's time and expiration time, for each index the slot
before it in its list or its position in its bucket, and the values that are compared.
"""

from __future__ import annotations

import numpy as np

from sash.state.changes import Signs
from sash.state.jit import inlined, kernel
from sash.state.memory import Array, Ints
from sash.time import FOREVER

INDEX_FIELDS = 8
LINKS, LISTS, STEP, MEMBER, BUCKETS, PREVIOUS, ATTRIBUTE, PACKS = range(INDEX_FIELDS)
INPUT_FIELDS = 5
ROWS, WORDS, FIRST_INDEX, LAST_INDEX, VALUES = range(INPUT_FIELDS)
TS, EXP, HEADER = range(3)
"""Positions in a row's record: its time, its expiration time, and the first word of the rest."""

PROBES, STATS = range(2)
"""Positions in the statistics: rows examined so far (in all loops but the outermost, as in the paper), and the first of
the numbers of keys of each index."""

_DONE, _DEAD, _WANTED, _LINKED = range(4)

_INPUT, _INDEX, _SOURCE, _SOURCE_INDEX, _FIRST_CHECK, _LAST_CHECK = range(6)
_OPERATION, _MINE, _LEVEL, _THEIRS = range(4)


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
    """Whether the remaining predicates hold between a row and those bound in outer levels."""
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


@inlined
def _live(sign: int, now: int, origin: int, mine: int, ts: int, end: int) -> bool:
    """Whether a row with this life meets a row of the origin that arrives now, or ends now (`sign` negative).

    At one instant rows end before others arrive, and those of an input do so before those of the next: of several rows of a
    result that arrive together the last gives it, and of several that end together the first retracts it.
    """
    if sign > 0:
        return end > now and (ts < now or (ts == now and mine < origin))
    return ts < now and (end > now or (end == now and mine > origin))


@kernel
def _live_together(
    sign: int, now: int, origin: int, depth: int, programs: Array, bound: Ints, inputs: Ints, rows: Ints
) -> bool:  # fmt: skip
    """Whether the rows bound above the origin meet its row that arrives or ends now."""
    for level in range(depth):
        j = programs[origin, level, _INPUT]
        at = inputs[j, ROWS] + inputs[j, WORDS] * bound[level]
        if not _live(sign, now, origin, j, rows[at + TS], rows[at + EXP]):
            return False
    return True


def advance(
    explicit: bool, tau: int, lazy: bool, event_ts: Ints, event_sign: Signs, event_slots: Ints, starts: Ints, stops: Ints,
    programs: Array, checks: Ints, emitted: Ints,
    inputs: Ints, index: Ints, links: Ints, pack_at: Ints, packed: Ints, rows: Ints, lists: Ints, stats: Ints,
    ts: Ints, exp: Ints, sign: Signs, slots: Array,
) -> tuple[int, Array, Ints, Ints, Signs, Array]:  # fmt: skip
    """Apply the events of all inputs; those of input j are in [starts[j], stops[j]), which is consumed.

    With `tau` 0 they are applied one by one in order of (time, ends first, input). Otherwise those of ((k-1) tau, k tau]
    are applied together: rows are added to their lists, then joined, then ended rows are removed (lazy re-evaluation and
    expiration, paper 4, 3.3 and 3.6). With `lazy`, expired rows may still be in their lists (3.2: eager evaluation, lazy
    expiration). Results are written to `ts`, `exp`, `sign` (if the output is explicit) and, for input j, to row
    `emitted[j]` of `slots` (if not negative); with `tau` 0 they are in order of time. Returns their number, the (attribute,
    key) pairs that had no row at some instant, and the four arrays, enlarged if necessary.

    It is not compiled: a compiled caller would be optimized together with the loop nest a second time, and creating an
    array in compiled code adds seconds of compilation. It is called once per batch.
    """
    dead = np.empty((2, int((stops - starts).sum()) * len(index) + 1), np.int64)
    done = np.zeros(4, np.int64)
    work = np.empty((6, len(inputs)), np.int64)
    while (starts < stops).any():
        if done[_WANTED] > len(ts):
            size, made = max(2 * len(ts), int(done[_WANTED])), int(done[_DONE])
            ts, exp, slots = (_longer(array, made, size) for array in (ts, exp, slots))
            sign = _longer(sign, made, size) if explicit else sign
        _run(
            explicit, tau, lazy, event_ts, event_sign, event_slots, starts, stops, programs, checks, emitted, inputs, index,
            links, pack_at, packed, rows, lists, stats, work[0], work[1], work[2], work[3], work[4], work[5], done,
            dead, ts, exp, sign, slots,
        )  # fmt: skip
    return int(done[_DONE]), dead[:, : done[_DEAD]], ts, exp, sign, slots


def _longer(array: Array, filled: int, size: int) -> Array:
    """A copy of the array with space for `size` results."""
    longer = np.empty((*array.shape[:-1], size), array.dtype)
    longer[..., :filled] = array[..., :filled]
    return longer


@kernel
def _run(
    explicit: bool, tau: int, lazy: bool, event_ts: Ints, event_sign: Signs, event_slots: Ints, starts: Ints, stops: Ints,
    programs: Array, checks: Ints, emitted: Ints,
    inputs: Ints, index: Ints, links: Ints, pack_at: Ints, packed: Ints, rows: Ints, lists: Ints, stats: Ints,
    ends: Ints, cursor: Ints, pairs: Ints, wanted: Ints, bound: Ints, least: Ints, done: Ints, dead: Array,
    out_ts: Ints, out_exp: Ints, out_sign: Signs, out_slots: Array,
) -> None:  # fmt: skip
    """Continue until the events end or the output is full; a turn that does not fit is repeated with more space.

    This is one function because each call of another would update the reference counts of all of these arrays.
    """
    n = len(inputs)
    bottom, room = n - 1, len(out_ts)
    timed = tau > 0
    done[_WANTED] = 0
    while True:
        # A turn is one event, or all events up to the next re-execution. Those of input j are in [starts[j], ends[j]).
        lowest, highest = 0, n
        if not timed:
            chosen = -1
            for j in range(n):
                if starts[j] == stops[j]:
                    continue
                if chosen >= 0:
                    mine, theirs = event_ts[starts[chosen]], event_ts[starts[j]]
                    if mine < theirs or (mine == theirs and event_sign[starts[chosen]] <= event_sign[starts[j]]):
                        continue
                chosen = j
            if chosen < 0:
                return
            ends[chosen] = starts[chosen] + 1
            lowest, highest = chosen, chosen + 1
        else:
            turn = np.int64(FOREVER)
            for j in range(n):
                if starts[j] < stops[j]:
                    turn = min(turn, (event_ts[starts[j]] - 1) // tau)
            if turn == np.int64(FOREVER):
                return
            for j in range(n):
                ends[j] = starts[j]
                while ends[j] < stops[j] and (event_ts[ends[j]] - 1) // tau == turn:
                    ends[j] += 1

        # A row that ends in this turn has its end, which was unknown if it is retracted.
        if timed and explicit:
            for j in range(n):
                for event in range(starts[j], ends[j]):
                    if event_sign[event] < 0:
                        rows[inputs[j, ROWS] + inputs[j, WORDS] * event_slots[event] + EXP] = event_ts[event]

        # Insert new rows at the front of their lists.
        for j in range(lowest, highest if done[_LINKED] == 0 else lowest):
            base, words = inputs[j, ROWS], inputs[j, WORDS]
            for event in range(starts[j], ends[j]):
                if event_sign[event] < 0:
                    continue
                slot = event_slots[event]
                for x in range(inputs[j, FIRST_INDEX], inputs[j, LAST_INDEX]):
                    at = index[x, LINKS] + 2 * slot
                    code, buckets, position = np.int64(links[at + 1]), index[x, BUCKETS], index[x, PREVIOUS]
                    record = index[x, LISTS] + index[x, STEP] * code
                    lists[record] += 1
                    lists[record + index[x, MEMBER]] += 1
                    if lists[record + index[x, MEMBER]] == 1:
                        stats[STATS + x] += 1
                    if buckets > 0:
                        bucket = index[x, PACKS] + code % buckets
                        last = pack_at[bucket] + 2 * packed[bucket]
                        links[last], links[last + 1] = code, slot
                        rows[base + words * slot + position] = packed[bucket]
                        packed[bucket] += 1
                        continue
                    head = record + index[x, MEMBER] + 1
                    following = lists[head]
                    links[at] = following
                    rows[base + words * slot + position] = 0
                    if following > 0:
                        rows[base + words * (following - 1) + position] = slot + 1
                    lists[head] = slot + 1
        done[_LINKED] = 1

        # Join them, origin by origin, with all other inputs; ends are joined too if results are retracted.
        count, probes = done[_DONE], 0
        for task in range(2 * lowest, 2 * highest):
            origin, sign = task // 2, 1 - 2 * (task % 2)
            if (sign < 0 and not explicit) or (not timed and event_sign[starts[origin]] != sign):
                continue
            depth, at_origin, entering, now = 0, -1, True, np.int64(0)
            while depth >= 0:
                mine, x, source = (
                    programs[origin, depth, _INPUT], programs[origin, depth, _INDEX], programs[origin, depth, _SOURCE]
                )  # fmt: skip
                if entering:
                    entering = False
                    key = np.int64(0)
                    if source >= 0:
                        key = np.int64(
                            links[index[programs[origin, depth, _SOURCE_INDEX], LINKS] + 2 * bound[source] + 1]
                        )
                    wanted[depth] = key
                    if mine == origin:
                        cursor[depth] = starts[origin]
                        at_origin = depth
                    elif index[x, BUCKETS] > 0:
                        bucket = index[x, PACKS] + key % index[x, BUCKETS]
                        cursor[depth], pairs[depth] = packed[bucket], pack_at[bucket]
                    else:
                        cursor[depth] = lists[index[x, LISTS] + index[x, STEP] * key + index[x, MEMBER] + 1]
                first_check, last_check = programs[origin, depth, _FIRST_CHECK], programs[origin, depth, _LAST_CHECK]
                key = wanted[depth]
                base, base_row, words = index[x, LINKS], inputs[mine, ROWS], inputs[mine, WORDS]
                above = least[depth - 1] if depth > 0 else np.int64(FOREVER)
                column, begun, found = emitted[mine], count, -1
                past = (timed or lazy) and depth > at_origin >= 0
                if mine == origin:
                    event = cursor[depth]
                    while event < ends[origin] and found < 0:
                        slot = event_slots[event]
                        matches = event_sign[event] == sign and (source < 0 or links[base + 2 * slot + 1] == key)
                        if matches and first_check < last_check:
                            matches = _checked(
                                first_check, last_check, checks, slot, mine, origin, programs, bound, inputs, index,
                                links, rows,
                            )  # fmt: skip
                        if matches and (timed or lazy) and depth > 0:
                            matches = _live_together(
                                sign, event_ts[event], origin, depth, programs, bound, inputs, rows
                            )  # fmt: skip
                        probes += 1 if depth > 0 else 0
                        if matches:
                            found = slot
                            now = event_ts[event]
                        event += 1
                    cursor[depth] = event
                    if found >= 0 and depth == bottom:
                        if count < room:
                            out_exp[count] = min(above, rows[base_row + words * found + EXP])
                            if column >= 0:
                                out_slots[column, count] = found
                        count += 1
                elif depth == bottom and not past and first_check == last_check:
                    # The innermost loop with only keys to check, the usual case, is separate so that it is tight.
                    # Unsigned, because numba tests signed indexes for negative values.
                    node = cursor[depth]
                    if index[x, BUCKETS] > 0:
                        position = np.uint64(pairs[depth])
                        stop = position + np.uint64(2 * node)
                        probes += node
                        node = 0
                        while position < stop:
                            if links[position] == key:
                                slot = np.int64(links[position + np.uint64(1)])
                                if count < room:
                                    out_exp[count] = min(above, rows[np.uint64(base_row + words * slot + EXP)])
                                    if column >= 0:
                                        out_slots[column, count] = slot
                                count += 1
                            position += np.uint64(2)
                    while node > 0:
                        slot = node - 1
                        position = np.uint64(base + 2 * slot)
                        node = np.int64(links[position])
                        probes += 1
                        if links[position + np.uint64(1)] == key:
                            if count < room:
                                out_exp[count] = min(above, rows[np.uint64(base_row + words * slot + EXP)])
                                if column >= 0:
                                    out_slots[column, count] = slot
                            count += 1
                else:
                    node = cursor[depth]
                    scanned, pair = index[x, BUCKETS] > 0, pairs[depth]
                    while node > 0:
                        probes += 1 if depth > 0 else 0
                        if scanned:
                            node -= 1
                            position = np.uint64(pair + 2 * node)
                            if links[position] != key:
                                continue
                            slot = np.int64(links[position + np.uint64(1)])
                        else:
                            slot = node - 1
                            position = np.uint64(base + 2 * slot)
                            node = np.int64(links[position])
                            if links[position + np.uint64(1)] != key:
                                continue
                        if past:
                            at = base_row + words * slot
                            if not _live(sign, int(now), origin, mine, rows[at + TS], rows[at + EXP]):
                                continue
                        if first_check < last_check and not _checked(
                            first_check, last_check, checks, slot, mine, origin, programs, bound, inputs, index, links,
                            rows,
                        ):  # fmt: skip
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
                if depth < bottom and found >= 0:
                    bound[depth] = found
                    least[depth] = min(above, rows[base_row + words * found + EXP])
                    depth += 1
                    entering = True
                    continue
                if depth == bottom:
                    # The values common to all results of this loop.
                    for result in range(begun, count):
                        out_ts[result] = now
                    if explicit:
                        for result in range(begun, count):
                            out_sign[result] = sign
                    for level in range(bottom):
                        column = emitted[programs[origin, level, _INPUT]]
                        if column >= 0:
                            slot = bound[level]
                            for result in range(begun, count):
                                out_slots[column, result] = slot
                    if found >= 0:
                        continue
                depth -= 1
                if depth < at_origin:
                    at_origin = -1
            if count > room:
                done[_WANTED] = count
                return
        done[_DONE] = count
        done[_LINKED] = 0
        stats[PROBES] += probes

        # Remove ended rows from their lists, and record keys without rows.
        for j in range(lowest, highest):
            base, words = inputs[j, ROWS], inputs[j, WORDS]
            for event in range(starts[j], ends[j]):
                if event_sign[event] > 0:
                    continue
                slot = event_slots[event]
                for x in range(inputs[j, FIRST_INDEX], inputs[j, LAST_INDEX]):
                    at = index[x, LINKS] + 2 * slot
                    code, buckets, position = np.int64(links[at + 1]), index[x, BUCKETS], index[x, PREVIOUS]
                    record = index[x, LISTS] + index[x, STEP] * code
                    lists[record] -= 1
                    lists[record + index[x, MEMBER]] -= 1
                    if lists[record + index[x, MEMBER]] == 0:
                        stats[STATS + x] -= 1
                    if lists[record] == 0 and index[x, ATTRIBUTE] >= 0:
                        dead[0, done[_DEAD]] = index[x, ATTRIBUTE]
                        dead[1, done[_DEAD]] = code
                        done[_DEAD] += 1
                    if buckets > 0:
                        bucket = index[x, PACKS] + code % buckets
                        packed[bucket] -= 1
                        gap = rows[base + words * slot + position]
                        at, last = pack_at[bucket] + 2 * gap, pack_at[bucket] + 2 * packed[bucket]
                        links[at], links[at + 1] = links[last], links[last + 1]
                        rows[base + words * np.int64(links[at + 1]) + position] = gap
                        continue
                    head = record + index[x, MEMBER] + 1
                    following, previous = np.int64(links[at]), rows[base + words * slot + position]
                    if previous > 0:
                        links[index[x, LINKS] + 2 * (previous - 1)] = following
                    else:
                        lists[head] = following
                    if following > 0:
                        rows[base + words * (following - 1) + position] = previous
            starts[j] = ends[j]
