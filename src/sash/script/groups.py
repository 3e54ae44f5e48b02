"""Which queries of a script are one job: those with equal triggers, unless a query is separate."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from sash.errors import CatalogError, OptionError
from sash.plan.options import Trigger
from sash.script.statements import CreateQuery, about
from sash.sizes import size_in_bytes

JOB = "job"
"""The name of a job, and of its folder in the checkpoint; the names of further jobs begin with it."""

_FOR_JOBS = {"max_state": "MAX STATE", "outbox": "OUTBOX", "when_complete": "WHEN COMPLETE", "backfill": "BACKFILL"}


def trigger_key(trigger: str | None) -> str:
    """The same text for equal triggers.

    >>> trigger_key(None), trigger_key("1 second"), trigger_key("1000 ms"), trigger_key("availableNow")
    ('continuous', '1000ms', '1000ms', 'available_now')
    """
    parsed = Trigger.parse(trigger)
    period = None if parsed.milliseconds is None else f"{parsed.milliseconds}ms"
    return parsed.word or period or "continuous"


def job_names(
    groups: Mapping[str, Collection[str]], stored: Mapping[str, Collection[str]], taken: Collection[str] = ()
) -> dict[str, str]:
    """The names of jobs, which are also those of their folders, by trigger key; `groups` has the names of their queries.

    A job goes on in the folder of `stored` that has most of its queries, whatever its trigger was then, or in one that no
    other job uses: what becomes of its queries is then a change of that job. Further jobs get new names: `job`, and names
    with their triggers.

    >>> job_names({"1000ms": ["a"], "continuous": ["b"]}, {})
    {'1000ms': 'job', 'continuous': 'job-continuous'}
    >>> job_names({"1000ms": ["a"], "continuous": ["b"]}, {"job": ["b"]})
    {'1000ms': 'job-1000ms', 'continuous': 'job'}
    """
    found: dict[str, str] = {}
    known = {name: {query.lower() for query in queries} for name, queries in stored.items() if name not in taken}
    pairs = [
        (len(names & {query.lower() for query in queries}), key, name)
        for key, queries in groups.items()
        for name, names in known.items()
    ]
    for _, key, name in sorted(pairs, key=lambda pair: -pair[0]):
        if key not in found and name not in found.values():
            found[key] = name
    for key in groups:
        if key not in found:
            used = {*found.values(), *taken}
            choices = (JOB, f"{JOB}-{key}", *(f"{JOB}-{key}-{number}" for number in range(2, 2 + len(used))))
            found[key] = next(name for name in choices if name not in used)
    return {key: found[key] for key in groups}


def explain_jobs(plans: Mapping[str, str]) -> str:
    """The plans of jobs, by name, as one text; the names are shown if there are several."""
    if not plans:
        raise CatalogError("there is no query to explain: write CREATE QUERY name AS SELECT ... INTO sink first")
    if len(plans) == 1:
        return next(iter(plans.values()))
    return "\n\n".join(f"Job {name}\n\n{plan.rstrip()}" for name, plan in plans.items()) + "\n"


def check_job_clauses(statement: CreateQuery) -> None:
    """Raise OptionError if clauses about a query's place in a job exclude each other, or are invalid."""
    if statement.separate:
        if re.fullmatch(rf"{JOB}(-.*)?", statement.name, re.IGNORECASE):
            raise OptionError(
                f"the name {statement.name} is that of a job's folder in the checkpoint: choose another name for a "
                "separate query"
            )
        given = [clause for field, clause in _FOR_JOBS.items() if getattr(statement, field)]
        given += ["ON ERROR SUSPEND"] if statement.on_error == "suspend" else []
        if given:
            raise OptionError(f"{given[0]} is for a query of a job: leave it out, or leave out SEPARATE")
    if statement.max_state is not None:
        with about("max"):
            size_in_bytes(statement.max_state, "MAX STATE")
    if statement.outbox is not None:
        with about("outbox"):
            size_in_bytes(statement.outbox, "OUTBOX")
            if statement.on_error != "suspend" and statement.max_state is None:
                raise OptionError(
                    "OUTBOX bounds what is kept while a query is suspended: add ON ERROR SUSPEND or MAX STATE, or leave "
                    "OUTBOX out"
                )
