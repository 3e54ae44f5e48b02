"""An engine for one command, with Spark's standard error in a log file, and the handling of signals."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from sash.engine import Engine
from sash.errors import SashError


@contextmanager
def quiet_engine(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
    shards: int | None = None,
) -> Iterator[Engine]:
    """An engine on a Spark session that is stopped afterwards. On an unexpected error, it prints the path of Spark's log."""
    from sash.spark.session import embedded_session

    log = Path(tempfile.mkdtemp(prefix="sash-log-")) / "spark.log"
    with _standard_error_to(log), _keep_interrupt_handler():
        engine = Engine(embedded_session(master=master, extra=conf), checkpoint, shards)
    try:
        yield engine
    except BaseException as problem:
        if not isinstance(problem, SashError):
            print(f"sash: the log of Spark is {log}", file=sys.stderr)
        raise
    else:
        log.unlink()
        log.parent.rmdir()
    finally:
        with suppress(Exception):  # the JVM may have ended already
            engine.close()
            engine.spark.stop()


@contextmanager
def starting_engine(**options: Any) -> Iterator[Future[Engine]]:
    """An engine as of `quiet_engine`, which another thread starts."""
    with ExitStack() as stack, ThreadPoolExecutor(1, "sash-start") as pool:
        yield pool.submit(lambda: stack.enter_context(quiet_engine(**options)))


@contextmanager
def _keep_interrupt_handler() -> Iterator[None]:
    """Restore the handler of Ctrl-C that Spark replaces by one that cancels the jobs of every query."""
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
    """An event that the signals set; a second signal has its usual effect."""
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
    """Redirect standard error to the file for the processes that are started meanwhile, as long as they live."""
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
