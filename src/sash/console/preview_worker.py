"""The process that runs previews: a request per line on its standard input, a reply per line on its standard output."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from typing import Any

from sash.answer import CurrentAnswer
from sash.console.scripts import declarations
from sash.console.values import plain
from sash.engine import Engine
from sash.errors import ControlError, SashError, SqlSyntaxError
from sash.plan.types import type_name
from sash.script.reader import read_script
from sash.script.replies import QueryReply
from sash.script.session import Session
from sash.script.statements import Select

_LOWEST = 19
_POLL = 0.1
_PATIENCE = 30.0
"""Seconds within which the first batch must end."""


def main() -> None:
    """Answer requests until the standard input ends."""
    os.nice(_LOWEST)
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what Spark prints is no reply
    engine: Engine | None = None
    for line in sys.stdin:
        given = json.loads(line)
        try:
            engine = engine or _engine()
            found = _run(engine, given["script"], given["sql"], given["seconds"], given["rows"])
        except SqlSyntaxError as problem:
            found = {"error": problem.message, "line": problem.line, "column": problem.column}
        except SashError as problem:
            found = {"error": str(problem)}
        except Exception as problem:  # noqa: BLE001  (the console shows it)
            found = {"error": f"{type(problem).__name__}: {problem}"}
        replies.write(json.dumps(found) + "\n")
        replies.flush()


def _engine() -> Engine:
    from sash.spark.session import embedded_session

    return Engine(embedded_session(master="local[1]"), shards=1)


def _run(engine: Engine, script: str, sql: str, seconds: float, rows: int) -> dict[str, Any]:
    """Run a SELECT for some seconds after its first batch."""
    for name in (*engine.catalog.streams, *engine.catalog.relations):
        engine.drop(name)
    engine.catalog.user.functions.clear()
    engine.catalog.user.aggregates.clear()
    session = Session.on(engine)
    for statement in declarations(script):
        session.execute(statement)
    (statement,) = read_script(sql)
    reply = session.execute(statement) if isinstance(statement, Select) else None
    if not isinstance(reply, QueryReply):
        raise ControlError("only one SELECT can be previewed")
    board = CurrentAnswer(reply.query.schema, reply.query.planned.order)
    running = reply.query.start(board, mode="net", trigger=None)
    try:
        begun = time.monotonic()
        first: float | None = None
        while running.active:
            time.sleep(_POLL)
            now = time.monotonic()
            first = now if first is None and board.batches else first
            if now - (begun + _PATIENCE if first is None else first) >= (0 if first is None else seconds):
                break
        if not running.active:
            running.await_termination()  # raises the error that ended it
        watermark = running.progress().get("watermark")
    finally:
        with suppress(Exception):
            running.stop()
    with board.lock:
        answer, changes, batches = board.answer(), board.changes, board.batches
    note = f"the first {rows:,} of {len(answer):,} rows" if len(answer) > rows else None
    if not batches:
        note = f"no batch has ended within {_PATIENCE:.0f} seconds: check that rows arrive"
    return {
        "columns": [{"name": field.name, "type": type_name(field.dtype)} for field in reply.query.schema],
        "rows": [[plain(value) for value in row] for row in answer[:rows]],
        "counts": [1] * min(rows, len(answer)),
        "as_of": watermark,
        "watermark": watermark,
        "total": len(answer),
        "known": True,
        "reason": None,
        "changes": changes,
        "note": note,
    }


if __name__ == "__main__":
    main()
