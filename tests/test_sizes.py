from __future__ import annotations

import pytest

from sash.errors import OptionError
from sash.sizes import byte_count, size_text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1 GB", 2**30),
        ("64mb", 64 * 2**20),
        ("0.5 KiB", 512),
        ("10 bytes", 10),
        ("7 B", 7),
        ("2g", 2**31),
        ("1 TB", 2**40),
    ],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert byte_count(text, "max_state") == size


@pytest.mark.parametrize("text", ["", "1", "GB", "-1 GB", "1 second", "1 GB 2", "nan GB", "1e3 MB"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="max_state must be a"):
        byte_count(text, "max_state")


@pytest.mark.parametrize("text", ["0 GB", "0.1 bytes", "9999999999 TB"])
def test_sizes_out_of_range_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="greater than 0 and at most"):
        byte_count(text, "outbox")


def test_sizes_are_printed() -> None:
    assert [size_text(size) for size in (0, 1023, 2048, 5 * 2**20, 3 * 2**30, 2**50)] == [
        "0 B",
        "1,023 B",
        "2 KB",
        "5 MB",
        "3 GB",
        "1,024 TB",
    ]
