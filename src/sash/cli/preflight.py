"""What a job needs around it: free ports, usable folders, PostgreSQL. It is checked before Spark is started."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from urllib.parse import urlparse

from sash.cli.check import positioned
from sash.errors import CatalogError, CheckpointError, OptionError, SashError, SqlSyntaxError
from sash.script.dry_run import CheckedQuery, DryRunBackend
from sash.script.sources import STREAMS, option
from sash.script.statements import CreateRelation, CreateStream, Statement, about

_PATTERN = re.compile(r"[*?\[{]")
_DEFAULT_SYSTEM = "spark.hadoop.fs.defaultFS"


def check_surroundings(
    backend: DryRunBackend, checkpoint: str, metrics_port: int | None, conf: Mapping[str, str], master: str | None
) -> list[SqlSyntaxError]:
    """The errors of what a checked job needs; those that are about no statement have no position."""
    found: list[SqlSyntaxError] = []
    for check, statement in _checks(backend, checkpoint, metrics_port, here=is_local(conf, master)):
        try:
            check()
        except SashError as problem:
            found.append(SqlSyntaxError(str(problem)) if statement is None else positioned(problem, statement))
    return found


def _checks(
    backend: DryRunBackend, checkpoint: str, metrics_port: int | None, *, here: bool
) -> Iterator[tuple[Callable[[], None], Statement | None]]:
    """The checks, each with the statement that it is about; those of paths only if they are on this machine (`here`)."""
    yield partial(check_port, metrics_port), None
    if here:
        yield partial(check_folder, checkpoint), None
        for statement in backend.declared:
            yield partial(check_path, statement), statement
        for query in backend.checked:
            yield partial(check_checkpoint, query, checkpoint), query.statement
    for query in backend.checked:
        yield partial(check_sink, query), query.statement


def is_local(conf: Mapping[str, str], master: str | None) -> bool:
    """Whether paths without a scheme are on this machine's file system."""
    elsewhere = _DEFAULT_SYSTEM in conf or os.environ.get("HADOOP_CONF_DIR") or "PYSPARK_GATEWAY_PORT" in os.environ
    return not elsewhere and (master or "local").startswith("local")


def check_port(port: int | None, host: str = "127.0.0.1") -> None:
    """Raise OptionError if the metrics cannot be served on the port."""
    if not port:
        return
    with closing(socket.socket()) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            raise OptionError(
                f"metrics cannot be served on {host}:{port}: {reason}; choose another port, or 0"
            ) from None


def check_folder(location: str) -> None:
    """Raise CheckpointError if no files can be written to a local folder, which need not exist."""
    folder = _local(location)
    if folder is None:
        return
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        raise CheckpointError(f"the checkpoint {location} cannot be written: {there} is a file; choose another folder")
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as problem:
        raise CheckpointError(
            f"the checkpoint {location} cannot be written: {there}: {problem.strerror}; choose another folder"
        ) from None


def check_checkpoint(query: CheckedQuery, checkpoint: str) -> None:
    """Raise CheckpointError if the folder of the query's checkpoint is that of another query."""
    from sash.spark.fingerprint import NAME, refuse_foreign, refuse_other

    location = f"{checkpoint.rstrip('/')}/{query.statement.name}"
    folder = _local(location)
    if folder is None or not folder.exists():
        return
    check_folder(location)
    stored = folder / NAME
    if not stored.exists():
        refuse_foreign(location, (folder / "offsets").exists())
    elif query.planned is not None:
        refuse_other(location, json.loads(stored.read_text(encoding="utf-8")), dict(_fingerprint(query)))


def _fingerprint(query: CheckedQuery) -> Iterator[tuple[str, object]]:
    """The parts of a query's fingerprint that are known without Spark."""
    from sash.spark.stage import FORMAT

    planned = query.planned
    assert planned is not None
    yield "format", FORMAT
    yield "sql", planned.sql.strip()
    yield "join", planned.options.join
    yield "tau", planned.options.tau
    yield "streams", list(planned.streams)
    yield "relations", list(planned.changing)
    yield "heartbeats", list(query.heartbeats)


def check_path(statement: CreateStream | CreateRelation) -> None:
    """Raise CatalogError if the files that a stream or relation reads do not exist."""
    declaration = statement.declaration
    path = option(dict(declaration.options), "path")
    folder = _local(str(path)) if path is not None and "path" in _required(declaration.source) else None
    if folder is not None and not folder.exists() and not _PATTERN.search(str(folder)):
        what = "stream" if isinstance(statement, CreateStream) else "relation"
        with about("option path"):
            raise CatalogError(f"{what} {declaration.name}: there is no {path}: create the folder first")


def _required(source: str) -> tuple[str, ...]:
    return STREAMS[source].required if source in STREAMS else ()


def check_sink(query: CheckedQuery) -> None:
    """Raise an error if the system that the query writes to cannot be reached, or does not fit."""
    if query.sink is not None and query.output is not None:
        with about("sink"):
            query.sink.connect(query.output)


def _local(location: str) -> Path | None:
    """The path of a local folder; None for one on another file system."""
    parts = urlparse(location)
    return Path(parts.path if parts.scheme == "file" else location) if parts.scheme in ("", "file") else None
