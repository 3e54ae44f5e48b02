"""The console's process: finds the jobs, listens, prints the URL with the token, and serves until it is stopped."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sash.errors import ControlError, OptionError
from sash.job_index import JobEntry, find_job

LOOPBACK = "127.0.0.1"
_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY = ("0.0.0.0", "::")  # noqa: S104  (only compared with)


@dataclass(frozen=True)
class ServerSettings:
    """Where the console listens; port 0 is any free one. More than loopback needs a certificate and its key."""

    port: int = 0
    host: str = LOOPBACK
    cert: Path | None = None
    key: Path | None = None
    allow_changes: bool = False

    def check(self) -> None:
        """Raise an error if these settings would serve others without encryption."""
        if (self.cert is None) != (self.key is None):
            raise OptionError("a certificate needs its key: give both --cert and --key")
        if self.cert is None and not is_loopback(self.host):
            raise OptionError(
                f"{self.host} can be reached from other machines: give a certificate with --cert and --key, or leave out --host"
            )


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def known_names(host: str) -> frozenset[str]:
    """The names under which the console may be asked for; a page of another name that leads here is refused."""
    if is_loopback(host):
        return _NAMES | {host.lower()}
    own = {socket.gethostname().lower(), socket.getfqdn().lower()}
    if host not in _ANY:
        return _NAMES | own | {host.lower()}
    listed = {str(found[4][0]).lower() for name in own for found in _addresses(name)}
    return _NAMES | own | listed


def _addresses(name: str) -> Sequence[tuple[object, object, object, object, tuple[object, ...]]]:
    try:
        return socket.getaddrinfo(name, None)
    except OSError:
        return []


def find_jobs(names: Sequence[str]) -> dict[str, JobEntry]:
    """The jobs by the names under which they are shown; those of equal names get a number."""
    found: dict[str, JobEntry] = {}
    for name in names:
        entry = find_job(name)
        short = Path(entry.name).stem
        if any(known.checkpoint == entry.checkpoint for known in found.values()):
            continue
        key, number = short, 2
        while key in found:
            key, number = f"{short}-{number}", number + 1
        found[key] = entry
    return found


def serve(jobs: Sequence[str], settings: ServerSettings, started: Callable[[str], None], *, attended: bool) -> None:
    """Serve jobs until a signal, or, if it is `attended`, until the standard input ends, which the job's process holds."""
    settings.check()
    check_extra()
    import uvicorn

    from sash.console.app import create_app
    from sash.console.browser_session import session_secret
    from sash.console.guard import Access
    from sash.console.job_view import JobView

    views = {
        name: JobView(entry, allow_changes=settings.allow_changes, name=name) for name, entry in find_jobs(jobs).items()
    }
    opened = _listen(settings)
    port = int(opened.getsockname()[1])
    jobs_served = [view.checkpoint for view in views.values()]
    secret = session_secret(port, jobs_served, allow_changes=settings.allow_changes)
    access = Access(known_names(settings.host), port, secure=settings.cert is not None, session=secret)
    app = create_app(views, access)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, ws_max_size=1 << 20,
        timeout_graceful_shutdown=2,
    )  # fmt: skip
    config.load()
    if settings.cert is not None and settings.key is not None:
        config.ssl = _context(settings.cert, settings.key)
    server = uvicorn.Server(config)
    if attended:
        threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    shown = socket.gethostname() if settings.host in _ANY else settings.host
    shown = f"[{shown}]" if ":" in shown else shown
    started(f"{access.scheme}://{shown}:{port}/?token={access.token}")
    try:
        server.run(sockets=[opened])
    finally:
        for view in views.values():
            view.close()


def check_extra() -> None:
    """Raise an error that says how to install what the console needs, if it is not there."""
    from importlib.util import find_spec

    if find_spec("nicegui") is None:
        raise OptionError("the console needs its extra: python -m pip install 'sash[console]'")


def _listen(settings: ServerSettings) -> socket.socket:
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        return socket.create_server((settings.host, settings.port), family=family, backlog=256)
    except OSError as problem:
        raise ControlError(
            f"the console cannot listen on {settings.host}:{settings.port}: {problem.strerror}; choose another port, or 0"
        ) from None


def _context(cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert, key)
    except (OSError, ssl.SSLError) as problem:
        raise OptionError(f"the certificate {cert} with the key {key} cannot be used: {problem}") from None
    return context


def _end_with_parent(server: object) -> None:
    """Stop the server when the process that started it is gone."""
    while sys.stdin.buffer.read(1024):
        pass
    server.should_exit = True  # type: ignore[attr-defined]
    threading.Timer(5, os._exit, (0,)).start()
