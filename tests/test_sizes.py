from __future__ import annotations

import pytest

from sash.errors import OptionError
from sash.sizes import size_in_bytes, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [("1 GB", 2**30), ("64mb", 64 * 2**20), ("0.5 KiB", 512), ("7 B", 7), ("2g", 2**31), ("1 TB", 2**40), (12, 12)],
)
def test_sizes_are_read(text: str | int, size: int) -> None:
    assert size_in_bytes(text, "max_state") == size


@pytest.mark.parametrize(
    "text", ["", "GB", "-1 GB", "1 second", "1 GB 2", "nan GB", "1e3 MB", "0 GB", f"{'9' * 400} GB", 0, -1, None]
)
def test_other_values_are_refused(text: object) -> None:
    with pytest.raises(OptionError, match="max_state must be a size such as"):
        size_in_bytes(text, "max_state")


def test_sizes_are_printed() -> None:
    assert [size_text(size) for size in (0, 1023, 2048, 5 * 2**20, 3 * 2**30, 2**50)] == [
        "0 B",
        "1023 B",
        "2.0 KB",
        "5.0 MB",
        "3.0 GB",
        "1024.0 TB",
    ]
