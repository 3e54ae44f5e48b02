"""A PostgreSQL server for tests, where its programs are installed: its own data, its own socket, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Where initdb and postgres are: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    places = [] if found is None else [Path(found).parent]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((p for p in places if (p / "initdb").exists() and (p / "postgres").exists()), None)


def someone() -> str | None:
    """Who runs the server: not root, which it refuses to run as."""
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid()).pw_name
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    return None


@contextmanager
def server() -> Iterator[str]:
    """A running server; gives its URL. Skips where there are no programs, or nobody to run them."""
    found, who = programs(), someone()
    if found is None or who is None:
        pytest.skip("PostgreSQL's programs are not installed (initdb, postgres)")
    home = Path(tempfile.mkdtemp(prefix="sash-pg-"))
    home.chmod(0o755)
    data = home / "data"
    data.mkdir(mode=0o700)
    other = {"user": who} if os.geteuid() == 0 else {}
    if other:
        shutil.chown(home, who)
        shutil.chown(data, who)
    environment = {**os.environ, "LC_ALL": "C", "HOME": str(home)}
    try:
        made = subprocess.run(
            [found / "initdb", "-D", data, "-A", "trust", "-U", "sash", "-E", "UTF8", "--no-sync"],
            capture_output=True, text=True, env=environment, cwd=home, check=False, **other,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        with (home / "log").open("wb") as log:
            running = subprocess.Popen(
                [found / "postgres", "-D", data, "-k", home, "-c", "listen_addresses=", "-c", "fsync=off"],
                stdout=log, stderr=log, env=environment, cwd=home, **other,
            )  # fmt: skip
        url = f"postgresql://sash@/postgres?host={home}"
        try:
            _wait_for(url, running, home / "log")
            yield url
        finally:
            running.terminate()
            running.wait(600)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _wait_for(url: str, running: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    for _ in range(6_000):
        assert running.poll() is None, log.read_text()
        try:
            psycopg.connect(url, connect_timeout=60).close()
        except psycopg.OperationalError:
            try:
                running.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
        else:
            return
    raise AssertionError(log.read_text())
