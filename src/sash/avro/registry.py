"""A schema registry over HTTP, as Confluent's and those that speak its interface.

A schema never changes once it has a number, so readers ask for it once per process.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from sash.avro.schema import Avro, parse_avro
from sash.errors import CatalogError, OptionError

_TIMEOUT = 30
_NOT_FOUND, _OF_SERVER = 404, 500
_DEPTH = 20
"""How far schemas may refer to others."""


@dataclass(frozen=True)
class Login:
    """A user with a password, which is not shown."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.user})"


class _PassingError(Exception):
    """The registry has a problem that may pass."""


@dataclass(frozen=True)
class Registry:
    """The registry at an address."""

    url: str
    login: Login | None = None
    waits: tuple[float, ...] = (1.0, 3.0)
    """Seconds before each further try, if it cannot be reached or has a problem of its own."""

    def schema(self, number: int) -> Avro | None:
        """The schema of this number; None if there is none, or if it is not Avro."""
        return self._parsed(self.get(f"/schemas/ids/{number}"))

    def versions(self, subject: str) -> list[int]:
        """The versions of a subject, the newest first; none if it does not exist."""
        found = self.get(f"/subjects/{quote(subject, safe='')}/versions")
        return sorted(map(int, found or ()), reverse=True)

    def version(self, subject: str, number: int | str = "latest") -> Avro | None:
        """A version of a subject; None if it does not exist."""
        return self._parsed(self.get(f"/subjects/{quote(subject, safe='')}/versions/{number}"))

    def get(self, path: str) -> Any:
        """The answer to a request; None if what is asked for does not exist."""
        for wait in self.waits:
            try:
                return self._get(path)
            except _PassingError:
                time.sleep(wait)
        try:
            return self._get(path)
        except _PassingError as problem:
            raise CatalogError(str(problem)) from None

    def _get(self, path: str) -> Any:
        request = urllib.request.Request(self.url.rstrip("/") + path)  # noqa: S310  (http or https, see registry_address)
        request.add_header("Accept", "application/vnd.schemaregistry.v1+json, application/json")
        if self.login is not None:
            given = f"{self.login.user}:{self.login.password}".encode()
            request.add_header("Authorization", f"Basic {base64.b64encode(given).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
                return json.loads(answer.read())
        except urllib.error.HTTPError as problem:
            with problem:
                if problem.code == _NOT_FOUND:
                    return None
                kind = CatalogError if problem.code < _OF_SERVER else _PassingError
                login = ": give registry.user and registry.password" if problem.code in (401, 403) else ""
                raise kind(f"the schema registry {self.url} answers {problem.code} to {path}{login}") from None
        except (OSError, ValueError) as problem:
            raise _PassingError(
                f"the schema registry {self.url} cannot be reached: {problem}. Check its address"
            ) from None

    def _parsed(self, answer: Any, depth: int = 0) -> Avro | None:
        """A schema of an answer, with those that it refers to."""
        if answer is None or answer.get("schemaType", "AVRO") != "AVRO":
            return None
        named: dict[str, Avro] = {}
        for reference in answer.get("references") or ():
            if depth > _DEPTH:
                raise CatalogError("schemas of the registry refer to each other in a circle")
            path = f"/subjects/{quote(reference['subject'], safe='')}/versions/{reference['version']}"
            found = self._parsed(self.get(path), depth + 1)
            if found is not None:
                named |= {found.name: found, str(reference["name"]): found}
        return parse_avro(answer["schema"], named)


def registry_address(text: str) -> str:
    """The address, if it is one of HTTP without a user."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise OptionError(f"registry is the address of a schema registry, such as http://localhost:8081, not {text!r}")
    if parts.username is not None:
        raise OptionError("registry is an address without a user: give registry.user and registry.password")
    return text
