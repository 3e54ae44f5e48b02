"""How parked queries go on: what their sinks have is kept by shard, and the difference to the current answer is computed.

While the operators of a query stand still, what it reads is logged, and it goes on with every change that it has missed. If
the logs have grown beyond the bound of its outbox, or its operators fail again on these rows, it is rebuilt from the rows
that are live. Then its sink gets the difference between the answer that it has and the current one.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

import numpy as np
import pyarrow as pa

from sash.errors import OptionError
from sash.operators.netting import net_all
from sash.operators.output_modes import reduce_changes
from sash.physical.channels import needs_snapshots
from sash.physical.nodes import PhysicalPlan, StreamLeg
from sash.plan.nodes import Range
from sash.sizes import size_text
from sash.spark.batch_metrics import BatchMetrics
from sash.spark.folders import Folder
from sash.spark.job_output import JobOutput
from sash.spark.messages import CAUGHT_UP, PARKED
from sash.spark.output import OutputMode
from sash.spark.parking import Parking
from sash.state.changes import ChangeBatch, concat
from sash.state.encoding import decode, decode_all, encode
from sash.time import FOREVER

NAME = "answers"
"""The folder of a generation with the last answers of parked queries: a folder per query, and a file per shard."""


@dataclass
class ShardAnswer:
    """What a shard sent about the answer of an output: its kind, its rows, its clock, and a remark."""

    output: int
    sender: int
    kind: int
    clock: int
    remark: str | None
    blobs: list[pa.Buffer]


class Resumption:
    """Keeps the last answers of parked queries, and lets these go on."""

    def __init__(
        self,
        folder: Folder,
        parking: Parking,
        plan: PhysicalPlan,
        modes: Sequence[OutputMode],
        outputs: Sequence[JobOutput],
    ) -> None:
        self._folder = folder.inside(NAME)
        self._parking = parking
        self._plan = plan
        self._modes = modes
        self._outputs = outputs
        self._stages = {o.query: frozenset(stage.index for stage in plan.stages_of(o)) for o in plan.outputs}
        self._exact = {
            o.query for o in plan.outputs if any(needs_snapshots(plan, stage) for stage in plan.stages_of(o))
        }
        self.remarks: dict[str, str] = {}
        """How queries of this run have resumed."""

    def begin(self, number: int) -> None:
        """Before a batch: forget the answers of shards that have gone on in earlier batches, which are committed."""
        for name, parked in self._parking.resuming.items():
            folder = self._kept(name)
            for sender, batch in parked.delivered.items():
                if batch < number:
                    folder.remove(f"{sender}.arrow")
            if not folder.names():
                self._parking.release(name)

    def take(self, answers: Sequence[ShardAnswer], blobs: dict[int, list[pa.Buffer]], number: int) -> None:
        """Keep the answers of queries that stand still; add the differences of those that go on to the batch."""
        for answer in answers:
            name = self._plan.outputs[answer.output].query
            parked = self._parking[name]
            if parked is None:
                continue
            delivered = dict(parked.delivered)
            if answer.kind == PARKED:
                delivered.pop(str(answer.sender), None)
                rows = decode_all(answer.blobs, self._dtypes(answer.output))
                self._kept(name).write_bytes(f"{answer.sender}.arrow", encode(rows).to_pybytes())
                unknown = parked.unknown or answer.remark is not None
                self._parking.change(name, delivered=delivered, unknown=unknown)
                continue
            if answer.kind != CAUGHT_UP:
                changes = self._difference(name, answer)
                if len(changes):
                    blobs.setdefault(answer.output, []).append(encode(changes))
                self._say(name, number - parked.batch, answer.remark)
            self._parking.change(name, delivered={**delivered, str(answer.sender): number})

    def over_bound(self, total: BatchMetrics) -> list[str]:
        """The queries for which the logs have just become too large to wait any longer."""
        over = []
        for name in self._parking.standing:
            parked, limit = self._parking[name], self._limit(name)
            if parked is None or parked.lost or parked.unlogged or not self._may_net(name) or limit is None:
                continue
            held = sum(total.stages.get(str(stage), {}).get("held_bytes", 0) for stage in self._stages[name])
            if held > limit:
                self._parking.change(name, lost=True)
                logging.getLogger("sash").warning(
                    "query %s: the logs have kept %s for it, more than its outbox allows, so that it will resume with the net "
                    "difference of its answer, not with every change",
                    name,
                    size_text(held),
                )
                over.append(name)
        return over

    def resume(self, name: str) -> None:
        """Let a query go on whose operators stand still, and those that have the same answer."""
        together = self._together(name)
        for one in together:
            parked = self._parking[one]
            if parked is not None and (parked.lost or parked.unlogged) and not self._may_net(one):
                raise OptionError(
                    f"query {one} cannot resume: rows that it has missed are gone, and the answer that its sink has is not "
                    "known from the rows that are kept. Correct it, with try_divide or try_cast for example, and replace it"
                )
        for one in together:
            parked = self._parking[one]
            if parked is not None:
                net = parked.lost or parked.unlogged
                self._go_on(one, net=net)

    def try_otherwise(self, name: str) -> bool:
        """After a query that was resuming has failed again: whether it can go on with a net difference instead."""
        parked = self._parking[name]
        if parked is None or parked.resuming != "replay" or not self._may_net(name):
            return False
        if not self._kept(name).names():
            return False
        for one in self._together(name, resuming=True):
            self._go_on(one, net=True)
        return True

    def _go_on(self, name: str, *, net: bool) -> None:
        self._parking.change(name, resuming="net" if net else "replay")
        if not net:
            return
        for other in self._parking.standing - {name}:
            if self._stages.get(other, frozenset()) & self._stages[name]:
                # What they read of common stages is replaced.
                self._parking.change(other, lost=True)

    def _together(self, name: str, *, resuming: bool = False) -> list[str]:
        """The parked queries with the same answer, whose stage goes on for all of them."""
        stages = {output.query: output.stage for output in self._plan.outputs}
        known = self._parking.resuming if resuming else self._parking.standing
        return [one for one, stage in stages.items() if stage == stages[name] and one in known]

    def _may_net(self, name: str) -> bool:
        parked = self._parking[name]
        return name not in self._exact and parked is not None and not parked.unknown

    def _limit(self, name: str) -> int | None:
        return max((output.outbox.limit for output in self._outputs if output.runs_as == name), default=None)

    def _difference(self, name: str, answer: ShardAnswer) -> ChangeBatch:
        current = decode_all(answer.blobs, self._dtypes(answer.output))
        kept = self._kept(name).read_bytes(f"{answer.sender}.arrow")
        parts = [current]
        if kept is not None:
            before = decode(kept)
            parts.append(replace(before, sign=-before.sign))
        changes = concat(parts)
        forever = np.full(len(changes), FOREVER)
        changes = net_all(replace(changes, ts=np.full(len(changes), answer.clock, np.int64), exp=forever)).sorted()
        mode = self._modes[answer.output]
        return reduce_changes(changes, "upsert", mode.key) if mode.mode == "upsert" else changes

    def _say(self, name: str, missed: int, since: str | None) -> None:
        text = f"resumed with a net difference; {missed} batches were not delivered one by one"
        horizon = self._horizon(name)
        if since is not None:
            text += "; rows that came meanwhile are missing, so it is complete again after its windows"
        for output in self._outputs:
            if output.runs_as != name:
                continue
            if since is not None:
                instant = None if horizon is None else int(since) + horizon
                known = output.completion
                if known.reached or (instant or 0) > (known.instant or 0):
                    known.begin_again(instant)
            if self.remarks.get(output.name) != text:
                logging.getLogger("sash").warning("query %s: %s", output.name, text)
            self.remarks = {**self.remarks, output.name: text}

    def _horizon(self, name: str) -> int | None:
        """How long rows stay in the windows of a query; None if that does not depend on time alone."""
        longest = 0
        for index in self._stages[name]:
            for given in self._plan.stages[index].inputs:
                leg = None if given.leaf.leg is None else self._plan.legs[given.leaf.leg]
                if isinstance(leg, StreamLeg):
                    if not isinstance(leg.window, Range):
                        return None
                    longest = max(longest, given.leaf.horizon)
        return longest

    def _kept(self, name: str) -> Folder:
        return self._folder.inside(quote(name, safe=""))

    def _dtypes(self, output: int) -> list[pa.DataType]:
        return [field.dtype for field in self._plan.stages[self._plan.outputs[output].stage].root.schema]


def forget_answers(folder: Folder, queries: Collection[str]) -> None:
    """Remove the answers of queries that are not parked."""
    kept = {quote(name, safe="") for name in queries}
    for name in folder.inside(NAME).names():
        if name not in kept:
            folder.inside(NAME).remove_tree(name)
