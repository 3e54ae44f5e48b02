"""A PostgreSQL server for tests, where its programs are installed: its own data, its own socket, no network."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def free_port() -> int:
    """A port of the loopback interface that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


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


class Server:
    """A server that can be stopped and started again."""

    def __init__(self, bin: Path, home: Path, who: str) -> None:  # noqa: A002
        self._bin, self.home, self.data = bin, home, home / "data"
        self._other = {"user": who} if os.geteuid() == 0 else {}
        self._environment = {**os.environ, "LC_ALL": "C", "HOME": str(home)}
        self._running: subprocess.Popen[bytes] | None = None
        self.port: int | None = None
        self.url = self._base = f"postgresql://sash@/postgres?host={home}"

    def create(self) -> None:
        made = subprocess.run(
            [self._bin / "initdb", "-D", self.data, "-A", "trust", "-U", "sash", "-E", "UTF8", "--no-sync"],
            capture_output=True, text=True, env=self._environment, cwd=self.home, check=False, **self._other,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr

    def give(self, source: Path, name: str) -> None:
        """Put a file into its data that only it may read."""
        target = self.data / name
        target.touch(mode=0o600)
        target.write_bytes(source.read_bytes())
        if self._other:
            shutil.chown(target, self._other["user"])

    def start(self, port: int | None = None) -> None:
        """Start it, with a port of the loopback interface if one is given."""
        self.port = port
        addresses = (
            ["-c", "listen_addresses="] if port is None else ["-c", "listen_addresses=127.0.0.1", "-p", str(port)]
        )
        with (self.home / "log").open("ab") as log:
            self._running = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, "-k", self.home, *addresses, "-c", "fsync=off"],
                stdout=log, stderr=log, env=self._environment, cwd=self.home, **self._other,
            )  # fmt: skip
        self.url = f"{self._base}&port={port}" if port else self._base
        _wait_for(self.url, self._running, self.home / "log")

    def reload(self) -> None:
        """Let it read its settings and its rules of access again."""
        assert self._running is not None
        self._running.send_signal(signal.SIGHUP)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Stop it: SIGTERM waits for its clients, SIGINT ends their connections."""
        if self._running is not None:
            self._running.send_signal(by)
            self._running.wait(30)
            self._running = None


@contextmanager
def restartable_server() -> Iterator[Server]:
    """A running server. Skips where there are no programs, or nobody to run them."""
    found, who = programs(), someone()
    if found is None or who is None:
        pytest.skip("PostgreSQL's programs are not installed (initdb, postgres)")
    home = Path(tempfile.mkdtemp(prefix="sash-pg-"))
    home.chmod(0o755)
    (home / "data").mkdir(mode=0o700)
    if os.geteuid() == 0:
        shutil.chown(home, who)
        shutil.chown(home / "data", who)
    made = Server(found, home, who)
    try:
        made.create()
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(home, ignore_errors=True)


@contextmanager
def server() -> Iterator[str]:
    """A running server; gives its URL."""
    with restartable_server() as running:
        yield running.url


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
