"""Splitting the operator tree into stages: subtrees whose stateful operators can share one partition key.

Every subtree offers *attributes* that it may be partitioned by. An attribute names one column of each leaf below, chosen so
that rows that meet in an operator agree on it. Any non-empty set of a subtree's attributes will do as its key. An operator
keeps the attributes that its own rows agree on; where none is left, its inputs become earlier stages.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sash.physical import nodes
from sash.physical.facts import facts_of, is_repeatable
from sash.physical.nodes import Leaf, Operation, Physical, Stage, operations, valid_rows, walk
from sash.physical.partitioning import Attribute, Partitioning, StageDraft
from sash.physical.sharing import is_worth_a_stage
from sash.plan.expressions import Column, Expression

_FEW_SHARDS: Final = 4
"""With at most this many shards, saving a stage is worth more than a parallel DISTINCT: one shard takes millions of rows
a second."""


_Attributes = list[Attribute]


@dataclass(frozen=True)
class _Subtree:
    """A subtree with its attributes; `loose` while it has no stateful operator; `single` if it runs as one shard."""

    node: Physical
    attributes: _Attributes
    loose: bool
    single: bool = False


class StageSplitter:
    """Splits the operator trees of one or more queries, each with `split`; then `stages` has the stages of all.

    `shared` are the nodes (by identity) that run once for several queries: these get stages of their own. `unrepeatable`
    collects the DISTINCTs whose expiration times would leave their stage.
    """

    def __init__(self, shards: int | None, shared: Collection[int] = frozenset()) -> None:
        self._few = shards is not None and shards <= _FEW_SHARDS
        self._shared = shared
        self._drafts: list[StageDraft] = []
        self._shared_stages: set[int] = set()
        self._outputs: dict[int, int] = {}
        self.unrepeatable: set[int] = set()
        self._parts: dict[int, _Subtree] = {}
        self._cuts: dict[int, _Subtree] = {}
        self._origins: dict[int, int] = {}
        self._kept: list[Physical] = []

    def split(self, root: Physical) -> int:
        """Split the tree of a query, and return the number of the stage that outputs its changes."""
        if id(root) not in self._outputs:
            part = self._part(root)
            below = _without_renaming(part.node)
            known = below.stage if isinstance(below, Leaf) and below.stage in self._shared_stages else None
            self._outputs[id(root)] = self._close(part) if known is None else known
        return self._outputs[id(root)]

    @property
    def count(self) -> int:
        """The number of stages so far."""
        return len(self._drafts)

    def stages(self) -> list[Stage]:
        """The stages of all trees, in the order in which they run."""
        return Partitioning(self._drafts, self._shared_stages).stages()

    def _part(self, node: Physical) -> _Subtree:
        """The subtree with its cuts made."""
        if id(node) not in self._parts:
            self._kept.append(node)
            part = _leaf_part(node) if isinstance(node, Leaf) else self._operation(node)
            self._origins[id(part.node)] = id(node)
            if id(node) in self._shared and is_worth_a_stage(part.node):
                part = self._cut(part)
                assert isinstance(part.node, Leaf)
                assert part.node.stage is not None
                self._shared_stages.add(part.node.stage)
            self._parts[id(node)] = part
        return self._parts[id(node)]

    def _operation(self, node: Operation) -> _Subtree:
        parts = [self._part(child) for child in node.inputs]
        match node:
            case (
                nodes.Combine()
                | nodes.Expand()
                | nodes.Expire()
                | nodes.Filter()
                | nodes.Generate()
                | nodes.Lookup()
                | nodes.Project()
                | nodes.Sample()
            ):
                (part,) = parts
                loose = part.loose and facts_of(node).stateless
                return _Subtree(_over(node, parts), _through(node, part.attributes), loose, part.single)
            case nodes.Sessions():
                return self._keyed(node, parts, [(n,) for n in node.keys], [{n} for n in node.keys])
            case nodes.AssignWindows() | nodes.Lifetime() | nodes.Final():
                (part,) = parts
                loose = part.loose and facts_of(node).stateless
                return _Subtree(_over(node, parts), part.attributes, loose, part.single)
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
            case nodes.ScalarComparison():
                return self._keyed(node, parts, (), ())
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
            case nodes.Over():
                return self._keyed(node, parts, [(n,) for n in node.partition], [{n} for n in node.partition])
            case nodes.TopK():
                return self._keyed(node, parts, [(n,) for n in node.by], [{n} for n in node.by])

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
            leaves = self._drafts[stage].leaves
            follows = all(leaf.follows for leaf in leaves)
            timed = any(leaf.timed for leaf in leaves)
            leaf = Leaf(output=node.output, stage=stage, follows=follows, timed=timed, rows=valid_rows(node))
            self._cuts[id(node)] = _leaf_part(self._keep(leaf))
        return self._cuts[id(part.node)]

    def _keep(self, leaf: Leaf) -> Leaf:
        """Keep a reference to the leaf: attributes refer to leaves by identity."""
        self._kept.append(leaf)
        return leaf

    def _close(self, part: _Subtree) -> int:
        """Make the subtree a stage, and return its number."""
        leaves = tuple(node for node in walk(part.node) if isinstance(node, Leaf))
        self._drafts.append(StageDraft(part.node, leaves, tuple(part.attributes), part.single))
        return len(self._drafts) - 1


def _without_renaming(node: Physical) -> Physical:
    """The node below projections that pass all columns on as they are, under other names at most."""
    while isinstance(node, nodes.Project) and len(node.expressions) == len(node.inputs[0].schema):
        if any(not isinstance(e, Column) or e.index != n for n, e in enumerate(node.expressions)):
            break
        (node,) = node.inputs
    return node


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
    attributes = [Attribute(frozenset({(id(leaf), n)}), frozenset({n})) for n in range(len(leaf.schema))]
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
            return _carried(attributes, node.expressions)
        case nodes.Generate():
            sources = {column: place for place, column in enumerate(node.columns)}
            return [
                replace(one, outputs=frozenset(sources[output] for output in one.outputs if output in sources))
                for one in attributes
            ]
        case nodes.Expand():
            same = [made[0] if all(one == made[0] for one in made) else None for made in zip(*node.lists, strict=True)]
            return _carried(attributes, same)
        case _:
            return attributes


def _carried(attributes: _Attributes, columns: Sequence[Expression | None]) -> _Attributes:
    """The attributes above an operator that computes these columns; None is a column that has several sources."""
    sources = [column.index if isinstance(column, Column) else None for column in columns]
    return [
        replace(one, outputs=frozenset(n for n, source in enumerate(sources) if source in one.outputs))
        for one in attributes
    ]


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
