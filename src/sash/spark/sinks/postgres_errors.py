"""Errors of PostgreSQL as Sash's: in one line, with what to change, and whether a retry may succeed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sash.errors import SinkError

if TYPE_CHECKING:
    import psycopg

_TEMPORARY_STATES = ("08", "40", "53", "55P03", "57", "25006")
"""SQLSTATEs, or their first characters: connections, conflicts, resources, locks, shutdowns, and a standby that is not yet
promoted."""

_TEMPORARY_WORDS = (
    "starting up",
    "shutting down",
    "recovery",
    "too many clients",
    "connection slots",
    "not yet accepting",
)
"""A server that refuses a connection sends a FATAL message; with one of these it will soon accept it."""

_PERMANENT_WORDS = ("no password supplied", "certificate", "does not support SSL", "invalid port", "invalid connection")

_ADVICE = {
    "password authentication failed": "correct the password in the url, in PGPASSWORD or in ~/.pgpass",
    "no password supplied": "give a password in the url, in PGPASSWORD or in ~/.pgpass",
    "Peer authentication failed": "connect as the user of the same name, or by host and password",
    "no pg_hba.conf entry": "allow the connection in the server's pg_hba.conf",
    "role ": "create the role, or correct the user in the url",
    "database ": "create the database, or correct the url",
    "Connection refused": "start the server, or correct host and port in the url",
    "No such file or directory": "start the server, or name its host in the url",
    "failed to resolve host": "correct the host in the url",
    "permission denied": "grant the user the rights to {purpose} the table",
    "read-only": "name the primary server in the url",
}
"""What to do, by words of the message."""


def to_sink_error(problem: psycopg.Error, table: str) -> SinkError:
    """Return the error of a table that is written to."""
    return SinkError(describe(problem, table, "create and write"), transient=is_temporary(problem))


def describe(problem: psycopg.Error, table: str, purpose: str) -> str:
    """Return the error in one line: the table, what PostgreSQL reports, and what to do, given what the table is used for."""
    lines = str(problem).strip().splitlines() or [type(problem).__name__]
    text = (
        lines[0].rpartition(" failed: ")[2]
        if lines[0].startswith(("connection failed", "connection is bad"))
        else lines[0]
    )
    where = lines[0].partition("connection to server ")[2].partition(" failed: ")[0]
    reason = f"{' '.join(text.split())}{f' (server {where})' if where else ''}"
    advice = next((f": {what}" for words, what in _ADVICE.items() if words in text), "").format(purpose=purpose)
    return f"PostgreSQL, table {table}: {reason}{advice}"


def is_temporary(problem: psycopg.Error) -> bool:
    """Whether the same statements may succeed later: not after a wrong password, or on a table that does not fit."""
    import psycopg

    if problem.sqlstate is not None:
        return problem.sqlstate.startswith(_TEMPORARY_STATES)
    if not isinstance(problem, psycopg.OperationalError):
        return False
    text = str(problem)
    if "FATAL:" in text:
        return any(words in text for words in _TEMPORARY_WORDS)
    return not any(words in text for words in _PERMANENT_WORDS)
