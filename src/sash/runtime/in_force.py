"""What an operator does at present that it may do otherwise at another time, and why, over all of its shards.

Each shard follows what it sees itself, so shards may differ: what they do is told once, with the shards that do it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class InForce:
    """What some of the shards do, and why; where they have different reasons, the first shard's stands for them."""

    what: str
    why: str
    shards: tuple[int, ...]
    everywhere: bool

    @property
    def text(self) -> str:
        """As EXPLAIN writes it."""
        return f"in force in {self._where}: {self.what}, {self.why}"

    @property
    def _where(self) -> str:
        if self.everywhere:
            return "the only shard" if len(self.shards) == 1 else f"all {len(self.shards)} shards"
        return f"shard{'' if len(self.shards) == 1 else 's'} {', '.join(map(str, self.shards))}"

    @property
    def as_json(self) -> dict[str, Any]:
        """As progress gives it."""
        return {"what": self.what, "why": self.why, "shards": list(self.shards)}


def over_shards(in_force: Mapping[int, tuple[str, str]]) -> list[InForce]:
    """What shards say, by shard, put together.

    >>> [found.text for found in over_shards({0: ("order a, b", "as planned"), 1: ("order a, b", "as planned")})]
    ['in force in all 2 shards: order a, b, as planned']
    """
    groups: dict[str, list[int]] = {}
    for shard, (what, _) in sorted(in_force.items()):
        groups.setdefault(what, []).append(shard)
    return [
        InForce(what, _reason([(shard, in_force[shard][1]) for shard in shards]), tuple(shards), len(groups) == 1)
        for what, shards in groups.items()
    ]


def _reason(reasons: list[tuple[int, str]]) -> str:
    shard, why = reasons[0]
    return why if all(other == why for _, other in reasons) else f"in shard {shard} {why}"
