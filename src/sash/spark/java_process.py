"""The Java process of an embedded session. It is launched in the background, while this process imports and plans."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from sash.spark.log import spark_log

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

_pending: list[JavaProcess] = []
"""The process that was launched and not taken yet."""


class JavaProcess:
    """A Java process that is being launched with the settings of a session."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._gateway: JavaGateway | None = None
        self._problem: BaseException | None = None
        self._thread = threading.Thread(target=self._launch, name="sash-java", daemon=True)
        self._thread.start()

    def _launch(self) -> None:
        # A session of its own: signals to ours (Ctrl-C, `timeout`) must not end Java in a batch. It ends with this process,
        # when its standard input is closed. Its standard error, and that of Python workers, is the log.
        log = spark_log().open()
        try:
            conf = SparkConf(loadDefaults=False).setAll(list(self._settings.items()))
            options = {"start_new_session": True, "stderr": log}
            self._gateway = launch_gateway(conf, options)  # type: ignore[no-untyped-call]
        except BaseException as problem:  # noqa: BLE001  (raised in the thread that needs the process)
            self._problem = problem
        finally:
            os.close(log)

    def gateway(self) -> JavaGateway:
        """Wait for the process; raise what prevented it."""
        self._thread.join()
        if self._problem is not None:
            raise self._problem
        assert self._gateway is not None
        return self._gateway

    def end(self) -> None:
        """End the process, once it is there."""
        self._thread.join()
        if self._gateway is not None and self._gateway.proc.stdin is not None:
            self._gateway.proc.stdin.close()


def launch(settings: Mapping[str, str]) -> None:
    """Start to launch the process, unless this Python process has or gets one already."""
    if SparkContext._gateway is None and not _pending:  # noqa: SLF001  (no public way to ask)
        _pending.append(JavaProcess(settings))


def take(settings: Mapping[str, str]) -> JavaGateway | None:
    """The launched process, or a new one; None if this Python process uses one already."""
    launch(settings)
    return _pending.pop().gateway() if _pending else None


def discard() -> None:
    """End a launched process that nobody needs."""
    while _pending:
        _pending.pop().end()


def end_java() -> None:
    """End the Java process of the sessions of this Python process, and wait until it has ended."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001  (no public way to ask)
    if gateway is not None:
        gateway.proc.stdin.close()
        gateway.proc.wait()
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
