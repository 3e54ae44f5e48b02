"""Alike queries that are added to a running job and removed from it: updates of a table of constants, without a restart."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sash.alike import alike_query
from sash.planning import PlannedJob, PlannedTemplate
from sash.spark.job_change import has_changed
from sash.spark.job_history import kept_outputs
from sash.spark.job_manifest import NAME, read_manifest
from sash.spark.job_output import JobOutput
from sash.spark.sources.constants import ConstantsTable

if TYPE_CHECKING:
    from sash.job import Job, JobMember
    from sash.spark.job_start import StartedJob


_FIXED = ("streams", "relations", "heartbeats", "templates", "definitions")
"""What the manifest records besides queries, and does not change while a job runs."""


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

    @property
    def job(self) -> Job:
        """The definition of the job as it runs."""
        return self._job

    def fits(self, member: JobMember) -> bool:
        """Whether a query differs from alike queries of the job in constants only."""
        return self._joined(member) is not None

    def has(self, name: str) -> bool:
        """Whether a query is one of alike ones, of which others stay without it."""
        found = {one.lower(): template for one, (template, _) in self._started.planned.members.items()}
        return name.lower() in found and len(found[name.lower()].queries) > 1

    def add(self, member: JobMember) -> JobOutput:
        """Add a query that fits; returns its output, which is open."""
        with self._lock:
            planned = self._joined(member)
            assert planned is not None
            output = self._make_output(member, planned)
            output.open()
            template, added = planned.members[member.name]
            self._started.progress.add_alike(member.name, template.name)
            self._set(planned, {**self._started.outputs, member.name: output})
            self._job.members[member.name.lower()] = member
            self._save(planned)
            self._constants[template.name].update([(added.number, *added.values)], [])
            return output

    def alter(self, member: JobMember) -> None:
        """Give a query other constants; its sink gets the difference of its answers."""
        with self._lock:
            template, before = self._started.planned.members[member.name]
            assert member.candidate is not None
            after = alike_query(member.candidate, template.template)
            assert after is not None
            queries = tuple(after if query.name == member.name else query for query in template.queries)
            planned = _with(self._started.planned, replace(template, queries=queries))
            self._set(planned, self._started.outputs)
            self._job.members[member.name.lower()] = member
            self._save(planned)
            self._constants[template.name].update([(after.number, *after.values)], [(before.number, *before.values)])

    def follow(self, job: Job, manifest: Mapping[str, Any]) -> bool:
        """Change the alike queries to those of another definition of the job; False if more differs than these."""
        known, wanted = read_manifest(self._started.folder), json.loads(json.dumps(manifest))
        assert known is not None
        old, new = ({query["name"]: query for query in given["queries"]} for given in (known, wanted))
        both = [name for name in new if name in old]
        before, after = self._job.members, job.members
        like = all(before[n.lower()].sink.is_like(after[n.lower()].sink) for n in both)
        like &= all(before[n.lower()].window == after[n.lower()].window for n in both)
        like &= all({**old[name], "sql": ""} == {**new[name], "sql": ""} for name in both)
        like &= all(known[part] == wanted[part] for part in _FIXED) and job.trigger == self._job.trigger
        if not like or has_changed(known, wanted):
            return False
        for name in new:
            if name not in old:
                self.add(after[name.lower()])
            elif old[name]["sql"] != new[name]["sql"]:
                self.alter(after[name.lower()])
        for name in old.keys() - new.keys():
            self.remove(name)
        return True

    def remove(self, name: str) -> str:
        """Remove a query that it `has`; returns its name as it was added."""
        with self._lock:
            name = next(one for one in self._started.planned.members if one.lower() == name.lower())
            template, removed = self._started.planned.members[name]
            rest = tuple(query for query in template.queries if query.name != name)
            planned = _with(self._started.planned, replace(template, queries=rest))
            self._started.outputs[name].retries.stop()
            self._set(planned, {known: one for known, one in self._started.outputs.items() if known != name})
            self._started.progress.remove_alike(name)
            del self._job.members[name.lower()]
            self._save(planned)
            self._constants[template.name].update([], [(removed.number, *removed.values)])
            return name

    def _joined(self, member: JobMember) -> PlannedJob | None:
        """The plan with the query in the template that it fits; None if it fits none."""
        candidate, planned = member.candidate, self._started.planned
        for template in planned.templates if candidate is not None else ():
            assert candidate is not None
            found = alike_query(candidate, template.template)
            if found is not None:
                return _with(planned, replace(template, queries=(*template.queries, found)))
        return None

    def _set(self, planned: PlannedJob, outputs: Mapping[str, JobOutput]) -> None:
        if self._started.history is not None and outputs.keys() != self._started.outputs.keys():
            self._started.history.set_outputs(kept_outputs(outputs.values()))
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
