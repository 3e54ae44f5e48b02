"""Deriving the rows of one channel from the log of another: columns are copied or computed, rows are filtered and cut.

An old log serves a reader of a new channel if it holds every row that the reader's filter accepts, that is, if one of its
own filters has a subset of that filter's conjuncts, and if the reader's columns and the remaining conjuncts can be computed
from the old columns. A new channel may have some readers that an old log serves and some that it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from sash.operators.scalar import evaluate, supports
from sash.physical.channels import MASK_BITS, Channel, Channels, Reader, Scan, ScanRows
from sash.physical.state_names import expression_text
from sash.plan.compound import rewrite, walk
from sash.plan.expressions import Column, Expression
from sash.plan.types import BIGINT, TIMESTAMP, TIMESTAMP_NTZ
from sash.state.changes import ChangeBatch
from sash.state.memory import Ints


@dataclass(frozen=True)
class FilterRule:
    """Which old rows a new filter accepts: those with this bit of the old mask (None: all) for which `rest` holds."""

    bit: int | None
    rest: tuple[Expression, ...]


@dataclass(frozen=True)
class ColumnRule:
    """A new column: an expression over the old columns, for the rows that filter `guard` accepts; None: NULL."""

    expression: Expression | None
    dtype: pa.DataType
    guard: int | None = None


@dataclass(frozen=True)
class RowProgram:
    """Computes the rows of a new channel from those of an old one.

    `filters` has a rule per filter of the new channel (None: it accepts no old row), `everything` one for readers of all
    rows. `masked` is whether the new rows have masks. With `time`, expressions may read the rows' times, of this type, as
    another column after all others.
    """

    columns: tuple[ColumnRule, ...]
    filters: tuple[FilterRule | None, ...]
    everything: FilterRule | None
    old_columns: int
    masked: bool
    horizon: int | None = None
    time: pa.DataType | None = None

    @property
    def plain(self) -> bool:
        """Whether rows stay as they are: all columns in their places, and every filter that of the same bit, or of all rows."""
        places = all(
            isinstance(rule.expression, Column) and rule.expression.index == place and rule.guard is None
            for place, rule in enumerate(self.columns)
        )
        rules = [*self.filters, *([] if self.everything is None else [self.everything])]
        same = all(rule is not None and not rule.rest for rule in rules)
        bits = [None if rule is None else rule.bit for rule in self.filters]
        wanted = list(range(len(bits))) if self.masked else [None] * len(bits)
        return places and same and bits == wanted and (self.everything is None or self.everything.bit is None)

    def run(self, rows: ChangeBatch, clock: int) -> ChangeBatch:
        """The new rows, without those that ended before the clock."""
        if self.horizon is not None:
            live = np.flatnonzero(rows.ts + self.horizon >= clock)
            rows = rows if len(live) == len(rows) else rows.take(live)
        if self.time is not None:
            rows = rows.with_columns([*rows.columns, pa.array(rows.ts).cast(self.time)])
        accepted = [self._accepted(rule, rows) for rule in self.filters]
        kept = np.zeros(len(rows), np.bool_)
        for some in accepted:
            kept |= some
        if self.everything is not None:
            kept |= self._accepted(self.everything, rows)
        places = np.flatnonzero(kept)
        if len(places) < len(rows):
            rows, accepted = rows.take(places), [some[places] for some in accepted]
        columns = [self._column(rule, rows, accepted) for rule in self.columns]
        if self.masked:
            columns += _masks(accepted, len(rows))
        return ChangeBatch(rows.ts, rows.exp, rows.sign, tuple(columns))

    def _accepted(self, rule: FilterRule | None, rows: ChangeBatch) -> Any:
        if rule is None:
            return np.zeros(len(rows), np.bool_)
        kept = np.ones(len(rows), np.bool_)
        if rule.bit is not None:
            words = rows.columns[self.old_columns + rule.bit // MASK_BITS].to_numpy(zero_copy_only=False)
            kept = (words >> (rule.bit % MASK_BITS)) & 1 == 1
        for predicate in rule.rest:
            places = np.flatnonzero(kept)
            passed = evaluate(predicate, rows.take(places).columns, len(places))
            kept[places] = passed.fill_null(False).to_numpy(zero_copy_only=False)
        return kept

    @staticmethod
    def _column(rule: ColumnRule, rows: ChangeBatch, accepted: list[Any]) -> pa.Array:
        if rule.expression is None:
            return pa.nulls(len(rows), rule.dtype)
        if isinstance(rule.expression, Column):
            return rows.columns[rule.expression.index]
        if rule.guard is None:
            return evaluate(rule.expression, rows.columns, len(rows))
        places = np.flatnonzero(accepted[rule.guard])
        made = evaluate(rule.expression, rows.take(places).columns, len(places))
        positions = np.full(len(rows), -1, np.int64)
        positions[places] = np.arange(len(places))
        return made.take(pa.array(positions, mask=positions < 0))


def _masks(accepted: list[Any], rows: int) -> list[pa.Array]:
    words = []
    for start in range(0, len(accepted), MASK_BITS):
        word: Ints = np.zeros(rows, np.int64)
        for bit, some in enumerate(accepted[start : start + MASK_BITS]):
            word |= some.astype(np.int64) << bit
        words.append(pa.array(word))
    return words


@dataclass(frozen=True)
class Derivation:
    """Rows of a new channel from an old log. `program` is None if they are the same; `served` are the readers whose rows
    come from it."""

    old: Channel
    program: RowProgram | None
    served: frozenset[Reader]

    def leaves(self, new: Channel) -> bool:
        """Whether the old log can be that of the new channel as it is. Rows that end earlier now may stay in it for a while."""
        if self.program is None:
            return True
        old = self.old
        if isinstance(old.source, ScanRows) and isinstance(new.source, ScanRows):
            alike = (
                len(old.source.filters) == len(new.source.filters) and old.source.everything == new.source.everything
            )
        else:
            alike = not isinstance(old.source, ScanRows) and not isinstance(new.source, ScanRows)
        same = old.keys == new.keys and old.dtypes == new.dtypes and old.masks == new.masks
        return new.kind == "time" and old.kind == "time" and alike and same and self.program.plain


def derivations(old_channels: Channels, new: Channel, new_channels: Channels) -> list[Derivation]:
    """The old logs to make a new channel's rows from: first the one that serves most readers, then others for the rest.

    Every reader is served by one log. Where several logs hold a row, it is in the new one several times, with different
    bits in its mask; readers without a bit would read it twice, so such a channel is made from one log.
    """
    found: list[Derivation] = []
    served: frozenset[Reader] = frozenset()
    while len(served) < len(new.readers):
        made = [_derive(old, old_channels, new, new_channels) for old in old_channels.channels]
        options = [_without(one, new, served) for one in made if one is not None]
        best = max(options, key=lambda one: _rank(one, new), default=None)
        if best is None or not best.served:
            return found
        found.append(best)
        served |= best.served
        if not new.masks or (isinstance(new.source, ScanRows) and new.source.everything):
            return found
    return found


def _rank(one: Derivation, new: Channel) -> tuple[bool, int, int]:
    """The same log first, then the one that serves most readers, then the one that goes back furthest."""
    return one.program is None, len(one.served), one.old.horizon


def _without(one: Derivation, new: Channel, served: frozenset[Reader]) -> Derivation:
    """The derivation without the filters of readers that have their rows from another log."""
    taken = {reader.filter for reader in served}
    if not served or one.program is None:
        return one
    left = frozenset(reader for reader in one.served if reader.filter not in taken)
    wanted = {reader.filter for reader in left}
    filters = tuple(rule if bit in wanted else None for bit, rule in enumerate(one.program.filters))
    return Derivation(one.old, replace(one.program, filters=filters), left)


def _derive(old: Channel, old_channels: Channels, new: Channel, new_channels: Channels) -> Derivation | None:
    """How to make a new channel's rows from an old log; None if no reader can be served from it."""
    if old.identity == new.identity:
        return Derivation(old, None, frozenset(new.readers))
    if old.owner is not None or new.owner is not None or old.kind != new.kind:
        return None
    if isinstance(old.source, ScanRows) and isinstance(new.source, ScanRows) and new.kind == "time":
        return _from_scan(old, old_channels.scans[old.source.scan], new, new_channels.scans[new.source.scan])
    if _content(old) != _content(new):
        return None
    if new.kind == "rows":
        assert old.window is not None
        assert new.window is not None
        if new.window.partition != old.window.partition or new.window.count > old.window.count:
            return None
    columns = tuple(ColumnRule(Column(n, "", dtype), dtype) for n, dtype in enumerate(new.dtypes))
    cut = new.horizon if new.kind == "time" and new.horizon < old.horizon else None
    program = RowProgram(columns, (), FilterRule(None, ()), len(old.columns), False, cut)
    return Derivation(old, program, frozenset(new.readers))


_PLACEMENT = frozenset({"keys", "horizon", "window", "single", "local", "owner", "copy"})


def _content(channel: Channel) -> dict[str, Any]:
    """What the rows are, apart from where they are sent and when they end."""
    return {name: value for name, value in channel.description.items() if name not in _PLACEMENT}


def _from_scan(old: Channel, old_scan: Scan, new: Channel, new_scan: Scan) -> Derivation | None:
    assert isinstance(old.source, ScanRows)
    assert isinstance(new.source, ScanRows)
    if old_scan.stream.name.lower() != new_scan.stream.name.lower() or _time(old_scan) != _time(new_scan):
        return None
    known = _Known(old, old.source, old_scan, new_scan)
    filters = {number: known.filter(new_scan.filters[number]) for number in new.source.filters}
    everything = known.filter(()) if new.source.everything else None
    masked = new.masks > 0
    rules = tuple(known.column(new_scan, number, new.source.filters, filters) for number in new.source.columns)
    if any(rules[key].expression is None for key in new.keys):
        return None
    served = set()
    for reader in new.readers:
        if reader.filter is not None:
            rule = filters[new.source.filters[reader.filter]]
        elif new.source.everything:
            rule = everything
        else:
            rule = filters[new.source.filters[0]]
        if rule is not None and all(rules[column].expression is not None for column in reader.columns):
            served.add(reader)
    if not served:
        return None
    ordered = tuple(filters[number] for number in new.source.filters)
    cut = new.horizon if new.horizon < old.horizon else None
    program = RowProgram(rules, ordered, everything, len(old.columns), masked, cut, known.time)
    return Derivation(old, program, frozenset(served))


_TIMES = (BIGINT, TIMESTAMP, TIMESTAMP_NTZ)
"""The types of a time column whose values follow from the times of rows."""


def _time(scan: Scan) -> str:
    return scan.stream.schema[scan.stream.time].name


class _Known:
    """What an old channel of a scan holds: its filters as sets of conjuncts, and its columns by their texts."""

    def __init__(self, channel: Channel, source: ScanRows, scan: Scan, new_scan: Scan) -> None:
        self._names = [field.name for field in scan.stream.schema]
        self._new_names = [field.name for field in new_scan.stream.schema]
        sets = [frozenset(self._text(one, self._names) for one in scan.filters[number]) for number in source.filters]
        self._filters = sets
        self._masked = channel.masks > 0
        self._everything = source.everything
        self._columns: dict[str, list[tuple[int, frozenset[str]]]] = {}
        self._plain: dict[str, int] = {}
        for place, number in enumerate(source.columns):
            column = scan.columns[number]
            guard: frozenset[str] = frozenset()
            if column.guard is not None:
                guard = frozenset(self._text(one, self._names) for one in scan.filters[column.guard])
            self._columns.setdefault(self._text(column.expression, self._names), []).append((place, guard))
            if isinstance(column.expression, Column) and column.guard is None:
                self._plain[self._text(column.expression, self._names)] = place
        field = scan.stream.schema[scan.stream.time]
        moment = self._text(Column(scan.stream.time, field.name, field.dtype), self._names)
        self.time = field.dtype if field.dtype in _TIMES and moment not in self._plain else None
        if self.time is not None:
            self._plain[moment] = len(channel.dtypes)

    @staticmethod
    def _text(expression: Expression, names: list[str]) -> str:
        return expression_text(expression, names)

    def filter(self, conjuncts: tuple[Expression, ...]) -> FilterRule | None:
        """The rule of a filter with these conjuncts: from the narrowest old filter that holds all its rows."""
        wanted = {self._text(one, self._new_names): one for one in conjuncts}
        choices: list[tuple[frozenset[str], int | None]] = [
            (some, bit if self._masked else None) for bit, some in enumerate(self._filters) if some <= wanted.keys()
        ]
        if self._everything:
            choices.append((frozenset(), None))
        for some, bit in sorted(choices, key=lambda choice: -len(choice[0])):
            rest = [self.computed(one) for text, one in wanted.items() if text not in some]
            if None not in rest:
                return FilterRule(bit, tuple(one for one in rest if one is not None))
        return None

    def column(
        self, scan: Scan, number: int, chosen: tuple[int, ...], filters: Mapping[int, FilterRule | None]
    ) -> ColumnRule:
        """The rule of a column of the new scan."""
        wanted = scan.columns[number]
        dtype = wanted.expression.dtype
        guard: frozenset[str] = frozenset()
        if wanted.guard is not None:
            guard = frozenset(self._text(one, self._new_names) for one in scan.filters[wanted.guard])
        text = self._text(wanted.expression, self._new_names)
        for place, old_guard in self._columns.get(text, ()):
            if old_guard <= guard:
                return ColumnRule(Column(place, "", dtype), dtype)
        made = self.computed(wanted.expression)
        if wanted.guard is None or made is None:
            return ColumnRule(made, dtype)
        if wanted.guard not in chosen or filters[wanted.guard] is None:
            return ColumnRule(None, dtype)
        return ColumnRule(made, dtype, chosen.index(wanted.guard))

    def computed(self, expression: Expression) -> Expression | None:
        """The expression over the old columns, if it can be computed from them."""
        text = self._text(expression, self._new_names)
        for place, guard in self._columns.get(text, ()):
            if not guard:
                return Column(place, "", expression.dtype)
        places = {part.index: self._place(part) for part in walk(expression) if isinstance(part, Column)}
        known = {index: place for index, place in places.items() if place is not None}
        if supports(expression) is not None or len(known) < len(places):
            return None
        return rewrite(
            expression, lambda part: replace(part, index=known[part.index]) if isinstance(part, Column) else None
        )

    def _place(self, column: Column) -> int | None:
        return self._plain.get(self._text(column, self._new_names))
