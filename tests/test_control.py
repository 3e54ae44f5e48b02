from __future__ import annotations

import json
import socket
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sash import control
from sash.control import ControlServer, request
from sash.errors import CatalogError, ControlError
from sash.job_index import runtime_folder, socket_path


@pytest.fixture(autouse=True)
def _runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="sash-") as folder:  # the path of a socket must be short
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield


def answered(command: str, arguments: Mapping[str, Any]) -> Any:
    match command:
        case "echo":
            return dict(arguments)
        case "refuse":
            raise CatalogError("there is no query q")
        case "large":
            return "x" * control.MOST_BYTES
    raise ZeroDivisionError("a bug")


def socket_of(checkpoint: Path) -> Path:
    return socket_path(str(checkpoint), checkpoint)


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    server = ControlServer(socket_of(tmp_path / "state"), answered)
    yield socket_of(tmp_path / "state")
    server.close()


def raw(path: Path, data: bytes) -> bytes:
    """What the server sends back for some bytes, up to the end of the connection."""
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as client:
        client.settimeout(30)
        client.connect(str(path))
        client.sendall(data)
        found = b""
        while part := client.recv(65_536):
            found += part
        return found


def test_a_command_is_answered(path: Path) -> None:
    assert request(path, "echo", name="ä", size=3) == {"name": "ä", "size": 3}


def test_only_the_owner_may_use_the_socket(path: Path) -> None:
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_errors_of_the_job_are_raised_by_the_client(path: Path) -> None:
    with pytest.raises(ControlError, match="there is no query q"):
        request(path, "refuse")
    with pytest.raises(ControlError, match="ZeroDivisionError: a bug"):
        request(path, "crash")
    with pytest.raises(ControlError, match="the answer has more than 4,194,304 bytes"):
        request(path, "large")
    assert request(path, "echo") == {}, "it goes on serving"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"status\n", "not a line of JSON"),
        (b"\xff\n", "not a line of JSON"),
        (b"[1]\n", "must be an object"),
        (b'{"command": 1}\n', "must be an object"),
    ],
)
def test_requests_that_are_none_are_refused(path: Path, data: bytes, message: str) -> None:
    answer = json.loads(raw(path, data))
    assert not answer["ok"]
    assert message in answer["error"]


def test_a_request_has_a_largest_size(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "MOST_BYTES", 1_000)
    assert "more than 1,000 bytes" in json.loads(raw(path, b"x" * 2_000))["error"]


def test_a_client_that_sends_nothing_is_dropped(tmp_path: Path) -> None:
    server = ControlServer(socket_of(tmp_path / "state"), answered, seconds=0.05)
    assert raw(socket_of(tmp_path / "state"), b"") == b""
    server.close()


def test_more_clients_than_slots_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "_MOST_CLIENTS", 1)
    inside, go_on = threading.Event(), threading.Event()

    def wait(command: str, arguments: Mapping[str, Any]) -> str:
        inside.set()
        go_on.wait(30)
        return command

    server = ControlServer(socket_of(tmp_path / "state"), wait)
    path, first = socket_of(tmp_path / "state"), list[str]()
    waiting = threading.Thread(target=lambda: first.append(request(path, "slow")))
    waiting.start()
    assert inside.wait(30)
    with pytest.raises(ControlError, match="already serves 1 clients"):
        request(path, "status")
    go_on.set()
    waiting.join(30)
    server.close()
    assert first == ["slow"]


def test_a_job_that_has_ended_cannot_be_reached(tmp_path: Path) -> None:
    where = socket_of(tmp_path / "state")
    with pytest.raises(ControlError, match="no job is running there"):
        request(where, "status")
    server = ControlServer(where, answered)
    server.close()
    assert not where.exists()
    with pytest.raises(ControlError, match="no job is running there"):
        request(where, "status")


def test_a_job_replaces_the_socket_of_one_that_was_killed(tmp_path: Path) -> None:
    where = socket_of(tmp_path / "state")
    where.parent.mkdir(parents=True)
    with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as killed:
        killed.bind(str(where))
    server = ControlServer(where, answered)
    assert request(where, "echo") == {}
    server.close()


def test_a_path_that_is_too_long_for_a_socket_is_replaced(tmp_path: Path) -> None:
    long = tmp_path / ("x" * 120)
    where = socket_of(long)
    assert where.parent == runtime_folder()
    server = ControlServer(where, answered)
    assert request(where, "echo") == {}
    server.close()
    assert socket_path("hdfs:///jobs/a", None).is_relative_to(runtime_folder())
    assert socket_path("hdfs:///jobs/a", None) != socket_path("hdfs:///jobs/b", None)


def test_a_runtime_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    runtime_folder().chmod(0o755)
    with pytest.raises(ControlError, match="must belong to you alone"):
        runtime_folder()
