"""`sash prepare`: makes the caches with which Sash starts in seconds: compiled loops, and the archive of Java classes.

Loops are compiled for the column types they are first used with. So queries of every kind run over a few rows of every
type, first in this process, then on Spark, whose Java process writes the archive when it ends.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from sash.cli.session import quiet_engine
from sash.engine import Engine
from sash.script.reader import read_script
from sash.script.session import Session
from sash.spark.class_archive import archive_path
from sash.spark.java_process import end_java
from sash.spark.session import archiving_settings
from sash.testing import replay

_SCHEMA = "ts TIMESTAMP, i INT, b BIGINT, d DOUBLE, m DECIMAL(9, 2), t STRING"
_ROWS: list[dict[str, Any]] = [
    {"ts": 0, "i": 1, "b": 1, "d": 1.5, "m": 1, "t": "x"},
    {"ts": 1, "i": 2, "b": 2, "d": 2.5, "m": 2, "t": "y"},
    {"ts": 3, "i": 1, "b": 1, "d": 1.5, "m": None, "t": None},
]

_AGGREGATES = (
    "COUNT(*) AS a0, SUM(i) AS a1, SUM(d) AS a2, AVG(d) AS a3, MIN(d) AS a4, MAX(i) AS a5, MIN(t) AS a6, "
    "COUNT(DISTINCT t) AS a7, COUNT(DISTINCT i) AS a8, STDDEV(d) AS a9, MAX(ts) AS a10, SUM(m) AS a11, MIN(m) AS a12"
)
_KEYS = ("i", "b", "d", "t", "b, t")
_QUERIES = (
    "SELECT i, t, d FROM s [RANGE 2 SECONDS] WHERE d > 1",
    *(f"SELECT {key}, {_AGGREGATES} FROM s [RANGE 2 SECONDS] GROUP BY {key}" for key in _KEYS),
    f"SELECT {_AGGREGATES} FROM s [RANGE 2 SECONDS]",
    "SELECT i, MEDIAN(d) AS m FROM s [RANGE 2 SECONDS] GROUP BY i",
    "SELECT i, COUNT(*) AS n FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] GROUP BY i",
    "SELECT b, COUNT(*) AS n FROM s [RANGE 2 SECONDS SLIDE 2 SECONDS] GROUP BY b",
    "SELECT s.i FROM s [RANGE 4 SECONDS SLIDE 2 SECONDS] JOIN r [RANGE 6 SECONDS SLIDE 3 SECONDS] ON s.b = r.b",
    "SELECT ts, d FROM s [ROWS 2]",
    "SELECT i, COUNT(*) AS n FROM s [ROWS 2] GROUP BY i",
    "SELECT s.ts, p.name FROM s [PARTITION BY t ROWS 1] LEFT JOIN p ON s.i = p.i",
    "SELECT i, SUM(d) AS n FROM s [PARTITION BY i ROWS 1] GROUP BY i",
    "SELECT i, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY i HAVING COUNT(*) > 1",
    "SELECT DISTINCT b, t FROM s [RANGE UNBOUNDED]",
    *(f"SELECT DISTINCT {key} FROM s [RANGE 2 SECONDS]" for key in _KEYS),
    *(
        f"SELECT t FROM s [RANGE 2 SECONDS] {operation} SELECT t FROM r [RANGE 1 SECOND]"
        for operation in ("EXCEPT", "INTERSECT", "UNION", "EXCEPT ALL", "INTERSECT ALL", "UNION ALL")
    ),
    *(
        f"SELECT s.i, s.d, s.t FROM s [RANGE 2 SECONDS] {join} r [RANGE 2 SECONDS] ON s.t = r.t"
        for join in ("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT ANTI JOIN", "LEFT SEMI JOIN")
    ),
    "SELECT DISTINCT s.i FROM s [RANGE 2 SECONDS] JOIN r [RANGE 2 SECONDS] ON s.i = r.i",
    "SELECT s.i, COUNT(*) AS n FROM s [RANGE 2 SECONDS] JOIN r [RANGE 2 SECONDS] ON s.i = r.i GROUP BY s.i",
    f"SELECT {_AGGREGATES} FROM (SELECT s.* FROM s [RANGE 2 SECONDS] JOIN r [RANGE 3 SECONDS] ON s.b = r.b) AS x",
    (
        "SELECT x.i FROM (SELECT s.* FROM s [RANGE 2 SECONDS] LEFT ANTI JOIN r [RANGE 1 SECOND] ON s.i = r.i WHERE s.d > 1) "
        "AS x JOIN (SELECT q.* FROM q [RANGE 2 SECONDS] LEFT SEMI JOIN s [RANGE 3 SECONDS] ON q.i = s.i) AS y ON x.i = y.i"
    ),
    (
        "SELECT x.i FROM (SELECT i FROM s [RANGE 4 SECONDS] UNION ALL SELECT i FROM s [RANGE 2 SECONDS] "
        "EXCEPT ALL SELECT i FROM r [RANGE 3 SECONDS]) AS x JOIN q [RANGE 2 SECONDS] ON x.i = q.i"
    ),
    "SELECT s.i FROM s [RANGE 2 SECONDS] JOIN r [RANGE 2 SECONDS] ON s.i = r.i WHERE s.t = 'x' AND r.t = 'x'",
    "SELECT s.i FROM s [RANGE 2 SECONDS], r [RANGE 2 SECONDS], q [RANGE 2 SECONDS] WHERE s.i = r.i AND r.i = q.i",
    "SELECT i, d FROM s [RANGE 2 SECONDS] ORDER BY d DESC LIMIT 2",
    "SELECT i, COUNT(*) AS n FROM s [RANGE 2 SECONDS] GROUP BY i ORDER BY n DESC LIMIT 1",
    "SELECT s.i, p.name FROM s [RANGE 2 SECONDS] JOIN p ON s.i = p.i",
    "SELECT s.i, p.name FROM s [RANGE 2 SECONDS] JOIN p ON s.i < p.i",
)
"""A query of every kind."""

_JOB = """
CREATE STREAM c ({schema}) USING csv OPTIONS (path '{folder}/csv', header true) SLACK '1 second';
CREATE STREAM j ({schema}) USING json OPTIONS (path '{folder}/json');
SET trigger = available_now;
CREATE QUERY totals AS SELECT i, COUNT(*) AS n, SUM(d) AS total FROM c [RANGE 2 SECONDS] GROUP BY i INTO noop;
CREATE QUERY pairs AS SELECT DISTINCT c.t FROM c [RANGE 2 SECONDS] JOIN j [RANGE 2 SECONDS] ON c.t = j.t INTO noop;
"""


def prepare(say: Callable[[str], None]) -> None:
    """Make the caches; `say` gets a line for each step."""
    say("compiling loops: this takes half a minute")
    compile_loops()
    path = archive_path()
    if path is None:
        say("there is no Java: without it Spark does not start, and its classes are not archived")
        return
    say("running queries on Spark, and archiving the Java classes that they load")
    archive_classes(path)
    say(f"done: {os.environ['NUMBA_CACHE_DIR']} and {path}")


def compile_loops() -> None:
    """Run a query of every kind in this process: over a few rows, with and without NULLs, and over so many that state grows."""
    many = [{**_ROWS[0], "ts": key / 1_000, "i": key, "b": key, "t": str(key)} for key in range(2_000)]
    for sql, rows in product(_QUERIES, (_ROWS, _ROWS[:2], many)):
        replay(
            sql,
            streams=dict.fromkeys("srq", rows),
            relations={"p": [{"i": 1, "name": "x"}]},
            schemas=dict.fromkeys("srq", _SCHEMA),
            unit="s",
        )


def archive_classes(path: Path) -> None:
    """Run queries on Spark, in a Java process that archives its classes when it ends."""
    unfinished = path.with_name(f"{path.stem}-{os.getpid()}.tmp")
    with (
        tempfile.TemporaryDirectory(prefix="sash-prepare-") as folder,
        quiet_engine(conf=archiving_settings(unfinished)) as first,
    ):
        for number in range(2):  # the second run reads the state that the first one wrote
            _write_rows(Path(folder), number)
            session = Session.on(Engine(first.spark, f"{folder}/checkpoint"))
            for statement in read_script(_JOB.format(schema=_SCHEMA, folder=folder)):
                session.execute(statement)
            session.launch()
            for job in session.backend.jobs().values():
                job.await_termination()
    end_java()
    unfinished.replace(path)


def _write_rows(folder: Path, number: int) -> None:
    """Write the rows, `number` minutes later, as a CSV and a JSON file, in a folder each."""
    rows = [{**row, "ts": f"2026-01-01 00:0{number}:0{row['ts']}"} for row in _ROWS]
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    texts = {"csv": [",".join(rows[0]), *lines], "json": [json.dumps(row) for row in rows]}
    for form, text in texts.items():
        (folder / form).mkdir(exist_ok=True)
        (folder / form / f"{number}.{form}").write_text("\n".join(text), encoding="utf-8")
