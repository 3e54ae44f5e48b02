"""PARSE_URL: the parts of a URL, by the grammar of java.net.URI (RFC 2396)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from sash.errors import EvaluationError, excerpt
from sash.operators.scalar.function import Function, by_value

_SPLIT = re.compile(r"(?:([^:/?#]+):)?(?://([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.DOTALL)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")
_OTHER = "\u0080-\U0010ffff"
_ESCAPE = "%[0-9A-Fa-f]{2}"
_UNRESERVED = rf"A-Za-z0-9_.!~*'(){_OTHER}-"
_PATH = re.compile(rf"(?:[{_UNRESERVED}:@&=+$,;/]|{_ESCAPE})*")
_QUERY = re.compile(rf"(?:[{_UNRESERVED};/?:@&=+$,\[\]]|{_ESCAPE})*")
_REGISTRY = re.compile(rf"(?:[{_UNRESERVED}$,;:@&=+\[\]]|{_ESCAPE})*")
_SERVER = re.compile(
    rf"(?:(?P<user>(?:[{_UNRESERVED};:&=+$,]|{_ESCAPE})*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.%A-Za-z]+\]|(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.)*"
    r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?\.?|\d{1,3}(?:\.\d{1,3}){3})(?::\d*)?"
)


@dataclass(frozen=True)
class _Url:
    scheme: str | None
    authority: str | None
    user: str | None
    host: str | None
    path: str | None
    query: str | None
    fragment: str | None


@lru_cache(maxsize=4096)
def _parsed(url: str) -> _Url | None:
    """The parts of a URL; None if it is malformed."""
    found = _SPLIT.fullmatch(url)
    assert found is not None
    scheme, authority, path, query, fragment = found.groups()
    if any(character.isspace() or not character.isprintable() for character in url):
        return None
    if scheme is not None and not _SCHEME.fullmatch(scheme):
        return None
    if not all(part is None or _QUERY.fullmatch(part) for part in (query, fragment)):
        return None
    if scheme is not None and authority is None and not path.startswith("/"):
        # An opaque URI, such as mailto:a@b, has neither a path nor a query.
        specific = path if query is None else f"{path}?{query}"
        if not specific or not _QUERY.fullmatch(specific):
            return None
        return _Url(scheme, None, None, None, None, None, fragment)
    if not _PATH.fullmatch(path):
        return None
    if authority is None or not authority:
        # Java wants an authority after the slashes, unless a path follows.
        if authority == "" and not path:
            return None
        return _Url(scheme, None, None, None, path, query, fragment)
    server = _SERVER.fullmatch(authority)
    if server is None:
        if not _REGISTRY.fullmatch(authority):
            return None
        return _Url(scheme, authority, None, None, path, query, fragment)
    return _Url(scheme, authority, server["user"], server["host"], path, query, fragment)


def _part(url: str, part: str, key: str | None) -> tuple[bool, str | None]:
    """Whether the URL is well formed, and its part."""
    parsed = _parsed(url)
    if parsed is None:
        return False, None
    if key is not None:
        if part != "QUERY" or parsed.query is None:
            return True, None
        found = (
            re.search(rf"(?:&|^){key}=([^&]*)", parsed.query)
            if re.fullmatch(r"\w*", key)
            else _by_text(parsed.query, key)
        )
        return True, None if found is None else found[1]
    match part:
        case "HOST":
            value = parsed.host
        case "PATH":
            value = parsed.path
        case "QUERY":
            value = parsed.query
        case "REF":
            value = parsed.fragment
        case "PROTOCOL":
            value = parsed.scheme
        case "FILE":
            value = parsed.path if parsed.query is None or parsed.path is None else f"{parsed.path}?{parsed.query}"
        case "AUTHORITY":
            value = parsed.authority
        case "USERINFO":
            value = parsed.user
        case _:
            value = None
    return True, value


def _by_text(query: str, key: str) -> re.Match[str] | None:
    if re.search(r"[\\^$.|?*+()\[\]{}]", key):
        raise EvaluationError(
            f"parse_url: Sash does not look for the key '{excerpt(key)}', a regular expression in Spark"
        )
    return re.search(rf"(?:&|^){re.escape(key)}=([^&]*)", query)


def _parse_url(url: str, part: str, key: str | None = None) -> str | None:
    good, value = _part(url, part, key)
    if not good:
        raise EvaluationError(f"parse_url: '{excerpt(url)}' is not a URL; use try_parse_url to get NULL instead")
    return value


def _try_parse_url(url: str, part: str, key: str | None = None) -> str | None:
    return _part(url, part, key)[1]


FUNCTIONS: dict[str, Function] = {
    "parse_url": by_value(_parse_url, 2, 3, fails=True),
    "try_parse_url": by_value(_try_parse_url, 2, 3, fails=True),
}
