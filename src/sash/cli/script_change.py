"""Changes a running job to another script: what would become of every query, and the change itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sash.cli.check import check, located, positioned
from sash.cli.session import quiet_engine
from sash.engine import Engine
from sash.errors import ControlError, SashError
from sash.script.dry_run import DryRunBackend
from sash.script.live import LiveBackend
from sash.script.reader import read_script
from sash.script.session import Session
from sash.script.statements import Analyze, Explain, ExplainJob, SetOption, Show, SnapshotStatement, Statement
from sash.script.stored_jobs import stored_jobs
from sash.spark.folders import Folder

if TYPE_CHECKING:
    from sash.change.diff import JobDiff
    from sash.job import Job

_PASSED_OVER = (Show, Explain, ExplainJob, Analyze, SnapshotStatement)
"""Statements of a script that only show something."""


class RunningScript:
    """The script of a running job, on its engine."""

    def __init__(self, path: Path, engine: Engine, session: Session, conf: Mapping[str, str], text: str = "") -> None:
        self._path, self._engine, self._conf = path, engine, conf
        self.text = text
        """The script as it was started, or applied last."""
        self.session = session

    def diff(self, text: str) -> dict[str, Any]:
        """What would become of every query if the script were applied."""
        self._check(text)
        engine = Engine(self._engine.spark, self._engine.checkpoint, self._engine.shards)
        jobs = _backend(self._read(text, Session.on(engine))).session_jobs.definitions()
        running = self.session.backend.jobs()
        names = {name: list(job.queries) for name, job in running.items()}
        return described_change(jobs, names, lambda name, job: running[name].diff(job))

    def diff_stored(self, text: str) -> dict[str, Any]:
        """What would become of every query if the script were run on the checkpoint of the engine, which no job uses."""
        self._check(text)
        assert self._engine.checkpoint is not None
        stored = stored_jobs(Folder(self._engine.spark, self._engine.checkpoint))
        jobs = _backend(self._read(text, self.session)).session_jobs.definitions()
        return described_change(jobs, stored, lambda _, job: job.diff())

    def apply(self, text: str) -> dict[str, Any]:
        """Change the running job to the script; nothing changes if the script has errors, or cannot be applied."""
        found = self.diff(text)
        if any(job.get("refused") for job in found["jobs"].values()):
            raise ControlError(found["text"])
        with self._engine.replacing_sources():
            changed = self._read(text, Session.on(self._engine))
            _backend(changed).adopt(_backend(self.session))
        self.session = changed
        changed.launch()
        self.text = text
        return {**found, "text": "\n".join([found["text"], *self._not_applied(text)])}

    def _not_applied(self, text: str) -> list[str]:
        """What the script sets and a running session cannot change."""
        conf = self._engine.spark.conf
        return [
            f"SET {one.name} has no effect on a running job: it applies when the job is started again"
            for one in read_script(text)
            if isinstance(one, SetOption) and _is_spark_setting(one) and conf.get(one.name, None) != str(one.value)
        ]

    def _check(self, text: str) -> None:
        problems = check(text, DryRunBackend(self._conf))
        if problems:
            raise ControlError("\n".join(located(self._path, text, problem) for problem in problems))

    def _read(self, text: str, session: Session) -> Session:
        """The session in which the statements of the script were executed, without launching its queries."""
        for statement in read_script(text):
            if isinstance(statement, _PASSED_OVER) or _is_spark_setting(statement):
                continue
            try:
                session.execute(statement)
            except SashError as problem:
                raise ControlError(located(self._path, text, positioned(problem, statement))) from problem
        return session


def described_change(
    new: Mapping[str, Job], old: Mapping[str, Collection[str]], diff: Callable[[str, Job], JobDiff]
) -> dict[str, Any]:
    """The difference of every job, by name: for programs as `jobs`, for people as `text`.

    `old` has the names of the queries of the jobs before, and `diff` compares one of them with a job of its name.
    """
    jobs: dict[str, Any] = {}
    texts: list[str] = []
    for name, job in new.items():
        if name not in old:
            names = [member.name for member in job.members.values()]
            jobs[name] = {"changed": True, "verdict": "new", "queries": names}
            texts.append(f"job {name}: new, with {', '.join(names)}")
            continue
        found = diff(name, job)
        jobs[name] = found.to_json()
        shown = found.render()
        texts.append(f"job {name}:\n{_indented(shown)}" if "\n" in shown else f"job {name}: {shown}")
    for name, queries in old.items():
        if name not in new:
            jobs[name] = {"changed": True, "verdict": "dropped", "queries": list(queries)}
            texts.append(f"job {name}: dropped, with {', '.join(queries)}")
    return {"changed": any(job["changed"] for job in jobs.values()), "jobs": jobs, "text": "\n".join(texts)}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _is_spark_setting(statement: Statement) -> bool:
    return isinstance(statement, SetOption) and statement.name.lower().startswith("spark.")


def _backend(session: Session) -> LiveBackend:
    assert isinstance(session.backend, LiveBackend)
    return session.backend


def diff_checkpoint(
    path: Path, checkpoint: str, shards: int | None, master: str | None, conf: Mapping[str, str]
) -> dict[str, Any]:
    """Compare a script with the jobs in a checkpoint that no process uses."""
    with quiet_engine(master, conf, checkpoint, shards) as engine:
        return RunningScript(path, engine, Session.on(engine), conf).diff_stored(path.read_text(encoding="utf-8"))
