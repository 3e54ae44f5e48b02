"""The adaptive choices now in use by an operator, with their reasons, grouped over its shards.

Each shard adapts to its own rows, so shards may differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class CurrentChoice:
    """A choice that some shards use, and why; where their reasons differ, the first shard's is shown."""

    what: str
    why: str
    shards: tuple[int, ...]
    everywhere: bool

    @property
    def text(self) -> str:
        """The form that EXPLAIN prints."""
        return f"now in {self._where}: {self.what}, {self.why}"

    @property
    def _where(self) -> str:
        if self.everywhere:
            return "the only shard" if len(self.shards) == 1 else f"all {len(self.shards)} shards"
        return f"shard{'' if len(self.shards) == 1 else 's'} {', '.join(map(str, self.shards))}"

    @property
    def as_json(self) -> dict[str, Any]:
        """The form that `progress()` reports."""
        return {"what": self.what, "why": self.why, "shards": list(self.shards)}


def over_shards(choices: Mapping[int, tuple[str, str]]) -> list[CurrentChoice]:
    """The choices of shards, by shard, grouped by choice.

    >>> [found.text for found in over_shards({0: ("order a, b", "as planned"), 1: ("order a, b", "as planned")})]
    ['now in all 2 shards: order a, b, as planned']
    """
    groups: dict[str, list[int]] = {}
    for shard, (what, _) in sorted(choices.items()):
        groups.setdefault(what, []).append(shard)
    return [
        CurrentChoice(what, _reason([(shard, choices[shard][1]) for shard in shards]), tuple(shards), len(groups) == 1)
        for what, shards in groups.items()
    ]


def _reason(reasons: list[tuple[int, str]]) -> str:
    shard, why = reasons[0]
    return why if all(other == why for _, other in reasons) else f"in shard {shard} {why}"
