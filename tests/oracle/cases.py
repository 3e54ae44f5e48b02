"""All fixed cases, by name."""

from __future__ import annotations

from tests.oracle.case import Case
from tests.oracle.fixed import (
    aggregates,
    chains,
    collections,
    counts,
    generators,
    grouping,
    interval_joins,
    joins,
    multi_joins,
    nested,
    now,
    over,
    papers,
    relations,
    sets,
    statistics,
    subqueries,
    time_windows,
    times,
    windows,
)

CASES: tuple[Case, ...] = (
    *windows.CASES,
    *counts.CASES,
    *grouping.CASES,
    *aggregates.CASES,
    *statistics.CASES,
    *collections.CASES,
    *joins.CASES,
    *interval_joins.CASES,
    *multi_joins.CASES,
    *sets.CASES,
    *chains.CASES,
    *over.CASES,
    *subqueries.CASES,
    *nested.CASES,
    *generators.CASES,
    *papers.CASES,
    *times.CASES,
    *time_windows.CASES,
    *now.CASES,
)

CHANGING: tuple[Case, ...] = relations.CASES

BY_NAME = {case.name: case for case in (*CASES, *CHANGING)}
