"""What a job needs around it: free ports, usable folders, PostgreSQL. It is checked before Spark is started."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

from sash.cli.check import positioned
from sash.errors import CatalogError, CheckpointError, OptionError, SashError, SqlSyntaxError
from sash.script.dry_run import CheckedQuery, DryRunBackend
from sash.script.extensions import Extensions
from sash.script.sources import STREAMS, PostgresOptions, option
from sash.script.statements import CreateRelation, CreateStream, Statement, about
from sash.script.stored_jobs import stored_jobs
from sash.secret_references import has_references, resolve
from sash.spark.checkpoint_lock import refuse_locked
from sash.spark.folders import Folder, local_path

_PATTERN = re.compile(r"[*?\[{]")
_DEFAULT_SYSTEM = "spark.hadoop.fs.defaultFS"


def check_surroundings(
    backend: DryRunBackend,
    checkpoint: str,
    metrics_port: int | None,
    conf: Mapping[str, str],
    master: str | None,
    metrics_host: str = "127.0.0.1",
) -> list[SqlSyntaxError]:
    """The errors of what a checked job needs; those that are about no statement have no position."""
    found: list[SqlSyntaxError] = []
    for check, statement in _checks(
        backend, checkpoint, (metrics_port, metrics_host), conf, here=is_local(conf, master)
    ):
        try:
            check()
        except SashError as problem:
            found.append(SqlSyntaxError(str(problem)) if statement is None else positioned(problem, statement))
    return found


def _checks(
    backend: DryRunBackend, checkpoint: str, metrics: tuple[int | None, str], conf: Mapping[str, str], *, here: bool
) -> Iterator[tuple[Callable[[], None], Statement | None]]:
    """The checks, each with the statement that it is about; those of paths only if they are on this machine (`here`)."""
    yield partial(check_port, *metrics), None
    if here:
        yield partial(check_folder, checkpoint), None
        yield partial(refuse_locked, checkpoint), None
        for statement in backend.declared:
            yield partial(check_path, statement), statement
        for query in backend.checked:
            yield partial(check_checkpoint, query, checkpoint), query.statement
            yield partial(refuse_locked, _checkpoint(query, checkpoint)), query.statement
        for name in _jobs(backend, checkpoint).values():
            yield partial(refuse_locked, f"{checkpoint.rstrip('/')}/{name}"), None
    for statement in backend.declared:
        yield partial(check_secrets, statement.declaration.options), statement
        yield partial(check_package, conf, statement.declaration.source), statement
        yield partial(check_table, statement), statement
    jobs = _jobs(backend, checkpoint)
    for query in backend.checked:
        yield partial(check_package, conf, query.statement.sink), query.statement
        job = None if query.group is None else jobs.get(query.group)
        yield partial(check_sink, query, checkpoint, job), query.statement


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
    folder = local_path(location)
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
    from sash.spark.fingerprint import refuse_foreign, refuse_other

    location = _checkpoint(query, checkpoint)
    folder = local_path(location)
    if folder is None or not folder.exists():
        return
    check_folder(location)
    stored = _stored(location)
    if not stored:
        refuse_foreign(location, (folder / "offsets").exists())
    elif query.planned is not None:
        refuse_other(location, stored, dict(_fingerprint(query)))


def _fingerprint(query: CheckedQuery) -> Iterator[tuple[str, object]]:
    """The parts of a query's fingerprint that are known without Spark."""
    from sash.spark.header import FORMAT

    planned = query.planned
    assert planned is not None
    yield "format", FORMAT
    yield "sql", planned.sql.strip()
    yield "join", planned.options.join
    yield "tau", planned.options.tau
    yield "streams", list(planned.streams)
    yield "relations", list(planned.changing)
    yield "heartbeats", list(query.heartbeats)


def check_secrets(options: Mapping[str, object]) -> None:
    """Raise OptionError if a secret that an option refers to is not there."""
    for name, value in options.items():
        with about(f"option {name.lower()}"):
            resolve(str(value))


def check_path(statement: CreateStream | CreateRelation) -> None:
    """Raise CatalogError if the files that a stream or relation reads do not exist."""
    declaration = statement.declaration
    path = option(dict(declaration.options), "path")
    if has_references(path):
        with suppress(OptionError):  # reported by `check_secrets`
            path = resolve(str(path))
    folder = local_path(str(path)) if path is not None and "path" in _required(declaration.source) else None
    if folder is not None and not folder.exists() and not _PATTERN.search(str(folder)):
        what = "stream" if isinstance(statement, CreateStream) else "relation"
        with about("option path"):
            raise CatalogError(f"{what} {declaration.name}: there is no {path}: create the folder first")


def check_table(statement: CreateStream | CreateRelation) -> None:
    """Raise an error if a server that a relation is read from cannot be reached, or has no such table."""
    declaration = statement.declaration
    if declaration.source == "postgres" and isinstance(statement, CreateRelation):
        from sash.spark.sources.postgres import PostgresRelation

        with about("source"):
            PostgresRelation(declaration.name, PostgresOptions.of(declaration), declaration.columns).columns()


def _required(source: str) -> tuple[str, ...]:
    return STREAMS[source].required if source in STREAMS else ()


def check_sink(query: CheckedQuery, checkpoint: str, job: str | None) -> None:
    """Raise an error if the system that the query writes to cannot be reached, or holds something else."""
    if query.sink is not None and query.output is not None:
        with about("sink"):
            query.sink.connect(replace(query.output, identity=_identity(query, checkpoint, job)))


def _identity(query: CheckedQuery, checkpoint: str, job: str | None) -> str:
    """The identity by which the query's sink knows its checkpoint, or that of its job; empty if there is none."""
    from sash.spark.job_manifest import CURRENT, read_manifest

    stored = _stored(_checkpoint(query, checkpoint))
    folder = local_folder(checkpoint)
    if stored or job is None or folder is None:
        return str(stored.get("identity", ""))
    current = folder.inside(job).read(CURRENT)
    manifest = None if current is None else read_manifest(folder.inside(job).inside(current.strip()))
    return "" if manifest is None else f"{manifest['identity']}-{query.statement.name}"


def _jobs(backend: DryRunBackend, checkpoint: str) -> dict[str, str]:
    """The names of the jobs, by the keys of their triggers."""
    folder = local_folder(checkpoint)
    return backend.job_names({} if folder is None else stored_jobs(folder))


def local_folder(location: str) -> Folder | None:
    """The folder at a path of this machine's file systems, to be read without Spark; None if there is none."""
    path = local_path(location)
    return None if path is None or not path.is_dir() else Folder(cast("Any", None), location)


def _checkpoint(query: CheckedQuery, checkpoint: str) -> str:
    """The folder of the query's checkpoint."""
    return f"{checkpoint.rstrip('/')}/{query.statement.name}"


def _stored(location: str) -> dict[str, object]:
    """The fingerprint in a local checkpoint; empty if there is none."""
    from sash.spark.fingerprint import NAME

    file = local_path(f"{location}/{NAME}")
    return json.loads(file.read_text(encoding="utf-8")) if file is not None and file.exists() else {}


def check_package(conf: Mapping[str, str], source: str) -> None:
    """Raise CatalogError if Spark would be started without its package for Kafka."""
    from sash.spark.packages import missing_kafka
    from sash.spark.session import has_jar

    if source == "kafka" and not Extensions.of(conf).sources and not has_jar("spark-sql-kafka"):
        raise CatalogError(missing_kafka())
