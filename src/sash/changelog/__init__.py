"""The files of a changelog: which there are, how they are read, and how small ones are compacted."""

from sash.changelog.compaction import Compaction
from sash.changelog.files import Part, last_batch, parts, read_after

__all__ = ["Compaction", "Part", "last_batch", "parts", "read_after"]
