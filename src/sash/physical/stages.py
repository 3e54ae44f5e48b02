"""Splitting the operator tree into stages: subtrees whose stateful operators can share one partition key.

Every subtree offers *attributes* that it may be partitioned by. An attribute names one column of each leaf below, chosen so
that rows that meet in an operator agree on it. Any non-empty set of a subtree's attributes will do as its key. An operator
keeps the attributes that its own rows agree on; where none is left, its inputs become earlier stages.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sash.physical import nodes
from sash.physical.facts import facts_of, is_repeatable
from sash.physical.nodes import Leaf, Operation, Physical, Stage, StageInput, operations, valid_rows, walk
from sash.plan.expressions import Column

_MAX_KEYS: Final = 4

_FEW_SHARDS: Final = 4
"""With at most this many shards, saving a stage is worth more than a parallel DISTINCT: one shard takes millions of rows
a second."""


@dataclass(frozen=True)
class _Attribute:
    """A way to partition: a column of every leaf (by identity), and the output columns that carry its value."""

    leaves: frozenset[tuple[int, int]]
    outputs: frozenset[int]

    def joined(self, other: _Attribute, outputs: frozenset[int]) -> _Attribute | None:
        """Both together, or None if they need one leaf partitioned by two different columns."""
        mine, theirs = dict(self.leaves), dict(other.leaves)
        if any(mine[leaf] != theirs[leaf] for leaf in mine.keys() & theirs.keys()):
            return None
        return _Attribute(self.leaves | other.leaves, outputs)


_Attributes = list[_Attribute]


@dataclass(frozen=True)
class _Subtree:
    """A subtree with its attributes; `loose` while it has no stateful operator; `single` if it runs as one shard."""

    node: Physical
    attributes: _Attributes
    loose: bool
    single: bool = False


class StageSplitter:
    """Splits one operator tree. `unrepeatable` collects the DISTINCTs whose expiration times would leave their stage."""

    def __init__(self, shards: int | None) -> None:
        self._few = shards is not None and shards <= _FEW_SHARDS
        self.stages: list[Stage] = []
        self.unrepeatable: set[int] = set()
        self._parts: dict[int, _Subtree] = {}
        self._cuts: dict[int, _Subtree] = {}
        self._origins: dict[int, int] = {}
        self._kept: list[Physical] = []

    def split(self, root: Physical) -> list[Stage]:
        """The stages of the tree, in the order in which they run."""
        self._close(self._part(root))
        return self.stages

    def _part(self, node: Physical) -> _Subtree:
        """The subtree with its cuts made."""
        if id(node) not in self._parts:
            self._kept.append(node)
            self._parts[id(node)] = _leaf_part(node) if isinstance(node, Leaf) else self._operation(node)
            self._origins[id(self._parts[id(node)].node)] = id(node)
        return self._parts[id(node)]

    def _operation(self, node: Operation) -> _Subtree:
        parts = [self._part(child) for child in node.inputs]
        match node:
            case nodes.Combine() | nodes.Expire() | nodes.Filter() | nodes.Lookup() | nodes.Project() | nodes.Sample():
                (part,) = parts
                loose = part.loose and facts_of(node).stateless
                return _Subtree(_over(node, parts), _through(node, part.attributes), loose, part.single)
            case nodes.Union():
                return self._union(node, parts)
            case nodes.Aggregate():
                return self._keyed(node, parts, [(key,) for key in node.keys], [{n} for n in range(len(node.keys))])
            case nodes.Updates():
                chosen = range(len(node.schema)) if node.key is None else node.key
                return self._keyed(node, parts, [(n,) for n in chosen], [{n} for n in chosen])
            case nodes.Distinct() | nodes.ExceptAll() | nodes.SetOperation():
                columns = range(len(node.schema))
                return self._keyed(node, parts, [(n,) * len(parts) for n in columns], [{n} for n in columns])
            case nodes.Join():
                split = len(node.inputs[0].schema)
                return self._keyed(node, parts, node.keys, [{left, split + right} for left, right in node.keys])
            case nodes.SemiJoin():
                return self._keyed(node, parts, node.keys, [{left} for left, _ in node.keys])
            case nodes.NrrJoin():
                if not is_repeatable(node.inputs[0]):
                    parts[0] = self._cut(parts[0])
                split, both = len(node.inputs[0].schema), node.kind == "inner"
                carried = [{left, split + right} if both else {left} for left, right in node.keys]
                return self._keyed(node, parts, node.keys, carried)
            case nodes.CountWindow():
                by = node.window.partition
                return self._keyed(node, parts, [(n,) for n in by], [{n} for n in by])
            case nodes.MultiJoin():
                keys = node.plan.common_keys
                carried = [
                    {position for position, (j, column) in enumerate(node.plan.columns) if key[j] == column}
                    for key in keys
                ]
                return self._keyed(node, parts, keys, carried)
            case nodes.Alike():
                return self._alike(node, parts)
            case nodes.TopK():
                return self._keyed(node, parts, [], [])

    def _alike(self, node: nodes.Alike, parts: Sequence[_Subtree]) -> _Subtree:
        """Constants that every shard has need no key. Else a query's constants are where its rows are."""
        rows, constants = parts
        if any(isinstance(below, Leaf) and below.everywhere for below in walk(constants.node)):
            return _Subtree(_over(node, parts), rows.attributes, loose=False, single=rows.single)
        split = len(node.inputs[0].schema)
        return self._keyed(node, parts, node.keys, [{left, split + right} for left, right in node.keys])

    def _union(self, node: Operation, parts: Sequence[_Subtree]) -> _Subtree:
        """A union needs no common key, but both sides must be able to run in one stage."""
        left, right = parts
        if left.single != right.single:
            left, right = (self._cut(part) if part.single else part for part in (left, right))
        combined = _combine(left.attributes, right.attributes)
        if not combined and not left.single:
            right = self._cut(right)
            combined = _combine(left.attributes, right.attributes)
        loose = left.loose and right.loose
        return _Subtree(_over(node, (left, right)), combined, loose, left.single and right.single)

    def _keyed(
        self, node: Operation, parts: Sequence[_Subtree], keys: Sequence[tuple[int, ...]], outputs: Sequence[set[int]]
    ) -> _Subtree:
        """A stateful operator whose rows meet on the given columns of its inputs (none: all in one shard)."""
        if not keys:
            ready = [
                part if part.loose or part.single or self._fits_one_shard(part) else self._cut(part) for part in parts
            ]
            return _Subtree(_over(node, ready), [], loose=False, single=True)
        ready = [self._cut(part) if part.single else part for part in parts]
        for attempt in _attempts(ready, keys):
            trial = [self._cut(part) if cut else part for part, cut in zip(ready, attempt, strict=True)]
            attributes = _agreed([part.attributes for part in trial], keys, outputs)
            if attributes:
                return _Subtree(_over(node, trial), attributes, loose=False)
        raise AssertionError(f"{node.name} cannot be partitioned although its inputs are cut")

    def _fits_one_shard(self, part: _Subtree) -> bool:
        """Whether the subtree can as well run in the one shard that the operator above it needs."""
        return self._few and all(facts_of(node).light for node in operations(part.node))

    def _cut(self, part: _Subtree) -> _Subtree:
        """End a stage here: the operators above read it through a leaf, which can be partitioned by another key.

        A leaf is read a second time instead, so that two operators may partition it by different columns.
        """
        if isinstance(part.node, Leaf):
            return _leaf_part(self._keep(replace(part.node)))
        if id(part.node) not in self._cuts:
            node = part.node
            self.unrepeatable |= {self._origins[below] for below in _unrepeatable(node)}
            stage = self._close(part)
            follows = all(given.leaf.follows for given in stage.inputs)
            timed = any(given.leaf.timed for given in stage.inputs)
            leaf = Leaf(output=node.output, stage=stage.index, follows=follows, timed=timed, rows=valid_rows(node))
            self._cuts[id(node)] = _leaf_part(self._keep(leaf))
        return self._cuts[id(part.node)]

    def _keep(self, leaf: Leaf) -> Leaf:
        """Keep a reference to the leaf: attributes refer to leaves by identity."""
        self._kept.append(leaf)
        return leaf

    def _close(self, part: _Subtree) -> Stage:
        """Make the subtree a stage."""
        leaves = [node for node in walk(part.node) if isinstance(node, Leaf)]
        carried = [attribute for attribute in part.attributes if attribute.outputs] or part.attributes
        chosen = [] if part.single else [dict(attribute.leaves) for attribute in carried[:_MAX_KEYS]]
        inputs = tuple(
            StageInput(leaf, tuple(columns[id(leaf)] for columns in chosen if id(leaf) in columns)) for leaf in leaves
        )
        stage = Stage(len(self.stages), part.node, inputs, single=part.single or not chosen)
        self.stages.append(stage)
        return stage


def _unrepeatable(node: Physical) -> set[int]:
    """The operators below whose expiration times leave the stage but depend on rows that are gone.

    A stage rebuilt from its live rows would give such rows other expiration times than it sent to the next stage before.
    Only DISTINCT is like this: when its row expires depends on the duplicate for which it was first output.
    """
    if isinstance(node, Leaf) or node.expiry not in ("fifo", "calendar"):
        return set()
    own = {id(node)} if isinstance(node, nodes.Distinct) else set[int]()
    return own.union(*(_unrepeatable(below) for below in node.inputs))


def _leaf_part(leaf: Leaf) -> _Subtree:
    attributes = [_Attribute(frozenset({(id(leaf), n)}), frozenset({n})) for n in range(len(leaf.schema))]
    return _Subtree(leaf, attributes, loose=True)


def _over(node: Operation, parts: Sequence[_Subtree]) -> Operation:
    """The operation over its cut inputs; the same object where nothing was cut, so that sharing is kept."""
    inputs = tuple(part.node for part in parts)
    unchanged = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
    return node if unchanged else replace(node, inputs=inputs)


def _through(node: Operation, attributes: _Attributes) -> _Attributes:
    """The attributes above an operator with one input, as its output columns carry them."""
    match node:
        case nodes.Combine():
            return [replace(attribute, outputs=frozenset()) for attribute in attributes]
        case nodes.Project():
            sources = [e.index if isinstance(e, Column) else None for e in node.expressions]
            return [
                replace(one, outputs=frozenset(n for n, source in enumerate(sources) if source in one.outputs))
                for one in attributes
            ]
        case _:
            return attributes


def _combine(left: _Attributes, right: _Attributes) -> _Attributes:
    """The attributes of a union: pairs that share an output column, else one pair without a conflict."""
    pairs = [joined for a in left for b in right if (joined := a.joined(b, a.outputs & b.outputs)) is not None]
    return [pair for pair in pairs if pair.outputs] or pairs[:1]


def _agreed(sides: Sequence[_Attributes], keys: Sequence[tuple[int, ...]], outputs: Sequence[set[int]]) -> _Attributes:
    """The attributes on which rows that meet in an operator agree: one per key column that all sides carry."""
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


def _attempts(parts: Sequence[_Subtree], keys: Sequence[tuple[int, ...]]) -> list[tuple[bool, ...]]:
    """Which inputs to cut, in the order to try, fewest first.

    Of many inputs: those that do not carry the key that most of them carry; then leaves as well, which costs no stage; then
    all.
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
