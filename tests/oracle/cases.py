"""All fixed cases, by name."""

from __future__ import annotations

from tests.oracle.case import Case
from tests.oracle.fixed import (
    aggregates,
    chains,
    counts,
    joins,
    multi_joins,
    over,
    papers,
    relations,
    sets,
    times,
    windows,
)

CASES: tuple[Case, ...] = (
    *windows.CASES,
    *counts.CASES,
    *aggregates.CASES,
    *joins.CASES,
    *multi_joins.CASES,
    *sets.CASES,
    *chains.CASES,
    *over.CASES,
    *papers.CASES,
    *times.CASES,
)

CHANGING: tuple[Case, ...] = relations.CASES

BY_NAME = {case.name: case for case in (*CASES, *CHANGING)}
