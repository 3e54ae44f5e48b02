"""The application over histories made without Spark, served on a port, and raw clients of it."""

from __future__ import annotations

import base64
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import uvicorn

from sash.console.guard import Access, Application
from sash.console.job_view import JobView
from sash.console.serve import known_names
from sash.history.limits import HistoryLimits
from sash.job_index import JobEntry
from tests.history.rings import WrittenHistory


def view_of(folder: Path, name: str = "shop") -> JobView:
    """The view of a job that does not run."""
    entry = JobEntry(
        f"{name}.sql",
        0,
        str(folder),
        "2026-01-01 00:00:00 UTC",
        str(folder / "control.sock"),
        str(folder / "sash.lock"),
        str(folder / "job.log"),
    )
    return JobView(entry, name=name)


def history_of(folder: Path, limits: HistoryLimits | None = None) -> WrittenHistory:
    """The job's side of the history of that view."""
    return WrittenHistory(folder / "history" / "job", limits)


@contextmanager
def served(app: Application, listening: socket.socket) -> Iterator[int]:
    """Serve an application in a thread; yields the port."""
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        server.should_exit = server.force_exit = True
        thread.join(20)


def access_to(listening: socket.socket) -> Access:
    return Access(known_names("127.0.0.1"), int(listening.getsockname()[1]))


def raw(port: int, lines: list[str], body: bytes = b"") -> tuple[int, str]:
    """Send a request as it is; return the status and all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
        data = b""
        with suppress(ConnectionResetError):
            while part := client.recv(65_536):
                data += part
    text = data.decode("latin-1")
    return int(text.split(" ", 2)[1]), text


def web_socket_status(port: int, path: str, headers: list[str]) -> int:
    """The status with which the server answers the handshake of a WebSocket."""
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {path} HTTP/1.1",
        *headers,
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        "",
        "",
    ]
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall("\r\n".join(lines).encode())
        return int(client.recv(65_536).split(b" ", 2)[1])
