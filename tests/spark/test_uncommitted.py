from __future__ import annotations

from pathlib import Path

from sash.spark.uncommitted import remove_uncommitted


def test_state_of_batches_that_are_not_committed_is_removed(tmp_path: Path) -> None:
    shard = tmp_path / "state" / "0" / "1"
    shard.mkdir(parents=True)
    (tmp_path / "commits").mkdir()
    for name in ("0", "1", ".1.crc"):
        (tmp_path / "commits" / name).touch()
    for name in ("1.changelog", "2.changelog", "2.zip", "3.changelog", "3.zip", "_metadata"):
        (shard / name).touch()
    remove_uncommitted(str(tmp_path))
    assert sorted(path.name for path in shard.iterdir()) == ["1.changelog", "2.changelog", "2.zip", "_metadata"]
    remove_uncommitted(str(tmp_path / "none"))
