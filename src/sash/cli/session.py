"""An engine for one command, and the handling of signals."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from sash.engine import Engine


@contextmanager
def quiet_engine(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    checkpoint: str | None = None,
    shards: int | None = None,
) -> Iterator[Engine]:
    """An engine on a Spark session that is stopped afterwards."""
    from sash.spark.session import embedded_session

    with _keep_interrupt_handler():
        engine = Engine(embedded_session(master=master, extra=conf), checkpoint, shards)
    try:
        yield engine
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
