"""Files that carry the rows of a hand-over between the tasks of the first batch of a generation.

Chunks are large and few, and Spark's shuffle would copy, compress and sort them. Where all tasks see the folder of the
checkpoint, a message has the name of a file instead, in its field `times`, which such messages do not need otherwise. A task
that is repeated writes other files. The folder is deleted with the end of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from sash.private_folders import make_private
from sash.spark.messages import Message

_LEAST = 64 << 10
"""Smaller blobs stay in their messages."""


@dataclass(frozen=True)
class SeedFiles:
    """The files in a folder; without one, messages stay as they are."""

    folder: Path | None = None

    def put(self, messages: Iterable[Message]) -> Iterator[Message]:
        """Write the blobs of messages to files."""
        if self.folder is not None:
            make_private(self.folder)
        for message in messages:
            if self.folder is None or message.blob is None or len(message.blob) < _LEAST:
                yield message
                continue
            name = uuid4().hex
            (self.folder / name).write_bytes(message.blob)
            yield replace(message, times=name, blob=None)

    def get(self, message: Message) -> Message:
        """The message with its blob, which is mapped into memory."""
        if message.times is None:
            return message
        assert self.folder is not None
        with pa.memory_map(str(self.folder / message.times)) as file:
            return replace(message, times=None, blob=file.read_buffer())
