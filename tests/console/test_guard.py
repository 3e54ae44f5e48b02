"""Who may use the console, tried with raw clients against the whole application, pages included."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from sash.console.guard import Access
from sash.console.serve import ServerSettings, known_names
from sash.errors import OptionError
from tests.console.served import access_to, raw, served, view_of, web_socket_status

pytest.importorskip("nicegui", reason="the console's extra is not installed")


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Access]]:
    from fastapi import FastAPI
    from starlette.routing import WebSocketRoute
    from starlette.websockets import WebSocket

    from sash.console.api import api_routes
    from sash.console.guard import Guard

    listening = socket.create_server(("127.0.0.1", 0))
    access = access_to(listening)
    app = FastAPI()
    app.include_router(api_routes({"shop": view_of(tmp_path_factory.mktemp("job"))}))

    async def talk(client: WebSocket) -> None:
        await client.accept()
        await client.close()

    app.router.routes.append(WebSocketRoute("/_nicegui_ws/socket.io/", talk))

    with served(Guard(app, access), listening) as port:
        yield port, access


def get(port: int, path: str, *headers: str, host: str | None = None) -> tuple[int, str]:
    return raw(port, [f"GET {path} HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", *headers])


def test_only_health_is_open(console: tuple[int, Access]) -> None:
    port, access = console
    assert get(port, "/health")[0] == 200
    for path in (
        "/",
        "/api/jobs",
        "/metrics",
        "/openapi.json",
        "/api/queries/q/answer",
        "/health/x",
        "//health",
        "/HEALTH",
    ):
        assert get(port, path)[0] == 401, path
    assert get(port, "/api/jobs", f"Authorization: Bearer {access.token}")[0] == 200
    assert get(port, "/api/jobs", f"Authorization: Bearer {access.token}x")[0] == 401
    assert get(port, "/api/jobs", f"Authorization: Bearer {access.session}")[0] == 401
    assert get(port, "/api/jobs", f"Cookie: {access.cookie}={access.token}")[0] == 401


def test_the_token_in_the_url_becomes_a_cookie_and_leaves_the_url(console: tuple[int, Access]) -> None:
    port, access = console
    status, text = get(port, f"/job/shop?tab=1&token={access.token}")
    assert status == 303
    head = text.lower()
    assert "\r\nlocation: /job/shop?tab=1\r\n" in head
    assert "httponly" in head
    assert "samesite=strict" in head
    assert access.token not in text
    cookie = f"Cookie: other=1; {access.cookie}={access.session}"
    assert get(port, "/api/jobs", cookie)[0] == 200
    assert get(port, "/api/jobs?token=wrong", cookie)[0] == 403
    status, text = get(port, f"//evil.example/?token={access.token}")
    assert "\r\nlocation: /evil.example/\r\n" in text.lower()
    status, text = get(port, f"/job/shop/query/K%C3%A4se%20%0D%0Ax%3A1?token={access.token}")
    assert "\r\nlocation: /job/shop/query/K%C3%A4se%20%0D%0Ax%3A1\r\n" in text


def test_other_hosts_and_origins_are_refused(console: tuple[int, Access]) -> None:
    port, access = console
    bearer = f"Authorization: Bearer {access.token}"
    for host in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", "", "[::1"):
        assert get(port, "/api/jobs", bearer, host=host or "''")[0] == 421, host
        assert get(port, "/health", host=host or "''")[0] == 421, host
    assert get(port, "/api/jobs", bearer, host=f"localhost:{port}")[0] == 200
    for origin in ("http://evil.example", "null", f"https://127.0.0.1:{port}", "http://127.0.0.1:1", "file://"):
        assert get(port, "/api/jobs", bearer, f"Origin: {origin}")[0] == 403, origin
    assert get(port, "/api/jobs", bearer, f"Origin: http://127.0.0.1:{port}")[0] == 200


def test_a_post_with_a_cookie_must_say_its_origin(console: tuple[int, Access]) -> None:
    port, access = console
    body = b'{"sql": "SELECT COUNT(*) FROM s"}'
    lines = [
        "POST /api/snapshot HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Cookie: {access.cookie}={access.session}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
    ]
    assert raw(port, lines, body)[0] == 403
    status, text = raw(port, [*lines, f"Origin: http://127.0.0.1:{port}"], body)
    assert status == 400  # the job does not run
    assert "keeps no window" in text


def test_the_web_socket_needs_all_of_it(console: tuple[int, Access]) -> None:
    port, access = console
    path = "/_nicegui_ws/socket.io/?EIO=4&transport=websocket"
    host, origin = f"Host: 127.0.0.1:{port}", f"Origin: http://127.0.0.1:{port}"
    cookie = f"Cookie: {access.cookie}={access.session}"
    assert web_socket_status(port, path, [host, origin, cookie]) == 101
    for missing in ([host, origin], [host, cookie], [host, cookie, "Origin: http://evil.example"]):
        assert web_socket_status(port, path, missing) == 403, missing
    assert web_socket_status(port, path, ["Host: evil.example", "Origin: http://evil.example", cookie]) == 403
    assert web_socket_status(port, f"{path}&token={access.token}", [host, origin]) == 403


def test_large_bodies_are_refused(console: tuple[int, Access]) -> None:
    port, access = console
    head = ["POST /api/snapshot HTTP/1.1", f"Host: 127.0.0.1:{port}", f"Authorization: Bearer {access.token}"]
    assert raw(port, [*head, "Content-Length: 9999999"])[0] == 413
    chunk = b"80000\r\n" + b"x" * 0x80000 + b"\r\n"
    status, _ = raw(port, [*head, "Transfer-Encoding: chunked"], chunk * 3 + b"0\r\n\r\n")
    assert status == 400


def test_other_machines_are_served_with_a_certificate_only(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::", "example.org", "10.0.0.1"):
        with pytest.raises(OptionError, match="--cert and --key"):
            ServerSettings(host=host).check()
        ServerSettings(host=host, cert=tmp_path, key=tmp_path).check()
    with pytest.raises(OptionError, match="needs its key"):
        ServerSettings(cert=tmp_path).check()
    ServerSettings(host="::1").check()
    assert "evil.example" not in known_names("0.0.0.0")
