"""Records of a segment of the history: a head with lengths and checksums, then JSON, then bytes.

A segment is only appended to. What follows the last complete record was being written when the process died.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_HEAD = struct.Struct("<4sIIII")
_MAGIC = b"SHR1"
_SUFFIX = ".ring"


@dataclass(frozen=True)
class Record:
    """What a record says, and where its bytes are in the file."""

    meta: dict[str, Any]
    payload: int
    size: int

    @property
    def end(self) -> int:
        """The position after the record."""
        return self.payload + self.size


def pack(meta: dict[str, Any], payload: bytes = b"") -> bytes:
    """A record as bytes."""
    text = json.dumps(meta, separators=(",", ":")).encode()
    return _HEAD.pack(_MAGIC, len(text), len(payload), zlib.crc32(text), zlib.crc32(payload)) + text + payload


def read_records(handle: int, position: int, *, whole: bool = False) -> Iterator[Record]:
    """The complete records from a position on; with `whole`, their bytes are checked, too."""
    end = os.fstat(handle).st_size
    while position + _HEAD.size <= end:
        magic, length, size, text_sum, payload_sum = _HEAD.unpack(os.pread(handle, _HEAD.size, position))
        payload = position + _HEAD.size + length
        if magic != _MAGIC or payload + size > end:
            return
        text = os.pread(handle, length, position + _HEAD.size)
        if zlib.crc32(text) != text_sum or (whole and zlib.crc32(os.pread(handle, size, payload)) != payload_sum):
            return
        yield Record(json.loads(text), payload, size)
        position = payload + size


def segments(folder: Path) -> list[Path]:
    """The segments in a folder, oldest first."""
    return sorted(folder.glob(f"*{_SUFFIX}"))


def segment_path(folder: Path, number: int) -> Path:
    """The path of a segment."""
    return folder / f"{number:012d}{_SUFFIX}"


def segment_number(path: Path) -> int:
    """The number of a segment."""
    return int(path.name.removesuffix(_SUFFIX))
