"""A Spark session for a command: what the JVM and its workers say on standard error goes to a file, not the screen."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sash.engine import Engine


@contextmanager
def quiet_engine() -> Iterator[Engine]:
    """An engine on an embedded session that is stopped afterwards; if something fails, where Spark's words are is told."""
    log = Path(tempfile.mkdtemp(prefix="sash-log-")) / "spark.log"
    with _standard_error_to(log):
        engine = Engine()
    try:
        yield engine
    except BaseException:
        print(f"sash: what Spark said is in {log}", file=sys.stderr)
        raise
    else:
        engine.spark.stop()
        log.unlink()
        log.parent.rmdir()


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
