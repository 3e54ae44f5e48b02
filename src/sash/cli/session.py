"""A Spark session for a command: what the JVM and its workers say on standard error goes to a file, not the screen."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sash.engine import Engine
from sash.errors import SashError


@contextmanager
def quiet_engine(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
    shards: int | None = None,
) -> Iterator[Engine]:
    """An engine on a session that is stopped afterwards; if something unforeseen fails, where Spark's words are is told."""
    from sash.spark.session import embedded_session

    log = Path(tempfile.mkdtemp(prefix="sash-log-")) / "spark.log"
    with _standard_error_to(log), _interrupt_kept():
        engine = Engine(embedded_session(master=master, extra=conf), checkpoint, shards)
    try:
        yield engine
    except BaseException as problem:
        if not isinstance(problem, SashError):
            print(f"sash: what Spark said is in {log}", file=sys.stderr)
        raise
    else:
        log.unlink()
        log.parent.rmdir()
    finally:
        with suppress(Exception):  # a JVM that is gone has nothing left to stop
            engine.close()
            engine.spark.stop()


@contextmanager
def _interrupt_kept() -> Iterator[None]:
    """Spark would answer Ctrl-C by cancelling the jobs of every query; it is ours to answer."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, kept)


@contextmanager
def stopped_by(*signals: signal.Signals) -> Iterator[threading.Event]:
    """An event that the signals set; a second one ends the process as it would have without us."""
    event = threading.Event()
    kept = {number: signal.getsignal(number) for number in signals}

    def handle(number: int, frame: object) -> None:
        if event.is_set():
            signal.signal(number, kept[signal.Signals(number)])
            signal.raise_signal(number)
        event.set()

    for number in signals:
        signal.signal(number, handle)
    try:
        yield event
    finally:
        for number, before in kept.items():
            signal.signal(number, before)


@contextmanager
def _standard_error_to(path: Path) -> Iterator[None]:
    """Processes that are started meanwhile write their standard error to the file, for as long as they live."""
    sys.stderr.flush()
    kept = os.dup(2)
    target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(target, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(target)
