"""The jobs of a session on an engine: its queries by trigger, collected as they are created and started together."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.errors import CatalogError
from sash.script.backend import QueryHandle, QueryOptions, WindowHandle
from sash.script.groups import explain_jobs, job_names, trigger_key
from sash.script.job_groups import JobGroup, JobMember, SeparateQuery, SeparateWindow, add_member
from sash.script.statements import CreateQuery, Keep, about_query
from sash.script.stored_jobs import stored_jobs
from sash.spark.folders import Folder

if TYPE_CHECKING:
    from sash.change.diff import JobDiff
    from sash.engine import Engine
    from sash.job import Job
    from sash.running_job import RunningJob
    from sash.spark.handle import StreamingHandle
    from sash.spark.job_change import OnChange


class SessionJobs:
    """The jobs of a session, and its separate queries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.on_change: OnChange = "refuse"
        self._groups: dict[str, JobGroup] = {}
        self._separate: dict[str, SeparateQuery] = {}
        self._separate_windows: dict[str, SeparateWindow] = {}
        self.paused = False

    def add(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        """Add a query to the job of its trigger; it is separate if it says so, or if it has a checkpoint of its own."""
        query = self._engine.sql(statement.query.sql, **vars(options))
        member, name = JobMember(statement, query, trigger), statement.name.lower()
        if statement.separate or self._has_own_checkpoint(statement):
            self._separate[name] = SeparateQuery(member)
            return
        add_member(self._engine.job(), member)  # checks its sink and clauses
        group = self._group(trigger)
        group.members[name] = member
        group.changed = True

    def keep(self, statement: Keep, trigger: str | None) -> None:
        """Add a window to those that the job of the trigger keeps; it is separate if it has a checkpoint of its own."""
        name = statement.name.lower()
        if self._is_kept_alone(statement):
            self._separate_windows[name] = SeparateWindow(statement, trigger)
            return
        group = self._group(trigger)
        group.windows[name] = statement
        group.changed = True

    def change_every(self, statement: Keep) -> None:
        """Change the length of the sub-windows of a window: at once, if it is kept already."""
        name = statement.name.lower()
        running = self.keeping(name)
        if running is not None:
            running.change_every(statement.every)
        separate = self._separate_windows.get(name)
        if separate is not None:
            separate.statement = statement
        for group in self._groups.values():
            if name in group.windows:
                group.windows[name] = statement
                if running is not None:
                    group.launched[1][name] = statement

    def drop_window(self, name: str) -> bool:
        """Stop to keep a window; return whether there was one of this name."""
        separate = self._separate_windows.pop(name.lower(), None)
        if separate is not None:
            if separate.running is not None:
                separate.running.stop()
            return True
        group = next((group for group in self._groups.values() if name.lower() in group.windows), None)
        if group is not None:
            del group.windows[name.lower()]
            self._changed(group)
        return group is not None

    def alter(self, statement: CreateQuery, options: QueryOptions, trigger: str | None) -> None:
        """Replace a query of a job by another one of its name, which may belong to another job."""
        name = statement.name.lower()
        if name in self._separate:
            raise CatalogError(
                f"query {statement.name} is a separate one, whose checkpoint fits its text only: drop it, and create it "
                "under another name"
            )
        before = self._group_of(name)
        self.add(statement, options, trigger)
        if before is not None and before.key != trigger_key(trigger):
            del before.members[name]
            before.changed = True

    def drop(self, name: str) -> None:
        """Remove a query from its job, or stop a separate one."""
        separate = self._separate.pop(name.lower(), None)
        if separate is not None:
            separate.drop()
            return
        group = self._group_of(name)
        if group is not None:
            del group.members[name.lower()]
            self._changed(group)

    def launch(self) -> None:
        """Start the jobs that do not run, and change those that run and whose queries have changed.

        Jobs that are paused are left alone: what has changed is applied when they go on.
        """
        if self.paused:
            return
        for group in list(self._groups.values()):
            if group.changed:
                self._launch(group)
        for name, query in list(self._separate.items()):
            with _dropped_if_failed(self._separate, name):
                query.start()
        for name, window in list(self._separate_windows.items()):
            with _dropped_if_failed(self._separate_windows, name):
                window.start(self._engine)

    def pause(self) -> None:
        """Stop all jobs, separate queries and windows after their current batches, until `unpause`."""
        self.paused = True
        for job in self.started.values():
            job.pause()
        for query in self._separate.values():
            query.pause()
        for window in self._separate_windows.values():
            window.pause()

    def unpause(self) -> None:
        """Let everything go on that `pause` has stopped."""
        self.paused = False
        for job in self.started.values():
            job.resume()
        self.launch()

    def changes(self) -> dict[str, JobDiff]:
        """What starting the jobs would change in the checkpoint, by their names; only those that would change anything."""
        if self._engine.checkpoint is None:
            return {}
        stored = stored_jobs(Folder(self._engine.spark, self._engine.checkpoint))
        found = {name: job.diff() for name, job in self.definitions().items() if name in stored}
        return {name: diff for name, diff in found.items() if diff.changed}

    @property
    def queries(self) -> dict[str, CreateQuery]:
        """The statements that created the queries, by lower-case name."""
        found = {name: query.member.statement for name, query in self._separate.items()}
        for group in self._groups.values():
            found |= {name: member.statement for name, member in group.members.items()}
        return found

    @property
    def windows(self) -> dict[str, Keep]:
        """The statements that created the kept windows, by lower-case name."""
        found = {name: window.statement for name, window in self._separate_windows.items()}
        for group in self._groups.values():
            found |= group.windows
        return found

    def resume(self, name: str) -> None:
        """Let a parked query run again."""
        group = self._group_of(name)
        if group is None or group.running is None:
            raise CatalogError(f"query {name} is not part of a running job, so it is not parked")
        group.running.queries[group.members[name.lower()].statement.name].resume()

    def adopt(self, before: SessionJobs) -> None:
        """Take over the jobs that run, to which `launch` then applies the differences; stop those that are gone."""
        self.paused = before.paused
        for name, old in before._separate.items():
            new = self._separate.get(name)
            if new is not None and new.member.is_like(old.member):
                new.running = old.running
            else:
                old.drop()
        running = {group.name: group for group in before._groups.values() if group.name is not None}
        names = job_names(self._queries(), {name: group.names for name, group in running.items()})
        for key, name in names.items():
            if name in running:
                old_group = running.pop(name)
                self._groups[key].name, self._groups[key].running = name, old_group.running
                self._groups[key].launched = old_group.launched
        for group in running.values():
            if group.running is not None:
                group.running.stop()
        for name, window in before._separate_windows.items():
            if name in self._separate_windows:
                self._separate_windows[name].running = window.running
            elif window.running is not None:
                window.running.stop()

    def running(self, name: str) -> QueryHandle | None:
        """The query of that name, if it has been started."""
        if name.lower() in self._separate:
            return self._separate[name.lower()].running
        group = self._group_of(name)
        if group is None or group.running is None:
            return None
        return group.running.queries.get(group.members[name.lower()].statement.name)

    def keeping(self, name: str) -> WindowHandle | None:
        """What keeps the window of that name, if it has been started."""
        if name.lower() in self._separate_windows:
            return self._separate_windows[name.lower()].running
        group = next((group for group in self._groups.values() if name.lower() in group.windows), None)
        if group is None or group.running is None:
            return None
        return next((window for kept, window in group.running.windows.items() if kept.lower() == name.lower()), None)

    def job_of(self, name: str) -> str | None:
        """The name of the job of a query; None for a separate one."""
        group = self._group_of(name)
        return None if group is None else group.name or self._names()[group.key]

    @property
    def started(self) -> Mapping[str, RunningJob]:
        """The jobs that have been started, by name."""
        found = ((group.name, group.running) for group in self._groups.values())
        return {name: running for name, running in found if name is not None and running is not None}

    @property
    def separate(self) -> Mapping[str, StreamingHandle]:
        """The separate queries by name, and the windows that are kept alone."""
        found: dict[str, StreamingHandle | None] = {
            query.member.statement.name: query.running for query in self._separate.values()
        }
        found |= {f"window {window.statement.name}": window.running for window in self._separate_windows.values()}
        return {name: running for name, running in found.items() if running is not None}

    def explain(self) -> str:
        """The dataflow of every job."""
        return explain_jobs({name: job.explain() for name, job in self.definitions().items()})

    def definitions(self) -> Mapping[str, Job]:
        """The jobs as they are now defined, by name, whether they run or not."""
        names = self._names()
        return {names[key]: self._job(self._groups[key], names[key]) for key in self._queries()}

    def _queries(self) -> dict[str, list[str]]:
        """The names of the queries and windows of each job that has any, by the key of its trigger."""
        return {key: group.names for key, group in self._groups.items() if group.names}

    def _names(self) -> dict[str, str]:
        """The names of the jobs by the keys of their triggers: those that they have, or would get if they were started now."""
        have = {key: group.name for key, group in self._groups.items() if group.name is not None}
        new = {key: names for key, names in self._queries().items() if key not in have}
        checkpoint = self._engine.checkpoint
        stored = stored_jobs(Folder(self._engine.spark, checkpoint)) if checkpoint is not None and new else {}
        return have | job_names(new, stored, have.values())

    def _group(self, trigger: str | None) -> JobGroup:
        """The job of the queries with this trigger."""
        key = trigger_key(trigger)
        return self._groups.setdefault(key, JobGroup(key, trigger))

    def _changed(self, group: JobGroup) -> None:
        """Note that a query or window is gone; one that runs is stopped at once."""
        group.changed = True
        if group.running is not None:
            self._launch(group)

    def _launch(self, group: JobGroup) -> None:
        if not group.names:
            if group.running is not None:
                group.running.stop()
            del self._groups[group.key]
            return
        group.name = group.name or self._names()[group.key]
        before, name = group.running, group.name
        try:
            group.launch(lambda: self._job(group, name), self.on_change)
        except BaseException:
            if before is not None and not before.active and group.names:  # it was stopped to be changed
                group.running = self._job(group, name).start()
            raise
        finally:
            if not group.names:
                self._groups.pop(group.key, None)

    def _job(self, group: JobGroup, name: str) -> Job:
        job = self._engine.job(name, trigger=group.trigger)
        for member in group.members.values():
            with about_query(member.statement.name):
                add_member(job, member)
        for keep in group.windows.values():
            job.keep(keep.name, keep.window, keep.every, path=keep.path, retain=keep.retain)
        return job

    def _group_of(self, name: str) -> JobGroup | None:
        return next((group for group in self._groups.values() if name.lower() in group.members), None)

    def _has_own_checkpoint(self, statement: CreateQuery) -> bool:
        """Whether there is a checkpoint of this query alone, as earlier versions wrote it; this is logged."""
        from sash.spark.fingerprint import NAME

        if self._engine.checkpoint is None:
            return False
        folder = f"{self._engine.checkpoint.rstrip('/')}/{statement.name}"
        if not Folder(self._engine.spark, folder).exists(NAME):
            return False
        logging.getLogger("sash").warning(
            "query %s goes on in its own checkpoint %s, as a separate query: to make it part of the job, delete that "
            "folder, which also deletes its window",
            statement.name,
            folder,
        )
        return True

    def _is_kept_alone(self, statement: Keep) -> bool:
        """Whether a query of its own keeps the window in its store, as earlier versions did; this is logged."""
        from sash.spark.kept_window import StoreFolder

        if statement.path is None and (self._engine.checkpoint is None or "://" in self._engine.checkpoint):
            return False
        folder = Path(StoreFolder.of(statement.path, self._engine.checkpoint, statement.name).checkpoint)
        if not folder.exists():
            return False
        logging.getLogger("sash").warning(
            "window %s goes on in its own checkpoint %s, as a separate query", statement.name, folder
        )
        return True


@contextmanager
def _dropped_if_failed(started: dict[str, Any], name: str) -> Iterator[None]:
    """Remove an entry if what it stands for cannot be started."""
    try:
        yield
    except BaseException:
        del started[name]
        raise
