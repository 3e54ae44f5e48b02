"""The console as a process of its own, with its pages, over HTTP and over HTTPS, tried with raw clients."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from sash.file_lock import FileLock
from tests.cli.command import ROOT
from tests.console.served import history_of, view_of
from tests.history.rings import changes

pytest.importorskip("nicegui", reason="the console's extra is not installed")

SOCKET = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"


@dataclass
class Console:
    """A console that serves two jobs, of which none answers."""

    process: subprocess.Popen[str]
    url: str
    certificate: Path | None

    def connect(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        if self.certificate is None:
            return plain
        return ssl.create_default_context(cafile=str(self.certificate)).wrap_socket(plain, server_hostname="localhost")

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def origin(self) -> str:
        return f"{urlsplit(self.url).scheme}://localhost:{self.port}"

    def ask(self, line: str, *headers: str, host: str | None = None) -> tuple[int, str]:
        """Send a request as it is; return the status, and all that comes until the server closes."""
        lines = [f"{line} HTTP/1.1", f"Host: {host or f'localhost:{self.port}'}", *headers, "Connection: close", "", ""]
        with self.connect() as client:
            client.sendall("\r\n".join(lines).encode())
            data = b""
            while part := client.recv(65_536):
                data += part
        return int(data.split(b" ", 2)[1]), data.decode("latin-1")

    def events(self, query: str, *headers: str, until: str) -> list[str]:
        """The ids of the changes that are sent up to an event with this id."""
        lines = [
            f"GET /api/queries/q/changes?job=shop{query} HTTP/1.1",
            f"Host: localhost:{self.port}",
            *headers,
            "",
            "",
        ]
        with self.connect() as client:
            client.sendall("\r\n".join(lines).encode())
            data = b""
            while f"id: {until}\nevent: batch".encode() not in data:
                part = client.recv(65_536)
                assert part, data
                data += part
        assert b"text/event-stream" in data
        return re.findall(r"id: (\S+)\nevent: change", data.decode())

    def log_in(self) -> str:
        """The cookie that a browser gets for the token in the URL."""
        status, text = self.ask(f"GET /?token={parse_qs(urlsplit(self.url).query)['token'][0]}")
        assert status == 303
        (cookie,) = (line for line in text.split("\r\n") if line.lower().startswith("set-cookie: "))
        assert ("; Secure" in cookie) == (self.certificate is not None)
        return f"Cookie: {cookie.split(' ', 1)[1].split(';')[0]}"

    def open_socket(self, *headers: str, host: str | None = None) -> tuple[int, bytes]:
        """Ask for the WebSocket of the pages; return the status and, if it is opened, the first message."""
        key = base64.b64encode(os.urandom(16)).decode()
        more = ["Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines = [f"GET {SOCKET} HTTP/1.1", f"Host: {host or f'localhost:{self.port}'}", *headers, *more, "", ""]
        with self.connect() as client:
            client.sendall("\r\n".join(lines).encode())
            data = b""
            while b"\r\n\r\n" not in data:
                data += client.recv(65_536)
            status = int(data.split(b" ", 2)[1])
            message = data.split(b"\r\n\r\n", 1)[1]
            while status == 101 and not message:
                message = client.recv(65_536)
        return status, message


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that is its own authority, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert)]
    command += ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module", params=["http", "https"])
def console(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    home = tmp_path_factory.mktemp(request.param)
    with tempfile.TemporaryDirectory(prefix="sash-") as runtime, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", runtime)
        for name in ("shop", "depot"):
            folder = home / name
            folder.mkdir()
            history = history_of(folder).open(fresh=True)
            history.batch(0, 10, {"q": changes(("+", 1, f"tea of {name}", 1))})
            history.batch(1, 20, {"q": changes(("+", 11, "jam", 1), ("+", 11, "honey", 1))})
            history.batch(2, 30, {"q": changes()})
            history.close()
            entry = replace(view_of(folder, name).entry, pid=os.getpid())
            FileLock(Path(entry.lock), "shop").release()  # it ran once
            entry.list()
        options = ["--port", "0", "--json"]
        cert = None
        if request.param == "https":
            cert, key = certificate(home)
            options += ["--cert", str(cert), "--key", str(key)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
        command = [sys.executable, "-m", "sash.cli", "console", str(home / "shop"), str(home / "depot"), *options]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        assert process.stdout is not None
        yield Console(process, json.loads(process.stdout.readline())["url"], cert)
        process.send_signal(signal.SIGTERM)
        process.communicate()


def test_the_socket_of_the_pages_needs_cookie_origin_and_host(console: Console) -> None:
    cookie, origin = console.log_in(), f"Origin: {console.origin}"
    status, message = console.open_socket(cookie, origin)
    assert status == 101
    assert b'"sid"' in message  # it is the pages' own: Engine.IO opens a session
    for refused in (
        (),
        (origin,),
        (cookie,),
        (cookie, "Origin: http://evil.example"),
        (cookie, f"Origin: {console.origin}0"),
        (f"{cookie}x", origin),
        ("Authorization: Bearer wrong", origin),
    ):
        assert console.open_socket(*refused) == (403, b""), refused
    evil = f"evil.example:{console.port}"
    assert console.open_socket(cookie, f"Origin: {console.origin}", host=evil)[0] == 403
    assert (
        console.open_socket(cookie, f"Origin: {console.origin.replace('localhost', 'evil.example')}", host=evil)[0]
        == 403
    )


def test_nor_is_there_another_way_to_it(console: Console) -> None:
    polling = SOCKET.replace("websocket", "polling")
    cookie = console.log_in()
    assert console.ask(f"GET {polling}")[0] == 401
    assert console.ask(f"GET {polling}", cookie, "Origin: http://evil.example")[0] == 403
    assert console.ask(f"POST {polling}", cookie, "Content-Length: 0")[0] == 403
    for path in ("/", "/job/shop", "/job/shop/sql", "/_nicegui/none.js", "/api/jobs", "/metrics", "/openapi.json"):
        assert console.ask(f"GET {path}")[0] == 401, path
    assert console.ask("GET /health")[0] == 200
    status, page = console.ask("GET /job/shop/sql", cookie)
    assert status == 200
    assert "frame-ancestors 'none'" in page


def test_routes_that_could_change_something_do_not_exist(console: Console) -> None:
    cookie, origin = console.log_in(), f"Origin: {console.origin}"
    for path in ("/api/jobs", "/api/queries", "/api/queries/q", "/api/queries/q/answer", "/api/snapshot", "/health"):
        for method in ("PUT", "DELETE", "PATCH", *(["POST"] if path != "/api/snapshot" else [])):
            status, _ = console.ask(f"{method} {path}", cookie, origin, "Content-Length: 0")
            assert status in (404, 405), (method, path)


def test_several_jobs_are_served(console: Console) -> None:
    cookie = console.log_in()
    status, text = console.ask("GET /api/jobs", cookie)
    assert status == 200
    assert [job["job"] for job in json.loads(text.split("\r\n\r\n", 1)[1])] == ["shop", "depot"]
    assert console.ask("GET /api/queries/q/answer", cookie)[0] == 409
    assert "tea of depot" in console.ask("GET /api/queries/q/answer?job=depot", cookie)[1]


def test_changes_go_on_after_the_last_event_that_a_reader_has(console: Console) -> None:
    token = f"Authorization: Bearer {parse_qs(urlsplit(console.url).query)['token'][0]}"
    assert console.events("&after=0.0", token, until="1.2") == ["0.1", "1.1", "1.2"]
    assert console.events("&after=0.1", token, until="1.2") == ["1.1", "1.2"]
    assert console.events("&after=0.0", token, "Last-Event-ID: 1.1", until="1.2") == ["1.2"]  # as a browser reconnects
    assert console.ask("GET /api/queries/q/changes?job=shop&after=0.0")[0] == 401


def test_plain_requests_to_a_console_with_a_certificate_fail(console: Console) -> None:
    if console.certificate is None:
        assert console.url.startswith("http://")
        return
    assert console.url.startswith("https://")
    with socket.create_connection(("127.0.0.1", console.port), timeout=60) as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200" not in client.recv(65_536)
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(
            socket.create_connection(("127.0.0.1", console.port)), server_hostname="localhost"
        )
