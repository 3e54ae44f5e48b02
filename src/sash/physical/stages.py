"""Cutting the operator tree into stages: subtrees whose stateful operators can share one partition key.

Every subtree offers *attributes* it may be partitioned by. An attribute names one column of each leaf below, chosen so
that rows that must meet in an operator agree on it. Any non-empty set of a subtree's attributes will do as its key. An
operator keeps the attributes that its own rows agree on; where none is left, its inputs are cut off as earlier stages.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sash.physical.explicit import explicit, telling
from sash.physical.join_plan import JoinPlan
from sash.physical.lower import Lowering
from sash.physical.nodes import Leaf, Operation, Physical, PhysicalPlan, Stage, StageInput, standing, walk
from sash.physical.spoken_joins import with_spoken_joins
from sash.physical.strategies.registry import strategy_of
from sash.physical.strict_edges import with_strict_edges
from sash.plan.expressions import Column
from sash.plan.nodes import Distinct, Join, Node, Rows
from sash.plan.nodes import walk as walk_logical
from sash.plan.options import DEFAULT, Options

_MOST_KEYS = 4

_FEW_SHARDS = 4
"""On so few shards a stage less is worth more than DISTINCT in parallel: it takes millions of rows a second in one."""


_STATELESS = ("Filter", "Project", "Lookup", "Combine")


@dataclass(frozen=True)
class _Attribute:
    """A way to partition: the column of every leaf (by identity), and the output columns that carry its value."""

    leaves: frozenset[tuple[int, int]]
    outputs: frozenset[int]

    def joined(self, other: _Attribute, outputs: frozenset[int]) -> _Attribute | None:
        """Both at once, or None if they want one leaf partitioned by two different columns."""
        mine, theirs = dict(self.leaves), dict(other.leaves)
        if any(mine[leaf] != theirs[leaf] for leaf in mine.keys() & theirs.keys()):
            return None
        return _Attribute(self.leaves | other.leaves, outputs)


_Attributes = list[_Attribute]


@dataclass(frozen=True)
class _Part:
    """A subtree in the making: its attributes; `loose` while nothing stateful is in it; `single` if it is one shard."""

    node: Physical
    attributes: _Attributes
    loose: bool
    single: bool = False


class _Cutter:
    def __init__(self, shards: int | None) -> None:
        self._few = shards is not None and shards <= _FEW_SHARDS
        self.stages: list[Stage] = []
        self.forgetful: set[int] = set()
        self._parts: dict[int, _Part] = {}
        self._cuts: dict[int, _Part] = {}
        self._origins: dict[int, int] = {}
        self._kept: list[Physical] = []

    def part(self, node: Physical) -> _Part:
        """The subtree with its cuts made."""
        if id(node) not in self._parts:
            self._kept.append(node)
            self._parts[id(node)] = _leaf_part(node) if isinstance(node, Leaf) else self._operation(node)
            self._origins[id(self._parts[id(node)].node)] = id(node)
        return self._parts[id(node)]

    def _operation(self, node: Operation) -> _Part:
        parts = [self.part(child) for child in node.inputs]
        match node.operator:
            case "Filter" | "Project" | "Lookup" | "Combine" | "Expire" | "Sample":
                (part,) = parts
                loose = part.loose and node.operator in _STATELESS
                return _Part(_over(node, parts), _through(node, part.attributes), loose, part.single)
            case "Union":
                return self._union(node, parts)
            case "Aggregate":
                keys: tuple[int, ...] = node.arguments["keys"]
                return self._keyed(node, parts, [(key,) for key in keys], [{n} for n in range(len(keys))])
            case "Updates":
                told = node.arguments["key"]
                chosen = range(len(node.schema)) if told is None else told
                return self._keyed(node, parts, [(n,) for n in chosen], [{n} for n in chosen])
            case "Distinct" | "SetOperation":
                columns = range(len(node.schema))
                return self._keyed(node, parts, [(n,) * len(parts) for n in columns], [{n} for n in columns])
            case "Join" | "SemiJoin" | "NrrJoin":
                pairs: tuple[tuple[int, int], ...] = node.arguments["keys"]
                if node.operator == "NrrJoin" and not _repeatable(node.inputs[0]):
                    parts[0] = self.cut(parts[0])
                split = len(node.inputs[0].schema)
                both = node.operator == "Join" or node.arguments.get("kind") == "inner"
                return self._keyed(
                    node, parts, pairs, [{left, split + right} if both else {left} for left, right in pairs]
                )
            case "CountWindow":
                window: Rows = node.arguments["window"]
                return self._keyed(node, parts, [(n,) for n in window.partition], [{n} for n in window.partition])
            case "MultiJoin":
                plan: JoinPlan = node.arguments["plan"]
                keys_of_all = plan.common_keys
                carried = [
                    {place for place, (j, column) in enumerate(plan.columns) if key[j] == column} for key in keys_of_all
                ]
                return self._keyed(node, parts, keys_of_all, carried)
            case "TopK":
                return self._keyed(node, parts, [], [])
            case other:
                raise AssertionError(f"how {other} is partitioned is not written down")

    def _union(self, node: Operation, parts: Sequence[_Part]) -> _Part:
        """A union needs no agreement, but both sides must be able to stand in one stage."""
        left, right = parts
        if left.single != right.single:
            left, right = (self.cut(part) if part.single else part for part in (left, right))
        combined = _combine(left.attributes, right.attributes)
        if not combined and not left.single:
            right = self.cut(right)
            combined = _combine(left.attributes, right.attributes)
        loose = left.loose and right.loose
        return _Part(_over(node, (left, right)), combined, loose, left.single and right.single)

    def _keyed(
        self, node: Operation, parts: Sequence[_Part], keys: Sequence[tuple[int, ...]], outputs: Sequence[set[int]]
    ) -> _Part:
        """A stateful operator whose rows meet on the given columns of its inputs (none: all in one shard)."""
        if not keys:
            ready = [part if part.loose or part.single or self._goes_along(part) else self.cut(part) for part in parts]
            return _Part(_over(node, ready), [], loose=False, single=True)
        ready = [self.cut(part) if part.single else part for part in parts]
        for attempt in _attempts(ready, keys):
            trial = [self.cut(part) if cut else part for part, cut in zip(ready, attempt, strict=True)]
            attributes = _meeting([part.attributes for part in trial], keys, outputs)
            if attributes:
                return _Part(_over(node, trial), attributes, loose=False)
        raise AssertionError(f"{node.operator} cannot be partitioned although its inputs are cut")

    def _goes_along(self, part: _Part) -> bool:
        """Whether the subtree may as well run in the one shard that what is above it needs."""
        operations = [node for node in walk(part.node) if isinstance(node, Operation)]
        heavy = any(node.operator not in (*_STATELESS, "Distinct", "Expire", "Union", "Updates") for node in operations)
        return self._few and not heavy

    def cut(self, part: _Part) -> _Part:
        """End a stage here: what is above reads it through a leaf that can be partitioned anew.

        A leaf is not cut but read a second time, so that two operators may partition it by different columns.
        """
        if isinstance(part.node, Leaf):
            return _leaf_part(self._keep(replace(part.node)))
        if id(part.node) not in self._cuts:
            node = part.node
            self.forgetful |= {self._origins[below] for below in _forgetful(node)}
            stage = self.close(part)
            follows = all(given.leaf.follows for given in stage.inputs)
            timed = any(given.leaf.timed for given in stage.inputs)
            leaf = Leaf(
                node.schema, node.expiry, node.pattern, None, stage.index, node.horizon, follows, timed, standing(node)
            )
            self._cuts[id(node)] = _leaf_part(self._keep(leaf))
        return self._cuts[id(part.node)]

    def _keep(self, leaf: Leaf) -> Leaf:
        """Hold on to the leaf: attributes know leaves by identity."""
        self._kept.append(leaf)
        return leaf

    def close(self, part: _Part) -> Stage:
        """Make the subtree a stage."""
        leaves = [node for node in walk(part.node) if isinstance(node, Leaf)]
        carried = [attribute for attribute in part.attributes if attribute.outputs] or part.attributes
        chosen = [] if part.single else [dict(attribute.leaves) for attribute in carried[:_MOST_KEYS]]
        inputs = tuple(
            StageInput(leaf, tuple(columns[id(leaf)] for columns in chosen if id(leaf) in columns)) for leaf in leaves
        )
        stage = Stage(len(self.stages), part.node, inputs, single=part.single or not chosen)
        self.stages.append(stage)
        return stage


def _forgetful(node: Physical) -> set[int]:
    """The operators below whose expiration times leave the stage but depend on rows that are gone.

    A stage that is built again from its live rows would give such rows other times than it gave the next stage before.
    DISTINCT is the one: when its row expires depends on the duplicate that it was first reported for.
    """
    if node.expiry not in ("fifo", "calendar"):
        return set()
    operations = [below for below in node.inputs if isinstance(below, Operation)]
    mine = {id(node)} if isinstance(node, Operation) and node.operator == "Distinct" else set()
    return mine.union(*(_forgetful(below) for below in operations))


def _repeatable(node: Physical) -> bool:
    """Whether rows come out of the node at times that its live rows alone tell.

    What a row gets from a non-retroactive relation depends on when it comes. A GROUP BY's row, or a DISTINCT's, may have
    come when a row that is gone since came or went: a stage built again would let it come at another time.
    """
    return isinstance(node, Leaf) or (
        node.operator in (*_STATELESS, "Expire", "Join", "NrrJoin", "Sample", "Union")
        and all(map(_repeatable, node.inputs))
    )


def _leaf_part(leaf: Leaf) -> _Part:
    attributes = [_Attribute(frozenset({(id(leaf), n)}), frozenset({n})) for n in range(len(leaf.schema))]
    return _Part(leaf, attributes, loose=True)


def _over(node: Operation, parts: Sequence[_Part]) -> Operation:
    """The operation over its cut inputs; the same object where nothing was cut, so that sharing is kept."""
    inputs = tuple(part.node for part in parts)
    unchanged = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
    return node if unchanged else replace(node, inputs=inputs)


def _through(node: Operation, attributes: _Attributes) -> _Attributes:
    """The attributes above a stateless operator, as its output columns carry them."""
    if node.operator == "Combine":
        return [replace(attribute, outputs=frozenset()) for attribute in attributes]
    if node.operator != "Project":
        return attributes
    sources = [
        expression.index if isinstance(expression, Column) else None for expression in node.arguments["expressions"]
    ]
    return [
        replace(attribute, outputs=frozenset(n for n, source in enumerate(sources) if source in attribute.outputs))
        for attribute in attributes
    ]


def _combine(left: _Attributes, right: _Attributes) -> _Attributes:
    """The attributes of a union: pairs that meet in an output column, else one pair that can stand side by side."""
    pairs = [joined for a in left for b in right if (joined := a.joined(b, a.outputs & b.outputs)) is not None]
    return [pair for pair in pairs if pair.outputs] or pairs[:1]


def _meeting(sides: Sequence[_Attributes], keys: Sequence[tuple[int, ...]], outputs: Sequence[set[int]]) -> _Attributes:
    """The attributes on which the rows that meet in an operator agree: one per key column that all sides carry."""
    result: _Attributes = []
    for columns, positions in zip(keys, outputs, strict=True):
        found: _Attributes = [attribute for attribute in sides[0] if columns[0] in attribute.outputs]
        for column, attributes in zip(columns[1:], sides[1:], strict=True):
            carrying = [attribute for attribute in attributes if column in attribute.outputs]
            pairs = [one.joined(other, frozenset()) for one in found for other in carrying]
            found = [pair for pair in pairs if pair is not None]
        if found:
            result.append(replace(found[0], outputs=frozenset(positions)))
    return result


def _attempts(parts: Sequence[_Part], keys: Sequence[tuple[int, ...]]) -> list[tuple[bool, ...]]:
    """Which inputs to cut, the least first.

    Of many inputs, those that do not carry the key that most of them do; then leaves too, which costs no stage; then all.
    """
    size = len(parts)
    if size <= 2:
        return list(itertools.product((False, True), repeat=size))
    carriers = [
        {n for n, part in enumerate(parts) if any(key[n] in attribute.outputs for attribute in part.attributes)}
        for key in keys
    ]
    cut = set(range(size)) - max(carriers, key=len)
    attempts = [set(cut)]
    for number in reversed(range(size)):
        if isinstance(parts[number].node, Leaf):
            attempts.append({*attempts[-1], number})
    attempts.append(set(range(size)))
    return [tuple(number in cut for number in range(size)) for cut in attempts]


def plan_stages(
    node: Node, shards: int | None = None, options: Options = DEFAULT, *, ends: bool = False
) -> PhysicalPlan:
    """The physical plan of an optimized logical plan: its changes come out of the last stage, every end said.

    `shards` is how many it will run on, where that is known. With `ends`, the answer has a last column with the time at
    which each row will end, where that is known beforehand.
    """
    strategy = strategy_of(options.strategy)
    expire = strategy.expire
    if expire == "above joins" and not any(isinstance(below, Join) for below in walk_logical(node)):
        expire = "bottom"
    spoken: frozenset[Distinct] = frozenset()
    while True:
        lowering = Lowering(options, shards, expire, spoken)
        lowered = lowering.lower(node)
        root = (telling(lowered) if ends else None) or explicit(lowered, strategy.speaking)
        cutter = _Cutter(shards)
        cutter.close(cutter.part(root))
        if not cutter.forgetful:
            stages = cutter.stages
            if strategy.by_share:
                stages = [replace(s, root=with_strict_edges(s.root, options.partitions)) for s in stages]
            if strategy.speaking:
                stages = [replace(s, root=with_spoken_joins(s.root)) for s in stages]
            return PhysicalPlan(tuple(lowering.legs), tuple(stages), strategy.name, options.tau, options.partitions)
        spoken |= {logical for logical, operator in lowering.distincts if id(operator) in cutter.forgetful}
