"""Partition keys of stages, chosen once all stages are known.

A stage may be partitioned by any non-empty set of its attributes. A stage that several queries read is partitioned as most
of its readers are, or can be: such a reader is in the same shard as the rows that it reads, so nothing is sent to it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sash.physical import nodes
from sash.physical.nodes import Leaf, Physical, Stage, StageInput, operations

_MAX_KEYS: Final = 4


@dataclass(frozen=True)
class Attribute:
    """A way to partition: a column of every leaf (by identity), and the output columns that carry its value."""

    leaves: frozenset[tuple[int, int]]
    outputs: frozenset[int]

    def joined(self, other: Attribute, outputs: frozenset[int]) -> Attribute | None:
        """Both together, or None if they need one leaf partitioned by two different columns."""
        mine, theirs = dict(self.leaves), dict(other.leaves)
        if any(mine[leaf] != theirs[leaf] for leaf in mine.keys() & theirs.keys()):
            return None
        return Attribute(self.leaves | other.leaves, outputs)

    def column(self, leaf: Leaf) -> int | None:
        """The column by which it partitions a leaf."""
        return dict(self.leaves).get(id(leaf))


@dataclass(frozen=True)
class StageDraft:
    """A stage whose key is not chosen yet."""

    root: Physical
    leaves: tuple[Leaf, ...]
    attributes: tuple[Attribute, ...]
    single: bool

    @property
    def usual(self) -> tuple[Attribute, ...]:
        """The key that it gets unless another one saves sending rows."""
        carried = tuple(attribute for attribute in self.attributes if attribute.outputs)
        return (carried or self.attributes)[:_MAX_KEYS]

    @property
    def any_shard(self) -> bool:
        """Whether its operators work on rows in any distribution."""
        return all(
            isinstance(
                node,
                nodes.Combine
                | nodes.Expand
                | nodes.Expire
                | nodes.Filter
                | nodes.Generate
                | nodes.Lookup
                | nodes.Project
                | nodes.Sample
                | nodes.Union,
            )
            for node in operations(self.root)
        )


class Partitioning:
    """The keys of all stages of a plan. `shared` are the numbers of the stages that several queries read."""

    def __init__(self, drafts: Sequence[StageDraft], shared: Collection[int]) -> None:
        self._drafts = drafts
        self._single = {number for number, draft in enumerate(drafts) if draft.single or not draft.usual}
        self._keys: dict[int, tuple[Attribute, ...]] = {}
        self._local: set[tuple[int, int]] = set()
        self._following: set[int] = set()
        self._readers: dict[int, list[tuple[int, StageDraft, Leaf]]] = {number: [] for number in shared}
        for reader, draft in enumerate(drafts):
            for leaf in draft.leaves:
                if leaf.stage in self._readers:
                    self._readers[leaf.stage].append((reader, draft, leaf))
        for number in sorted(shared):
            if number in self._single:
                self._follow_single(number)
            else:
                self._follow(number)

    def stages(self) -> list[Stage]:
        """The stages, with the columns that each input is partitioned by."""
        return [self._stage(number, draft) for number, draft in enumerate(self._drafts)]

    def _stage(self, number: int, draft: StageDraft) -> Stage:
        single = number in self._single
        key = () if single else self._keys.get(number, draft.usual)
        inputs = tuple(
            StageInput(
                leaf,
                tuple(column for attribute in key if (column := attribute.column(leaf)) is not None),
                local=(number, id(leaf)) in self._local,
            )
            for leaf in draft.leaves
        )
        return Stage(number, draft.root, inputs, single=single)

    def _follow_single(self, number: int) -> None:
        """Put the readers of a stage with one shard into that shard, where they have no other stage to follow."""
        for reader, draft, leaf in self._readers[number]:
            alone = draft.any_shard and len(draft.leaves) == 1
            if (reader in self._single or alone) and reader not in self._following:
                self._single.add(reader)
                self._following.add(reader)
                self._local.add((reader, id(leaf)))

    def _follow(self, number: int) -> None:
        """Choose the key of a stage, and that of the readers that can have the same one."""
        draft = self._drafts[number]
        wishes: list[tuple[int, Leaf, dict[Attribute, Attribute]]] = []
        for reader, given, leaf in self._readers[number]:
            if reader not in self._single and not given.any_shard:
                candidates = self._keys.get(reader, given.attributes)
                wishes.append((reader, leaf, _matches(draft.attributes, candidates, leaf)))
        fixed = self._keys.get(number)
        key = fixed if fixed is not None else self._most_wanted(draft, wishes)
        self._keys[number] = key
        for reader, leaf, found in wishes:
            wanted = tuple(found[attribute] for attribute in key if attribute in found)
            if len(wanted) == len(key) and self._keys.get(reader, wanted) == wanted:
                self._keys[reader] = wanted
                self._local.add((reader, id(leaf)))
        for reader, given, leaf in self._readers[number]:
            if reader not in self._single and given.any_shard:
                found = _matches(key, given.attributes, leaf)
                if len(found) == len(key):
                    self._keys.setdefault(reader, tuple(found.values()))
                elif len(given.leaves) == 1:
                    self._keys.setdefault(reader, ())
                self._local.add((reader, id(leaf)))

    def _most_wanted(
        self, draft: StageDraft, wishes: Sequence[tuple[int, Leaf, dict[Attribute, Attribute]]]
    ) -> tuple[Attribute, ...]:
        """The key that suits most readers; of several, the one with most columns."""
        sets = [frozenset(found) for _, _, found in wishes]
        options = {*sets, *(one & other for one, other in combinations(sets, 2))}
        candidates = [draft.usual]
        for option in options:
            ordered = tuple(attribute for attribute in draft.attributes if attribute in option)[:_MAX_KEYS]
            if ordered:
                candidates.append(ordered)

        def suits(key: tuple[Attribute, ...]) -> int:
            return sum(
                all(attribute in found for attribute in key)
                and self._keys.get(reader, wanted := tuple(found[attribute] for attribute in key)) == wanted
                for reader, _, found in wishes
            )

        places = {attribute: place for place, attribute in enumerate(draft.attributes)}
        return max(candidates, key=lambda key: (suits(key), len(key), [-places[attribute] for attribute in key]))


def _matches(
    attributes: Sequence[Attribute], candidates: Sequence[Attribute], leaf: Leaf
) -> dict[Attribute, Attribute]:
    """For attributes of a stage, the attribute of its reader that partitions the leaf by the same values."""
    found: dict[Attribute, Attribute] = {}
    for attribute in attributes:
        for candidate in candidates:
            if candidate.column(leaf) in attribute.outputs:
                found[attribute] = candidate
                break
    return found
