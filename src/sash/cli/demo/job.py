"""The job of the story: the file of statements that its driver runs with `sash run`, in a folder of its own."""

from __future__ import annotations

from pathlib import Path

from sash.cli.demo.readings import SECOND

WINDOW, HOP, SLACK = 10 * SECOND, 5 * SECOND, SECOND // 2
SILENCE, MEMORY = 5 * SECOND, 600 * SECOND
"""A sensor is silent if it has sent in the last ten minutes, but not in the last five seconds."""

SLIDING, HOPPING, SILENT = "sliding", "hopping", "silent"
"""The questions of the query; each of its rows answers one of them for a sensor."""

STREAM = "readings(ts TIMESTAMP, sensor STRING, value DOUBLE)"
SLIDING_SQL = "FROM readings [RANGE 10 SECONDS] GROUP BY sensor"
HOPPING_SQL = "FROM readings [RANGE 10 SECONDS SLIDE 5 SECONDS] GROUP BY sensor"
SILENT_SQL = "SELECT sensor FROM readings [RANGE 10 MINUTES] EXCEPT SELECT sensor FROM readings [RANGE 5 SECONDS]"
QUERY = f"""SELECT '{SLIDING}' AS question, sensor, COUNT(*) AS n {SLIDING_SQL}
UNION ALL
SELECT '{HOPPING}', sensor, COUNT(*) {HOPPING_SQL}
UNION ALL
SELECT '{SILENT}', sensor, 0 FROM ({SILENT_SQL})"""

READINGS_FOLDER, CHANGES_FOLDER, JOB_FILE = "readings", "changes", "job.sql"
"""Names in the folder of the job; the paths in its statements are relative to it."""

JOB = f"""CREATE STREAM {STREAM}
USING parquet OPTIONS (path '{READINGS_FOLDER}')
SLACK '500 milliseconds';

CREATE QUERY answers AS
{QUERY}
INTO changelog (path '{CHANGES_FOLDER}') TRIGGER '500 milliseconds';
"""


CONSOLE_JOB = f"""{JOB}
CREATE QUERY averages AS
SELECT sensor, COUNT(*) AS n, AVG(value) AS average, MIN(value) AS lowest, MAX(value) AS highest
FROM readings [RANGE 30 SECONDS] GROUP BY sensor
INTO changelog (path 'averages') TRIGGER '500 milliseconds';

SET trigger = '500 milliseconds';
KEEP readings WINDOW '60 seconds' EVERY '5 seconds';
"""


def write_console_job(home: Path) -> None:
    """Write the job that the web console shows to its folder."""
    (home / JOB_FILE).write_text(CONSOLE_JOB, encoding="utf-8")


def write_job(home: Path) -> None:
    """Write the job to its folder."""
    (home / JOB_FILE).write_text(JOB, encoding="utf-8")


def explain_job() -> str:
    """The job's text, and the plan of its query."""
    from sash.cli.catalog import declared_catalog
    from sash.planning import plan_query

    plan = plan_query(QUERY, declared_catalog([STREAM], [])).explain()
    return f"{JOB_FILE}\n\n{JOB}\n{plan[plan.index('Logical plan') :]}"
