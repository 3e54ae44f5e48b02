"""The control socket of a running job: a Unix domain socket on which other processes of its user give it commands.

A request is one line of JSON, `{"command": "status", ...}`, and so is the answer: `{"ok": true, "result": ...}` or
`{"ok": false, "error": "..."}`. Where the socket is, `sash.job_index` says.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from sash.errors import ControlError, SashError
from sash.private_folders import make_private

MOST_BYTES = 4 * 2**20
"""The size of a request or an answer."""

_MOST_CLIENTS = 8
_REQUEST_SECONDS = 10.0
"""How long a client may take to send its request, or to take in the answer."""
_ANSWER_SECONDS = 600.0

Handler = Callable[[str, Mapping[str, Any]], Any]
"""Executes a command with its arguments, and returns a result that JSON can hold; SashErrors are sent to the client."""


class ControlServer:
    """Serves the control socket of a job until it is closed. The caller holds the lock of the checkpoint."""

    def __init__(self, path: Path, handler: Handler, seconds: float = _REQUEST_SECONDS) -> None:
        self._path, self._handler, self._seconds = path, handler, seconds
        self._slots = threading.BoundedSemaphore(_MOST_CLIENTS)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            make_private(self._path.parent)
            self._path.unlink(missing_ok=True)  # of a job that was killed
            self._socket.bind(str(self._path))
            self._path.chmod(0o600)
            self._socket.listen(_MOST_CLIENTS)
        except OSError as problem:
            self.close()
            raise ControlError(
                f"the control socket {self._path} cannot be made: {problem.strerror or problem}"
            ) from None
        threading.Thread(target=self._accept, name="sash-control", daemon=True).start()

    def close(self) -> None:
        """Stop serving, and remove the socket."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with suppress(OSError):
            self._path.unlink()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(client,), name="sash-control-client", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client), suppress(OSError):
            client.settimeout(self._seconds)
            if not _is_own(client):
                return
            if not self._slots.acquire(blocking=False):
                _send(client, _failed(f"the job already serves {_MOST_CLIENTS} clients: try again later"))
                return
            try:
                answer = self._answer(client)
                client.settimeout(self._seconds)
                _send(client, answer)
            finally:
                self._slots.release()

    def _answer(self, client: socket.socket) -> dict[str, Any]:
        try:
            request = json.loads(_receive(client))
        except ValueError as problem:
            return _failed(f"the request is not a line of JSON: {problem}")
        if not isinstance(request, dict) or not isinstance(request.get("command"), str):
            return _failed('the request must be an object such as {"command": "status"}')
        arguments = {name: value for name, value in request.items() if name != "command"}
        try:
            return {"ok": True, "result": self._handler(request["command"], arguments)}
        except SashError as problem:
            return _failed(str(problem))
        except Exception as problem:  # noqa: BLE001  (a bug must neither end the job nor leave the client waiting)
            return _failed(f"{type(problem).__name__}: {problem}")


def request(path: Path | str, command: str, seconds: float = _ANSWER_SECONDS, **arguments: Any) -> Any:
    """Send a command to the job that serves the socket, and return its result; errors of the job are raised here."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as client:
        client.settimeout(seconds)
        try:
            client.connect(str(path))
            _send(client, {"command": command, **arguments})
            answer = json.loads(_receive(client))
        except (FileNotFoundError, ConnectionRefusedError):
            raise ControlError(f"no job is running there: nothing serves {path}") from None
        except TimeoutError:
            raise ControlError(f"the job did not answer {command} within {seconds:g} seconds") from None
        except OSError as problem:
            raise ControlError(f"the job cannot be reached at {path}: {problem.strerror or problem}") from None
        except ValueError as problem:
            raise ControlError(f"the job's answer to {command} cannot be read: {problem}") from None
    if not answer.get("ok"):
        raise ControlError(str(answer.get("error", "the job gave no reason")))
    return answer["result"]


def _failed(message: str) -> dict[str, Any]:
    return {"ok": False, "error": message}


def _is_own(client: socket.socket) -> bool:
    """Whether the process at the other end is this user's, or root's, where the system tells."""
    if sys.platform != "linux":
        return True
    given = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", given)
    return user in (0, os.getuid())


def _send(to: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message, default=str).encode() + b"\n"
    if len(data) > MOST_BYTES:
        data = json.dumps(_failed(f"the answer has more than {MOST_BYTES:,} bytes")).encode() + b"\n"
    to.sendall(data)


def _receive(source: socket.socket) -> str:
    """One line, which must be complete within the timeout of the socket."""
    parts: list[bytes] = []
    size, until = 0, time.monotonic() + (source.gettimeout() or 0.0)
    while part := source.recv(65_536):
        source.settimeout(max(until - time.monotonic(), 0.001))
        parts.append(part)
        size += len(part)
        if part.endswith(b"\n"):
            break
        if size > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
    return b"".join(parts).decode()
