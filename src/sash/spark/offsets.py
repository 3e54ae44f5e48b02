"""Spark's offset log of one batch: how far each source has been read, in the order in which the query names its sources.

A source that the query names several times has an offset for each, and one folder of its own metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from sash.errors import CheckpointError

_VERSION = "v1"
NOTHING = "-"
"""The offset of a source that has not been read."""


def moved_offsets(written: str, old: str, old_sources: Sequence[str], new_sources: Sequence[str]) -> str:
    r"""The offset log of a generation's first batch: as it was written, with the offsets that the old generation reached.

    >>> print(moved_offsets("v1\n{2}\n0", "v1\n{1}\n5\n7", ["s", "t"], ["t", "u", "s"]))
    v1
    {2}
    7
    -
    5
    """
    version, settings, *_ = written.split("\n")
    reached = source_offsets(old, old_sources)
    _check(version)
    return "\n".join([version, settings, *(reached.get(name, NOTHING) for name in new_sources)])


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


def source_folders(sources: Sequence[str]) -> dict[str, str]:
    """The folder of each source's metadata.

    >>> source_folders(["s", "t", "s", "u"])
    {'s': '0', 't': '1', 'u': '2'}
    """
    return {name: str(number) for number, name in enumerate(dict.fromkeys(sources))}
