from __future__ import annotations

import json
from pathlib import Path

from sash.console.backlog import FileBacklog, file_streams


def log(sources: Path, name: str, files: list[tuple[Path, int]]) -> None:
    source = sources / "0"
    source.mkdir(parents=True, exist_ok=True)
    entries = [json.dumps({"path": file.as_uri(), "timestamp": 0, "batchId": batch}) for file, batch in files]
    (source / name).write_text("\n".join(["v1", *entries]))


def test_files_that_no_batch_has_read_are_counted(tmp_path: Path) -> None:
    folder, sources = tmp_path / "sold today", tmp_path / "sources"
    (folder / "day=1").mkdir(parents=True)
    files = [folder / f"{number}.csv" for number in range(4)] + [folder / "day=1" / "5.csv"]
    for file in [*files, folder / ".6.csv", folder / "_done", folder / "notes.txt"]:
        file.touch()
    given = file_streams({"sales": ("csv", {"path": str(folder), "pathGlobFilter": "*.csv"}), "ticks": ("rate", {})})
    backlog = FileBacklog(sources, given)
    backlog._again = 0.0
    assert backlog.count() == 5
    log(sources, "0", [(files[0], 0)])
    log(sources, "1", [(files[1], 1), (files[2], 1)])
    (sources / "0" / ".1.crc").touch()
    backlog._again = 0.0
    assert (backlog.count(), backlog.last_files) == (2, 2)
    log(sources, "2.compact", [*((file, 0) for file in files[:3]), (files[4], 2)])
    for name in ("0", "1"):
        (sources / "0" / name).unlink()
    backlog._again = 0.0
    assert (backlog.count(), backlog.last_files) == (1, 1)
    again = FileBacklog(sources, given)
    assert again.count() == 1


def test_a_path_with_a_pattern_and_no_files_at_all(tmp_path: Path) -> None:
    for shop in ("a", "b"):
        (tmp_path / shop).mkdir()
        (tmp_path / shop / "1.json").touch()
    streams = file_streams({"s": ("json", {"PATH": str(tmp_path / "*" / "*.json")})})
    assert FileBacklog(tmp_path / "sources", streams).count() == 2
    assert FileBacklog(tmp_path / "sources", file_streams({"s": ("csv", {"path": "s3://x/y"})})).count() is None
