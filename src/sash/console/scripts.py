"""Checks of SQL against the declarations of a job's script, without Spark."""

from __future__ import annotations

import re
import threading
from typing import Any

from sash.errors import ControlError, SashError, SqlSyntaxError
from sash.script.dry_run import DryRunBackend, UncheckedError
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import (
    CreateFunction,
    CreateQuery,
    CreateRelation,
    CreateStream,
    Select,
    SetOption,
    Statement,
)

Values = dict[str, Any]

DECLARATIONS = (CreateStream, CreateRelation, CreateFunction)
_REFLECTION = re.compile(r"\b(?:try_)?(?:reflect|java_method)\s*\(", re.IGNORECASE)
"""Functions of Spark's that call any Java method."""


def declarations(script: str) -> list[Statement]:
    """The statements of a script that a query over its streams needs: declarations, and settings of Sash's own."""
    return [
        statement
        for statement in read_script(script)
        if isinstance(statement, DECLARATIONS)
        or (isinstance(statement, SetOption) and not statement.name.lower().startswith("spark."))
    ]


class ScriptCheck:
    """Checks statements against a script. May be used from several threads, one check at a time."""

    def __init__(self, script: str) -> None:
        self.declarations = script
        self._lock = threading.Lock()

    def problems(self, sql: str) -> list[Values]:
        """The errors of a SELECT or a CREATE QUERY, with their places."""
        try:
            with self._lock:
                self._check(sql)
        except SqlSyntaxError as problem:
            return [{"line": problem.line, "column": problem.column, "length": None, "text": problem.message}]
        except UncheckedError:
            return []
        except SashError as problem:
            return [{"line": None, "column": None, "length": None, "text": str(problem)}]
        return []

    def select(self, sql: str) -> None:
        """Raise an error unless the text is one SELECT that can be planned."""
        with self._lock:
            statements = read_script(sql)
            if len(statements) != 1 or not isinstance(statements[0], Select):
                raise ControlError("only one SELECT can be previewed")
            self._check(sql)

    def _check(self, sql: str) -> None:
        found = _REFLECTION.search(sql)
        if found is not None:
            raise ControlError(f"{found[0].rstrip('( ')} is not allowed here: it calls any method of Java")
        backend = DryRunBackend()
        session = Session(backend)
        for statement in declarations(self.declarations):
            session.execute(statement)
        for statement in read_script(sql):
            match statement:
                case Select():
                    with statement.query.position.relocate_errors():
                        backend.plan(statement.query.sql, session.settings.options)
                case CreateQuery():
                    session.execute(statement)
                case _:
                    raise ControlError("write a SELECT, or CREATE QUERY name AS SELECT ... INTO sink")
