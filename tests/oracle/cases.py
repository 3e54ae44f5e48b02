"""All fixed cases, by name."""

from __future__ import annotations

from tests.oracle.case import Case
from tests.oracle.fixed import aggregates, chains, joins, papers, relations, sets, windows

CASES: tuple[Case, ...] = (
    *windows.CASES,
    *aggregates.CASES,
    *joins.CASES,
    *sets.CASES,
    *chains.CASES,
    *papers.CASES,
)

COUNTED: tuple[Case, ...] = windows.COUNTED

CHANGING: tuple[Case, ...] = relations.CASES

BY_NAME = {case.name: case for case in (*CASES, *COUNTED, *CHANGING)}
