"""Who may use the console: a token, the address that was asked for, and where a request comes from are checked here.

This wraps the whole application, so that nothing, the WebSocket of the pages included, is reached without it.
"""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = frozenset({"/health"})
"""What needs no token."""

_MOST_BODY = 1 << 20
_SAFE = ("GET", "HEAD", "OPTIONS")
_REFUSED_POLICY = 1008
_HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"frame-ancestors 'none'; base-uri 'self'; object-src 'none'; form-action 'self'"),
)


@dataclass(frozen=True)
class Access:
    """What a request must have: a name of this server as its host, and the token, once in the URL, then as a cookie.

    The cookie has another secret than the token, and its name has the port, because browsers share cookies among ports.
    """

    hosts: frozenset[str]
    port: int
    secure: bool = False
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    session: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    @property
    def cookie(self) -> str:
        """The name of the cookie."""
        return f"sash_console_{self.port}"

    @property
    def scheme(self) -> str:
        """The scheme of its URLs."""
        return "https" if self.secure else "http"


class Guard:
    """Lets requests through that `Access` allows, and refuses all others with a status and one line of JSON."""

    def __init__(self, app: Application, access: Access) -> None:
        self._app, self._access = app, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] not in ("http", "websocket"):
            return
        headers = _headers(scope)
        problem = self._refusal(scope, headers)
        if problem is not None:
            await _refuse(scope, receive, send, *problem)
            return
        if scope["type"] == "http" and (token := _query(scope).get("token")) is not None:
            await self._log_in(scope, send, token)
            return
        await self._app(scope, _bounded(receive), _with_headers(send) if scope["type"] == "http" else send)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """The status and the reason with which a request is refused."""
        if _host(headers.get("host", "")) not in self._access.hosts:
            return 421, "this server does not have that name"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"{self._access.scheme}://{headers['host'].lower()}":
            return 403, "requests from pages of other origins are refused"
        if int(headers.get("content-length") or 0) > _MOST_BODY:
            return 413, f"the body has more than {_MOST_BODY:,} bytes"
        if scope["type"] == "http" and scope["path"] in OPEN:
            return None
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") and "token" in _query(scope):
            return None  # it is checked by `_log_in`
        if _same(headers.get("authorization", ""), f"Bearer {self._access.token}"):
            return None
        if not _same(_cookie(headers.get("cookie", ""), self._access.cookie), self._access.session):
            return 401, "open the URL that the console printed when it started, or send its token as a bearer"
        unsafe = scope["type"] == "websocket" or scope["method"] not in _SAFE
        if unsafe and origin is None:
            return 403, "a request with a cookie must say its origin"
        return None

    async def _log_in(self, scope: Scope, send: Send, token: str) -> None:
        """Give the cookie to who has the token, and go on without the token in the URL."""
        if not _same(token, self._access.token):
            await _reply(send, 403, {"detail": "wrong token: each start of the console has another one"})
            return
        rest = urlencode([(name, value) for name, value in parse_qsl(_raw(scope)) if name != "token"])
        path = quote("/" + str(scope["path"]).lstrip("/"))  # no host can follow two slashes
        more = "; Secure" if self._access.secure else ""
        cookie = f"{self._access.cookie}={self._access.session}; HttpOnly; SameSite=Strict; Path=/{more}"
        target = path + (f"?{rest}" if rest else "")
        headers = [(b"location", target.encode("ascii")), (b"set-cookie", cookie.encode())]
        await _reply(send, 303, {"detail": "logged in"}, headers)


def _headers(scope: Scope) -> dict[str, str]:
    """The headers of a request by lower-case name; of repeated ones the last, except cookies, which are joined."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}; {text}" if key == "cookie" and key in found else text
    length = found.get("content-length", "0")
    found["content-length"] = length if length.isdigit() else str(_MOST_BODY + 1)
    return found


def _raw(scope: Scope) -> str:
    return bytes(scope.get("query_string", b"")).decode("latin-1")


def _query(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(_raw(scope)))


def _host(given: str) -> str:
    """The name in a Host header without its port."""
    try:
        return (urlsplit(f"//{given}").hostname or "").lower()
    except ValueError:
        return ""


def _cookie(header: str, name: str) -> str:
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(given: str, known: str) -> bool:
    return hmac.compare_digest(given.encode(), known.encode())


def _bounded(receive: Receive) -> Receive:
    """Ends requests whose body is larger than it may be although they did not say so."""
    taken = 0

    async def limited() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > _MOST_BODY:
                return {"type": "http.disconnect"}
        return message

    return limited


def _with_headers(send: Send) -> Send:
    async def extended(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", ()), *_HEADERS]
        await send(message)

    return extended


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, reason: str) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": _REFUSED_POLICY, "reason": reason})
        return
    await _reply(send, status, {"detail": reason})


async def _reply(send: Send, status: int, body: dict[str, str], more: list[tuple[bytes, bytes]] | None = None) -> None:
    data = json.dumps(body).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(data)).encode()),
        (b"cache-control", b"no-store"),
        *(more or ()),
        *_HEADERS,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": data})
