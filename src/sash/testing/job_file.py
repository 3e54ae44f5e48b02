"""The queries of a job's file, for tests of them."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from sash.script.reader import read_script
from sash.script.statements import CreateQuery


def read_queries(job: str | PathLike[str]) -> dict[str, str]:
    """The texts of the SELECTs in a file of statements, by the names of their queries, for `replay` and `replay_job`."""
    statements = read_script(Path(job).read_text(encoding="utf-8"))
    return {statement.name: statement.query.sql for statement in statements if isinstance(statement, CreateQuery)}
