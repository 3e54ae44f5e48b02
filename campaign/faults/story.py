"""A job with random queries into PostgreSQL and changelogs, and random faults: after each one, all answers must be right."""

from __future__ import annotations

import os
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from campaign.faults.hooks import Moment, Orders
from campaign.faults.kinds import KINDS, MOMENTS, Kind
from campaign.faults.machine import Clock, SmallDisk, postgres, small_disks
from campaign.faults.processes import Drivers
from campaign.faults.world import QUERIES, Text, Truth, folded, last_instant, write_batch
from tests.oracle.duck import Bag, bag_of
from tests.postgres import Server

LOCAL, CLUSTER = "local[2,4]", "local-cluster[2,1,1024]"
_HOUR = 3_600_000_000
_STARTS = 4
"""How often a job that a fault has ended is started again."""
_FIRST = 3
"""The batches before the first fault."""


@dataclass(frozen=True)
class Story:
    """A job and its faults, all of them determined by the seed; only the moment at which a signal arrives is not."""

    seed: int
    faults: int
    cluster: bool = False
    only: tuple[str, ...] = ()
    """The names of the faults to choose from; all of them without names."""


@dataclass(frozen=True)
class _Output:
    """A query of the job, with its sink."""

    name: str
    query: Text
    sink: str
    mode: str
    options: dict[str, Any]

    def described(self) -> dict[str, Any]:
        key = [self.query.columns[0]] if self.mode == "upsert" else None
        return {"sql": self.query.sash, "sink": self.sink, "mode": self.mode, "key": key, "options": self.options}


class Play:
    """A story while it is played."""

    def __init__(self, story: Story, home: Path, server: Server, disks: tuple[SmallDisk, SmallDisk]) -> None:
        self._story = story
        self._home = home
        self._server = server
        self._disks = dict(zip(("checkpoint", "local"), disks, strict=True))
        self._rnd = random.Random(story.seed)
        self._orders = Orders(home / "orders")
        self._clock = Clock(home)
        self._batches = 0
        self._attended = True
        self._outputs = self._chosen()
        self._kinds = self._possible()
        self._truths = {one.name: Truth(story.seed, one.query) for one in self._outputs}
        self.words = Counter[str]()
        self.told: list[str] = []

    def play(self) -> None:
        """Run the job, and have all faults strike it."""
        self._drivers = Drivers(self._home, CLUSTER if self._story.cluster else LOCAL, self._clock.environment)
        try:
            self._feed(_FIRST)
            self._start()
            self._process()
            self._check()
            for _ in range(self._story.faults):
                self._strike(self._rnd.choices(self._kinds, [one.weight for one in self._kinds])[0])
                self._check()
            self._command({"do": "stop"})
        except BaseException as problem:
            problem.add_note("\n".join([*self.told, self._drivers.current.last_words()]))
            raise
        finally:
            self._drivers.end()

    def _chosen(self) -> list[_Output]:
        """Four queries, of which at least one goes to PostgreSQL, and one to a changelog."""
        names = self._rnd.sample(sorted(QUERIES), 4)
        sinks = ["postgres", "changelog", *(self._rnd.choice(("postgres", "changelog")) for _ in names[2:])]
        made = []
        for name, sink in zip(names, sinks, strict=True):
            query = QUERIES[name]
            modes = ["changes", "net", "net", *(["upsert"] * 3 if query.keyed else [])]
            if sink == "postgres":
                options: dict[str, Any] = {"url": self._server.url, "table": name}
            else:
                options = {"path": str(self._home / "out" / name), "compact": self._rnd.choice((0, 10))}
            made.append(_Output(name, query, sink, self._rnd.choice(modes), options))
        return made

    def _possible(self) -> list[Kind]:
        story = self._story
        can = {
            "nothing": True,
            "a small disk": all(disk.whole for disk in self._disks.values()),
            "a clock": bool(self._clock.environment),
            "a cluster": story.cluster,
        }
        return [one for one in KINDS if can[one.needs] and (not story.only or one.name in story.only)]

    # Commands.

    def _feed(self, batches: int) -> None:
        for _ in range(batches):
            write_batch(self._home, self._story.seed, self._batches)
            self._batches += 1

    def _command(self, command: dict[str, Any]) -> dict[str, Any] | None:
        return self._drivers.current.send(command, self._attend)

    def _start(self) -> dict[str, Any] | None:
        reply = self._command({"do": "start", "queries": {one.name: one.described() for one in self._outputs}})
        if any(kind.ends for kind in self._kinds):
            self._drivers.prepare()
        return reply

    def _process(self) -> None:
        reply = self._command({"do": "process"})
        assert reply == {}, f"the job failed: {reply}"

    # Faults.

    def _strike(self, kind: Kind) -> None:
        begun = time.monotonic()
        moment = self._rnd.choice(kind.moments) if kind.moments else None
        self.told.append(f"{len(self.told)}: {kind.name}, {MOMENTS[moment or 'between']}, batch {self._batches}")
        if moment is not None:
            self._strike_at(kind, moment)
        elif "arena" in kind.name:
            self._damage_arena(kind.name.rpartition(" ")[2])
        else:
            self._damage_checkpoint(kind.name.rpartition(" ")[2])
        self.told[-1] += f", {time.monotonic() - begun:.1f} s"

    def _strike_at(self, kind: Kind, moment: Moment) -> None:
        skip = self._rnd.randint(0, 5) if moment == "stage" else 0
        self._orders.give(moment, kind.action, skip, self._rnd.uniform(0.3, 2.0))
        self._attended = False
        self._feed(1)
        reply = self._command({"do": "process"})
        struck = self._orders.struck
        if struck is None:
            # A batch may pass a place less often than it was to be skipped.
            self._orders.withdraw()
            self.words["struck nothing"] += 1
            assert reply == {}, f"nothing has struck, but the job failed: {reply}"
            return
        self._attend()
        self._recover(kind, reply)
        self.words[f"fault {kind.name}"] += 1
        self.words[f"struck {MOMENTS[moment]}"] += 1
        self.words["struck in all"] += 1

    def _recover(self, kind: Kind, reply: dict[str, Any] | None) -> None:
        """Start the job again until it has processed everything, if the fault may have ended it."""
        for _ in range(_STARTS):
            if reply == {} and not kind.ends:
                break
            assert kind.ends or (kind.fails and reply is not None), f"{kind.name} has ended the job: {reply}"
            if kind.ends:
                self._drivers.replace()
                self.words["restarts of the driver"] += 1
            else:
                self._command({"do": "stop"})
                self.words["restarts of the job"] += 1
            reply = self._start()
            if reply == {}:
                reply = self._command({"do": "process"})
            if kind.ends:
                break
        assert reply == {}, f"the job does not go on after {kind.name}: {reply}"

    def _attend(self) -> None:
        """Do the campaign's part of a fault, once it has struck."""
        struck = None if self._attended else self._orders.struck
        if struck is None:
            return
        self._attended = True
        verb, _, what = struck["action"].partition(" ")
        if verb == "stop":
            time.sleep(struck["pause"])
            os.kill(struck["pid"], signal.SIGCONT)
        elif verb == "wait":
            self._do(what, struck["pause"])

    def _do(self, what: str, pause: float) -> None:
        match what:
            case "cut":
                with psycopg.connect(self._server.url, autocommit=True) as connection:
                    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
                    connection.execute(f"{others} AND backend_type = 'client backend'")
                self._orders.go()
            case "restart":
                self._server.stop(signal.SIGINT)
                self._orders.go()
                time.sleep(pause)
                self._server.start()
            case "clock":
                self._clock.jump(self._rnd.choice((-30, -1, 1, 24 * 400)) * _HOUR)
                self._orders.go()
            case disk:
                self._disks[disk].fill()
                self._orders.go()
                time.sleep(2 + pause)
                self._disks[disk].free()

    def _damage_arena(self, how: str) -> None:
        """Cut, delete or alter files of arenas, as another program may do in temporary folders."""
        files = sorted(
            path for path in self._drivers.current.local.glob("**/sash/*/*/*/data*/*/*") if path.stat().st_size
        )
        assert files, "there is no arena"
        self._rnd.shuffle(files)
        chosen = files[: max(1, len(files) // 10)]
        for path in chosen:
            _damage(path, how, self._rnd)
        self._feed(1)
        self._process()
        self.words[f"fault a file of an arena is {how}"] += 1
        self.words[f"struck {MOMENTS['between']}"] += 1
        self.words["struck in all"] += 1

    def _damage_checkpoint(self, how: str) -> None:
        """Start the job from a checkpoint of which a file is damaged: it is refused, or right. Then the file is restored."""
        self._command({"do": "stop"})
        checkpoint, kept = self._home / "checkpoint" / "job", self._home / "kept"
        shutil.copytree(checkpoint, kept, symlinks=True)
        files = sorted(path for path in checkpoint.rglob("*") if path.is_file() and path.stat().st_size)
        path = self._rnd.choice(files)
        part = path.relative_to(checkpoint)
        self.told[-1] += f", {part}"
        _damage(path, how, self._rnd)
        self._feed(1)
        reply = self._start()
        if reply == {}:
            reply = self._command({"do": "process"})
        assert reply is not None, f"the driver died of a damaged {part}"
        kind = "".join("N" if c.isdigit() else c for c in str(part))
        if reply == {}:
            self.words[f"checkpoint without {part.parts[0]}: right"] += 1
            self._check()
        else:
            self.words["checkpoint refused"] += 1
            assert _helps(reply["error"]), f"of a damaged {kind} ({how}), this is said: {reply}"
        self._command({"do": "stop"})
        shutil.rmtree(checkpoint)
        shutil.copytree(kept, checkpoint, symlinks=True)
        shutil.rmtree(kept)
        assert self._start() == {}
        self._process()
        self.words[f"fault a file of the checkpoint is {how}"] += 1
        self.words[f"struck {MOMENTS['between']}"] += 1
        self.words["struck in all"] += 1

    # Answers.

    def _check(self) -> None:
        instant = last_instant(self._batches)
        for one in self._outputs:
            expected, found = self._truths[one.name].at(instant), self._found(one, instant)
            assert found == expected, (
                f"{one.name} ({one.sink}, {one.mode}) after {self._batches} batches: missing {expected - found}, "
                f"surplus {found - expected}"
            )
            self.words["answers compared"] += 1

    def _found(self, one: _Output, instant: int) -> Bag:
        columns = one.query.columns
        if one.sink == "changelog":
            return folded(Path(one.options["path"]), columns, one.mode, instant)
        with psycopg.connect(self._server.url) as connection:
            listed = ", ".join(columns)
            if one.mode != "changes":
                return bag_of(connection.execute(f"SELECT {listed} FROM {one.name}").fetchall())
            answer = Counter[Any]()
            changes = connection.execute(f"SELECT _op, {listed} FROM {one.name} WHERE _ts <= %s", [instant])
            for op, *values in changes:
                answer[tuple(values)] += 1 if op == "+" else -1
            assert all(count >= 0 for count in answer.values()), f"{one.name}: taken back without being there: {answer}"
            return bag_of((+answer).elements())


def _helps(message: str) -> bool:
    """Whether an error about a checkpoint says what it is about, and what to do."""
    return "checkpoint" in message and any(word in message for word in ("start", "restore", "new one", "delete"))


def _damage(path: Path, how: str, rnd: random.Random) -> None:
    match how:
        case "cut":
            os.truncate(path, path.stat().st_size // 2)
        case "lost":
            path.unlink()
        case "altered":
            with path.open("r+b") as file:
                place = rnd.randrange(path.stat().st_size)
                file.seek(place)
                byte = file.read(1)[0] ^ 1 << rnd.randrange(8)
                file.seek(place)
                file.write(bytes([byte]))
        case _:
            raise ValueError(how)


@contextmanager
def _stage(story: Story) -> Iterator[Play]:
    home = Path(tempfile.mkdtemp(prefix="sash-faults-"))
    try:
        with postgres() as server, small_disks(home) as disks:
            yield Play(story, home, server, disks)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def play(story: Story) -> Counter[str]:
    """Play a story; return what was counted."""
    with _stage(story) as played:
        played.play()
    return played.words
