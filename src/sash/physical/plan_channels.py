"""Makes the scans and channels of a plan (`channels.py`): inputs of stages that can share a channel are grouped."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sash.physical.channels import (
    MASK_BITS,
    Channel,
    Channels,
    Kind,
    LegRows,
    LookupRows,
    Reader,
    Scan,
    ScanColumn,
    ScanRows,
    Source,
    StageRows,
    StartClock,
    is_constant,
    needs_snapshots,
)
from sash.physical.leg_parts import LegParts, leg_parts
from sash.physical.nodes import STAMPED, PhysicalPlan, RelationLeg, Stage, StageInput, StreamLeg, UpdateLeg
from sash.physical.state_names import digest, expression_text, tree_text, value_text
from sash.plan.expression_safety import may_fail
from sash.plan.expressions import Expression
from sash.plan.nodes import Range, Rows, Stream


def channels_of(plan: PhysicalPlan, share: bool) -> Channels:
    """The channels of a plan. Without `share` there is one per stage input, with exactly the columns of its leg."""
    return _Builder(plan, share).build()


@dataclass
class _Input:
    """An input of a stage while channels are made: how its rows end, and what it reads, as texts."""

    stage: Stage
    index: int
    given: StageInput
    kind: Kind
    horizon: int
    window: Rows | None
    owner: int | None
    parts: LegParts | None
    text: dict[str, Any]


class _Builder:
    def __init__(self, plan: PhysicalPlan, share: bool) -> None:
        self._plan = plan
        self._share = share
        streams = [leg if isinstance(leg, StreamLeg) else None for leg in plan.legs]
        self._parts = [None if leg is None else leg_parts(leg) for leg in streams]
        self._identities: list[str] = []

    def build(self) -> Channels:
        inputs: list[_Input] = []
        for stage in self._plan.stages:
            found = [self._input(stage, index) for index in range(len(stage.inputs))]
            self._identities.append(self._identity(stage, found))
            inputs += [one for one in found if one is not None]
        groups: dict[str, list[_Input]] = {}
        for one in inputs:
            # Updates that do not hold the clock back are moved to the clock of the stage that reads them.
            own = not self._share or one.owner is not None or one.given.leaf.follows
            key = f"{one.stage.index} {one.index}" if own else self._shared_by(one)
            groups.setdefault(key, []).append(one)
        scans = self._scans(groups.values())
        made: list[Channel] = []
        for group in groups.values():
            made.append(self._channel(len(made), group, scans))
        return Channels(tuple(scan.scan for scan in scans.values()), _numbered(made), tuple(self._identities))

    def _input(self, stage: Stage, index: int) -> _Input | None:
        given = stage.inputs[index]
        leaf = given.leaf
        owner = stage.index if needs_snapshots(self._plan, stage) else None
        if leaf.leg is None:
            assert leaf.stage is not None
            kind: Kind = "stamped" if leaf.expiry in STAMPED else "explicit"
            text = {"stage": self._identities[leaf.stage], "local": given.local, "keys": list(given.keys)}
            return _Input(stage, index, given, kind, 0, None, owner, None, text)
        leg = self._plan.legs[leaf.leg]
        if isinstance(leg, RelationLeg):
            if index or not is_constant(self._plan, stage):
                return None
            return _Input(stage, index, given, "stamped", 0, None, None, None, {"start": value_text(leg.node)})
        if isinstance(leg, UpdateLeg):
            text = {"updates": value_text(leg.relation), "keys": list(given.keys)}
            kind = "explicit" if leg.relation.constants else "endless"
            return _Input(stage, index, given, kind, 0, None, owner, None, text)
        window = leg.window if isinstance(leg.window, Rows) else None
        kind = "rows" if window is not None else "time" if isinstance(leg.window, Range) else "endless"
        parts = self._parts[leaf.leg]
        read = {"leg": value_text(leg.node), "stream": leg.stream.lower()} if parts is None else _part_text(parts)
        text = {**read, "keys": list(given.keys)}
        horizon = leaf.horizon if kind == "time" else 0
        return _Input(stage, index, given, kind, horizon, window, owner, parts if self._share else None, text)

    def _identity(self, stage: Stage, inputs: Sequence[_Input | None]) -> str:
        """What the stage computes, over what it reads of its channels."""
        leaves: dict[int, str] = {}
        for given, read_by in zip(stage.inputs, inputs, strict=True):
            leg = None if given.leaf.leg is None else self._plan.legs[given.leaf.leg]
            window = value_text(leg.window) if isinstance(leg, StreamLeg) else None
            relation = value_text(leg.node) if isinstance(leg, RelationLeg) else None
            read = relation if read_by is None else json.dumps(read_by.text, sort_keys=True)
            # Rows that are retracted are so by name, whether or not some may expire: earlier versions knew no others.
            ended = "explicit" if given.leaf.expiry == "strict" else given.leaf.expiry
            leaves[id(given.leaf)] = f"{read} {window} {given.leaf.follows} {given.leaf.timed} {ended}"
        tree = tree_text(stage.root, leaves, layout=needs_snapshots(self._plan, stage))
        order = [leaves[id(given.leaf)] for given in stage.inputs]
        timing = "".join(
            f" {name} {value}"
            for name, value in (("probe", stage.probe), ("patience", stage.patience))
            if value is not None
        )
        found = digest(f"{tree} {order} {stage.single} {stage.strategy} {stage.tau}{timing}")
        equal = sum(known.partition("+")[0] == found for known in self._identities)
        return f"{found}+{equal}" if equal else found

    def _shared_by(self, one: _Input) -> str:
        """Inputs with equal texts share a channel."""
        given, text = one.given, dict(one.text)
        if one.parts is not None and one.parts.lookups is None and one.kind == "time":
            # Readers may differ in filters and columns, and in the positions of the key among them.
            names = [field.name for field in one.parts.stream.schema]
            text = {
                "stream": one.parts.stream.name.lower(),
                "keys": [expression_text(one.parts.columns[key], names) for key in given.keys],
                "guards": [_guard_text(one.parts, one.parts.columns[key]) for key in given.keys],
            }
        return json.dumps([text, one.kind, value_text(one.window)], sort_keys=True)

    def _scans(self, groups: Any) -> dict[str, _Scanned]:
        found: dict[str, _Scanned] = {}
        for group in groups:
            for one in group:
                if one.parts is not None:
                    name = one.parts.stream.name.lower()
                    found.setdefault(name, _Scanned(len(found), one.parts.stream)).add(one.parts)
        for scanned in found.values():
            scanned.finish()
        return found

    def _channel(self, index: int, group: list[_Input], scans: dict[str, _Scanned]) -> Channel:
        first = group[0]
        horizon = max(one.horizon for one in group)
        leg = None if first.given.leaf.leg is None else self._plan.legs[first.given.leaf.leg]
        schema = first.given.leaf.schema
        source: Source = LegRows(first.given.leaf.leg or 0)
        if first.given.leaf.stage is not None:
            source = StageRows(first.given.leaf.stage, first.given.local, first.given.leaf.expiry == "strict")
        elif isinstance(leg, RelationLeg):
            source = StartClock()
        made = Channel(
            index=index,
            source=source,
            keys=() if isinstance(source, StartClock) else first.given.keys,
            columns=tuple(field.dtype for field in schema),
            kind=first.kind,
            horizon=horizon,
            readers=tuple(Reader(one.stage.index, one.index, None, tuple(range(len(schema)))) for one in group),
            description={
                **first.text, "kind": first.kind, "horizon": horizon,
                "window": value_text(first.window), "single": first.stage.single,
                "owner": None if first.owner is None else self._identities[first.owner],
                "types": [str(field.dtype) for field in schema],
            },
            window=first.window,
            owner=first.owner,
            stream=leg.stream if isinstance(leg, StreamLeg) else None,
        )  # fmt: skip
        if first.parts is None:
            return made
        scanned = scans[first.parts.stream.name.lower()]
        if first.parts.lookups is not None:
            columns = tuple(scanned.column(first.parts, column) for column in first.parts.columns)
            assert first.given.leaf.leg is not None
            lookups = LookupRows(
                scanned.index, columns, scanned.filter(first.parts), first.parts.lookups, first.given.leaf.leg
            )
            return replace(made, source=lookups)
        return _merged(made, group, scanned)


def _merged(made: Channel, group: list[_Input], scanned: _Scanned) -> Channel:
    """The channel with the union of its readers' columns, and a mask if they filter differently.

    A count window orders rows by all their columns, so its readers have the same ones.
    """
    counted = made.kind != "time"
    read = [[scanned.column(_known(one), column) for column in _known(one).columns] for one in group]
    columns = read[0] if counted else sorted({column for some in read for column in some})
    chosen = [scanned.filter(_known(one)) for one in group]
    filters = sorted({number for number in chosen if number is not None})
    everything = None in chosen
    masked = len(filters) > 1 or (everything and bool(filters))
    readers = tuple(
        Reader(
            one.stage.index,
            one.index,
            filters.index(number) if masked and number is not None else None,
            tuple(range(len(columns))) if counted else tuple(columns.index(column) for column in some),
        )
        for one, some, number in zip(group, read, chosen, strict=True)
    )
    keys = group[0].given.keys
    scan = scanned.scan
    description = {
        **made.description,
        "conjuncts": None, "columns": [scanned.texts[column] for column in columns],
        "filters": [scanned.filter_texts[number] for number in filters], "everything": everything,
        "keys": [scanned.texts[read[0][key]] for key in keys],
        "types": [str(scan.columns[column].expression.dtype) for column in columns],
    }  # fmt: skip
    return replace(
        made,
        source=ScanRows(scanned.index, tuple(columns), tuple(filters), everything),
        keys=keys if counted else tuple(columns.index(read[0][key]) for key in keys),
        columns=tuple(scan.columns[column].expression.dtype for column in columns),
        readers=readers,
        description=description,
        masks=-(-len(filters) // MASK_BITS) if masked else 0,
    )


class _Scanned:
    """A scan while it is made: filters and columns by their texts, which order them."""

    def __init__(self, index: int, stream: Stream) -> None:
        self.index = index
        self._stream = stream
        self._filters: dict[str, tuple[Expression, ...]] = {}
        self._columns: dict[str, tuple[Expression, str | None]] = {}
        self._everything = False

    def add(self, parts: LegParts) -> None:
        text = _filter_text(parts)
        if text is None:
            self._everything = True
        else:
            self._filters[text] = parts.conjuncts
        for column in parts.columns:
            self._columns[_column_text(parts, column)] = column, _guard_text(parts, column)

    def finish(self) -> None:
        self.filter_texts, self.texts = sorted(self._filters), sorted(self._columns)
        columns = []
        for text in self.texts:
            expression, guard = self._columns[text]
            columns.append(ScanColumn(expression, None if guard is None else self.filter_texts.index(guard)))
        filters = tuple(self._filters[text] for text in self.filter_texts)
        self.scan = Scan(self._stream, filters, tuple(columns), self._everything)

    def filter(self, parts: LegParts) -> int | None:
        text = _filter_text(parts)
        return None if text is None else self.filter_texts.index(text)

    def column(self, parts: LegParts, column: Expression) -> int:
        return self.texts.index(_column_text(parts, column))


def _known(one: _Input) -> LegParts:
    assert one.parts is not None
    return one.parts


def _names(parts: LegParts) -> list[str]:
    return [field.name for field in parts.stream.schema]


def _filter_text(parts: LegParts) -> str | None:
    return " AND ".join(expression_text(one, _names(parts)) for one in parts.conjuncts) or None


def _guard_text(parts: LegParts, column: Expression) -> str | None:
    """The filter that guards a column, if it may fail."""
    return _filter_text(parts) if may_fail(column) else None


def _column_text(parts: LegParts, column: Expression) -> str:
    guard = _guard_text(parts, column)
    text = expression_text(column, _names(parts))
    return text if guard is None else f"{text} IF {guard}"


def _part_text(parts: LegParts) -> dict[str, Any]:
    return {
        "stream": parts.stream.name.lower(),
        "conjuncts": _filter_text(parts),
        "columns": [expression_text(column, _names(parts)) for column in parts.columns],
        "lookups": None if parts.lookups is None else value_text(parts.lookups),
    }


def _numbered(channels: list[Channel]) -> tuple[Channel, ...]:
    """Channels with equal descriptions, such as those of a stream that is joined with itself, are numbered."""
    seen: dict[str, int] = {}
    made = []
    for channel in channels:
        number = seen[channel.identity] = seen.get(channel.identity, -1) + 1
        made.append(replace(channel, description={**channel.description, "copy": number}) if number else channel)
    return tuple(made)
