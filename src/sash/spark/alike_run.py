"""Alike queries that are added to a running job and removed from it: updates of a table of constants, without a restart."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sash.alike import alike_query
from sash.errors import CatalogError, OptionError
from sash.planning import PlannedJob, PlannedTemplate
from sash.spark.job_manifest import NAME, read_manifest
from sash.spark.job_output import JobOutput
from sash.spark.sources.constants import ConstantsTable

if TYPE_CHECKING:
    from sash.job import Job, JobMember
    from sash.query import Query
    from sash.spark.job_start import StartedJob


def described(members: Sequence[JobMember], planned: PlannedJob) -> list[dict[str, Any]]:
    """What the manifest records of the queries of a job: also their columns, and of alike ones their template."""
    templates = {name: template.name for name, (template, _) in planned.members.items()}
    return [
        {
            **member.described(),
            "columns": [f"{field.name}:{field.dtype}" for field in planned.columns(member.name)],
            "alike": templates.get(member.name),
        }
        for member in members
    ]


class AlikeRun:
    """Changes the alike queries of a running job; its methods may be called from several threads.

    The outputs are changed before the constants: the sink of a query that is added gets all of its changes, and that of one
    that is removed does not get its rows retracted.
    """

    def __init__(
        self,
        job: Job,
        started: StartedJob,
        constants: Mapping[str, ConstantsTable],
        make_output: Callable[..., JobOutput],
    ) -> None:
        self._job = job
        self._started = started
        self._constants = constants
        self._make_output = make_output
        self._lock = threading.Lock()

    def add(self, name: str, query: str | Query, *args: Any, **options: Any) -> JobOutput:
        """Add a query; the arguments are those of `Job.add`. Returns its output, which is open."""
        with self._lock:
            member = self._job.member(name, query, *args, **options)
            planned = self._joined(member)
            output = self._make_output(member, planned=planned)
            output.open()
            template, added = planned.members[member.name]
            self._started.progress.add_alike(member.name, template.name)
            self._set(planned, {**self._started.outputs, member.name: output})
            self._job.members[member.name.lower()] = member
            self._save(planned)
            self._constants[template.name].update([(added.number, *added.values)], [])
            return output

    def remove(self, name: str) -> str:
        """Remove a query; returns its name as it was added."""
        with self._lock:
            known = {one.lower(): one for one in self._started.planned.members}
            if name.lower() not in known:
                raise OptionError(
                    f"query {name} is not one of alike queries, which can be removed while the job runs: stop the job and "
                    "start it without the query"
                )
            name = known[name.lower()]
            template, removed = self._started.planned.members[name]
            if len(template.queries) == 1:
                raise OptionError(f"query {name} is the last of its kind: stop the job and start it without the query")
            rest = tuple(query for query in template.queries if query.name != name)
            planned = _with(self._started.planned, replace(template, queries=rest))
            self._started.outputs[name].retries.stop()
            self._set(planned, {known: one for known, one in self._started.outputs.items() if known != name})
            self._started.progress.remove_alike(name)
            del self._job.members[name.lower()]
            self._save(planned)
            self._constants[template.name].update([], [(removed.number, *removed.values)])
            return name

    def _joined(self, member: JobMember) -> PlannedJob:
        """The plan with the query in the template that it fits."""
        candidate, planned = member.candidate, self._started.planned
        for template in planned.templates if candidate is not None else ():
            assert candidate is not None
            found = alike_query(candidate, template.template)
            if found is not None:
                return _with(planned, replace(template, queries=(*template.queries, found)))
        raise CatalogError(
            f"query {member.name} cannot be added while the job runs: it differs from the queries of the job in more than "
            "constants that they differ in already, or in its mode or options"
        )

    def _set(self, planned: PlannedJob, outputs: Mapping[str, JobOutput]) -> None:
        self._started.planned, self._started.outputs = planned, outputs
        self._started.run.batches.outputs = list(outputs.values())

    def _save(self, planned: PlannedJob) -> None:
        """Write the queries to the manifest."""
        folder = self._started.folder
        manifest = read_manifest(folder)
        assert manifest is not None
        manifest["queries"] = described(list(self._job.members.values()), planned)
        folder.write(NAME, json.dumps(manifest, indent=2))


def _with(planned: PlannedJob, template: PlannedTemplate) -> PlannedJob:
    return replace(
        planned, templates=tuple(template if one.name == template.name else one for one in planned.templates)
    )
