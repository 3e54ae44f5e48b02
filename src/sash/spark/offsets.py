"""Spark's offset log of one batch: how far each source has been read, in the order in which the query names its sources.

A source that the query names several times has an offset for each, and one folder of its own metadata. So has one that it
knows under several names: streams that are made of one DataFrame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sash.errors import CheckpointError

_VERSION = "v1"
NOTHING = "-"
"""The offset of a source that has not been read."""


@dataclass(frozen=True)
class Sources:
    """The sources of a job by the names of its streams, in Spark's order. `shared` has the streams that are made of the
    DataFrame of another one, by name, and that one."""

    names: Sequence[str]
    shared: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """The first name of a source.

        >>> Sources(["s", "t"], {"t": "s"}).of("t")
        's'
        """
        return self.shared.get(name, name)

    def folders(self) -> dict[str, str]:
        """The folder of each source's metadata, by the names of the source.

        >>> Sources(["s", "t", "s", "u", "v"], {"u": "s"}).folders()
        {'s': '0', 't': '1', 'u': '0', 'v': '2'}
        """
        numbers = {first: str(number) for number, first in enumerate(dict.fromkeys(map(self.of, self.names)))}
        return {name: numbers[self.of(name)] for name in self.names}

    def begun(self, old: Sources) -> dict[str, str]:
        """The name that the old job had for each source that it has read.

        >>> Sources(["s", "t", "u"], {"t": "s"}).begun(Sources(["t"]))
        {'s': 't', 't': 't'}
        """
        found: dict[str, dict[str, str]] = {}
        for name in self.names:
            if name in old.names:
                found.setdefault(self.of(name), {})[old.of(name)] = name
        for first, known in found.items():
            if len(known) > 1:
                names = " and ".join(sorted(known.values()))
                raise CheckpointError(
                    f"streams {names} are made of one DataFrame now, whose rows Spark reads once, and the checkpoint has a place "
                    f"for each: make {first} of a DataFrame of its own, by another readStream"
                )
        return {name: next(iter(found[self.of(name)].values())) for name in self.names if self.of(name) in found}


def moved_offsets(written: str, old: str, old_sources: Sources, new_sources: Sources) -> str:
    r"""The offset log of a generation's first batch: as it was written, with the offsets that the old generation reached.

    >>> print(moved_offsets("v1\n{2}\n0", "v1\n{1}\n5\n7", Sources(["s", "t"]), Sources(["t", "u", "s"])))
    v1
    {2}
    7
    -
    5
    """
    version, settings, *_ = written.split("\n")
    reached, begun = source_offsets(old, old_sources.names), new_sources.begun(old_sources)
    _check(version)
    offsets = (reached[begun[name]] if name in begun else NOTHING for name in new_sources.names)
    return "\n".join([version, settings, *offsets])


def source_offsets(log: str, sources: Sequence[str]) -> dict[str, str]:
    r"""The offsets of the sources in a log.

    >>> source_offsets("v1\n{1}\n5\n7", ["s", "t"])
    {'s': '5', 't': '7'}
    """
    version, _, *offsets = log.split("\n")
    _check(version)
    if len(offsets) != len(sources):
        raise CheckpointError(
            f"the checkpoint has offsets of {len(offsets)} sources, and its job reads {len(sources)}: "
            "register the streams as they were when it was written"
        )
    return dict(zip(sources, offsets, strict=True))


def _check(version: str) -> None:
    if version != _VERSION:
        raise CheckpointError(f"Spark wrote its offsets in format {version}, and Sash knows {_VERSION}: use Spark 4.3")
