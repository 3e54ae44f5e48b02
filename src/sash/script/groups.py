"""Which queries of a script are one job: those with equal triggers, unless a query is separate."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sash.errors import CatalogError, OptionError
from sash.plan.options import Trigger
from sash.script.statements import CreateQuery, about
from sash.sizes import size_in_bytes

JOB = "job"
"""The name of the job of the queries without a trigger; the names of others begin with it."""

_FOR_JOBS = {"max_state": "MAX STATE", "outbox": "OUTBOX", "when_complete": "WHEN COMPLETE", "backfill": "BACKFILL"}


def group_of(trigger: str | None) -> str:
    """The name of the job, and of its folder in the checkpoint, to which queries with this trigger belong.

    >>> group_of(None), group_of("1 second"), group_of("1000 ms"), group_of("availableNow")
    ('job', 'job-1000ms', 'job-1000ms', 'job-available_now')
    """
    parsed = Trigger.parse(trigger)
    period = None if parsed.milliseconds is None else f"{parsed.milliseconds}ms"
    suffix = parsed.word or period
    return JOB if suffix is None else f"{JOB}-{suffix}"


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
