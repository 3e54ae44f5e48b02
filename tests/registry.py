"""A schema registry for tests: an HTTP server on loopback with the routes by which readers and writers use one."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class SchemaRegistry:
    """Subjects with versions of schemas; every different schema has a number. `login` is user:password, if one is needed."""

    def __init__(self, url: str, login: str | None) -> None:
        self.url = url
        self.login = login
        self.schemas: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.failures = 0
        """How many requests fail before the next one is answered."""

    def add(self, subject: str, schema: Any, **given: Any) -> int:
        """Add a version; returns the number of its schema."""
        entry = {"schema": json.dumps(schema), **given}
        number = next((n for n, known in self.schemas.items() if known == entry), len(self.schemas) + 1)
        self.schemas[number] = entry
        self.subjects.setdefault(subject, []).append(number)
        return number

    def answer(self, path: str) -> Any:
        parts = [unquote(part) for part in path.strip("/").split("/")]
        if parts[:2] == ["schemas", "ids"]:
            return self.schemas.get(int(parts[2]))
        versions = self.subjects.get(parts[1]) if parts[0] == "subjects" else None
        if versions is None:
            return None
        if len(parts) == 3:
            return list(range(1, len(versions) + 1))
        version = len(versions) if parts[3] == "latest" else int(parts[3])
        number = versions[version - 1]
        return {"subject": parts[1], "version": version, "id": number, **self.schemas[number]}


@contextmanager
def schema_registry(login: str | None = None) -> Iterator[SchemaRegistry]:
    """A running registry."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.requests.append(self.path)
            if made.failures:
                made.failures -= 1
                return self.reply(503, {})
            expected = None if made.login is None else f"Basic {base64.b64encode(made.login.encode()).decode()}"
            if expected is not None and self.headers.get("Authorization") != expected:
                return self.reply(401, {"error_code": 401})
            found = made.answer(self.path)
            return self.reply(404, {"error_code": 40403}) if found is None else self.reply(200, found)

        def reply(self, code: int, body: Any) -> None:
            text = json.dumps(body).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = SchemaRegistry(f"http://127.0.0.1:{server.server_port}", login)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
