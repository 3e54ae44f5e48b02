"""Snapshot and periodic queries: a window of a stream is kept, and answers any query while it moves on."""

from __future__ import annotations

import tempfile
from pathlib import Path

import sash


def write(folder: Path, minute: int) -> None:
    """Write a file with a minute of requests; later requests are slower."""
    lines = [f"12:{minute:02d}:{second:02d},/page{second % 3},{10 * minute + second}" for second in range(60)]
    (folder / f"{minute:02d}.csv").write_text("\n".join(lines) + "\n")


def main() -> None:
    """Keep two minutes of requests in sub-windows of ten seconds."""
    folder = Path(tempfile.mkdtemp(prefix="sash-snapshots-"))
    write(folder, 0)
    engine = sash.Engine()
    schema = "ts TIMESTAMP, page STRING, millis INT"
    frame = engine.spark.readStream.schema(schema).csv(str(folder), timestampFormat="HH:mm:ss")
    engine.stream("requests", frame)
    kept = engine.keep("requests", window="120 seconds", every="10 seconds")
    kept.process_all()

    slow = "SELECT page, MEDIAN(millis) AS median, MAX(millis) AS worst FROM requests [RANGE 30 SECONDS] GROUP BY page"
    with engine.periodic(slow, every=1) as periodic:  # answers now, and after every update of the window
        for minute in (1, 2):
            print(f"a periodic answer, of {len(next(periodic)[0].to_pylist())} pages")
            write(folder, minute)
            kept.process_all()

    short, long = engine.snapshots(  # one pass answers queries that differ only in the length of their windows
        [
            "SELECT COUNT(*) AS n FROM requests [RANGE 10 SECONDS]",
            "SELECT COUNT(*) AS n FROM requests [RANGE 2 MINUTES]",
        ]
    )
    print(
        f"requests of the last 10 seconds: {short.to_pylist()[0]['n']}, of the last 2 minutes: {long.to_pylist()[0]['n']}"
    )
    answer = engine.snapshot(slow, isolation="window-serializable")
    print(answer.to_pandas().sort_values("page").to_string(index=False))
    print(
        f"read {answer.sub_windows_read} sub-windows and {answer.summaries_read} summaries, {answer.restarts} restarts"
    )
    engine.close()


if __name__ == "__main__":
    main()
