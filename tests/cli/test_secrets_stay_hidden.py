"""A secret goes through a whole job, and is in nothing that the job leaves or shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.postgres import restartable_server

CANARY = "canary-7f3a'x"
"""A password with a character that URLs, SQL and shells treat differently."""

JOB = """
CREATE STREAM sales (ts TIMESTAMP, k STRING, v INT) USING csv OPTIONS (path '${{SALES}}') BAD ROWS INTO 'bad';
SET trigger = 'available_now';
SET spark.hadoop.fs.s3a.secret.key = '${{CANARY}}';
CREATE QUERY totals AS SELECT k, SUM(v) AS total FROM sales [RANGE 1 MINUTE] GROUP BY k
INTO postgres (url 'host={host} dbname=postgres user=keeper password=${{file:password}}', table 'totals');
CREATE QUERY every AS SELECT k, 1 / v AS part FROM sales [RANGE 1 MINUTE]
INTO postgres (url '${{WHOLE_URL}}', table 'every') ON ERROR SUSPEND;
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[str]:
    """The folder of a server that asks for a password."""
    with restartable_server() as server:
        with psycopg.connect(server.url) as connection:
            connection.execute(f"CREATE ROLE keeper LOGIN PASSWORD '{CANARY.replace(chr(39), chr(39) * 2)}'")
            connection.execute("GRANT ALL ON SCHEMA public TO keeper")
        (server.data / "pg_hba.conf").write_text("local all sash trust\nlocal all keeper scram-sha-256\n")
        server.reload()
        yield str(server.home)


def texts(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        if path.is_file():
            yield path, path.read_bytes()


@pytest.mark.spark
def test_a_password_is_used_and_shown_nowhere(guarded: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for name in ("sales", "temporary"):
        (home / name).mkdir(parents=True)
    (home / "sales" / "1.csv").write_text("2026-01-01 12:00:00,a,4\n2026-01-01 12:00:01,a,0\nno time,a,1\n")
    (home / "job.sql").write_text(JOB.format(host=guarded))
    password = tmp_path / "password"
    password.write_text(CANARY + "\n")
    (home / "password").symlink_to(password)
    quoted = CANARY.replace("'", "%27")
    given = {
        "CANARY": CANARY,
        "SALES": "sales",
        "WHOLE_URL": f"postgresql://keeper:{quoted}@/postgres?host={guarded}",
        "TMPDIR": str(home / "temporary"),
        "SASH_LOG": str(home / "spark.log"),
        "XDG_STATE_HOME": str(home / "state"),
    }

    def sash(*arguments: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "sash.cli", *arguments], cwd=home, capture_output=True, text=True, check=False,
            env={**os.environ, **given, **more}, timeout=600,
        )  # fmt: skip
        return f"{done.returncode}\n{done.stdout}{done.stderr}"

    shown = [
        sash("validate", "job.sql"),
        sash("explain", "--job", "job.sql"),
        sash("run", "job.sql", "--checkpoint", "checkpoint", "--json"),
        sash("run", "job.sql", "--checkpoint", "elsewhere", WHOLE_URL=f"postgresql://keeper:{quoted}@[bad/x"),
    ]
    with psycopg.connect(f"host={guarded} dbname=postgres user=keeper", password=CANARY) as connection:
        assert connection.execute("SELECT k, total FROM totals").fetchall() == [("a", 4)]
    assert [text.splitlines()[0] for text in shown] == ["0", "0", "3", "1"], shown
    assert "parked" in shown[2]
    for place, text in enumerate(shown):
        assert CANARY not in text
        assert quoted not in text, place
    left = [path for path, content in texts(home) if path != home / "password" and any(
        form.encode() in content for form in (CANARY, quoted, CANARY.replace("'", "\\u0027"))
    )]  # fmt: skip
    assert left == []
    assert any((home / "checkpoint").rglob("offsets/0")), "the job ran"
    for folder in (home / "checkpoint", *(home / "temporary").glob("sash-*"), *(home / "temporary").glob("*/sash-*")):
        assert folder.stat().st_mode & 0o077 == 0 or not folder.is_dir(), folder
