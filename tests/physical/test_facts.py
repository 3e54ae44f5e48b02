"""The facts of operators agree with what operators do, over the plans of oracle cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from sash.operators.base import Operator
from sash.physical.facts import expires_silently, facts_of, must_expire
from sash.physical.nodes import Operation
from sash.runtime import shard
from sash.state.changes import ChangeBatch
from sash.state.memory import Memory
from sash.testing import replay
from tests.oracle.case import Case
from tests.oracle.cases import CASES, CHANGING
from tests.oracle.check import run
from tests.oracle.sampling import covering

BUILD = shard.build


class WatchedMemory(Memory):
    """The memory of an operator; an operator that takes an array or a scope of it has state."""

    def __init__(self, memory: Memory, node: Operation, watcher: Watcher) -> None:
        self._memory, self._node, self._watcher = memory, node, watcher

    def array(self, *arguments: Any) -> Any:
        self._watcher.stateful.append(self._node)
        return self._memory.array(*arguments)

    def grow(self, *arguments: Any) -> Any:
        self._watcher.stateful.append(self._node)
        return self._memory.grow(*arguments)

    @property
    def nbytes(self) -> int:
        return self._memory.nbytes

    def scope(self, name: str) -> Memory:
        self._watcher.stateful.append(self._node)
        return self._memory.scope(name)


class Watcher:
    """Builds operators as the shard does, and records which output rows at a time without an input row, and which have state."""

    def __init__(self) -> None:
        self.active: list[Operation] = []
        self.by_time: list[Operation] = []
        self.stateful: list[Operation] = []
        self.built: list[Operation] = []

    def build(self, node: Operation, memory: Memory, *arguments: Any) -> Operator:
        self.built.append(node)
        operator = BUILD(node, WatchedMemory(memory, node, self), *arguments)
        process = operator.process

        def watched(inputs: Sequence[ChangeBatch], clock: int) -> ChangeBatch:
            output = process(inputs, clock)
            if len(output):
                self.active.append(node)
            if not np.isin(output.ts, np.concatenate([batch.ts for batch in inputs])).all():
                self.by_time.append(node)
            return output

        operator.process = watched  # type: ignore[method-assign]
        return operator


@pytest.fixture(scope="module")
def watcher() -> Watcher:
    """Cases with every operator above every kind of input, several times, under two strategies with stamped edges."""
    seen = Watcher()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shard, "build", seen.build)
        for case in covering((*CASES, *CHANGING), 4):
            _run(case)
    return seen


def _run(case: Case) -> None:
    for strategy in ("auto", "direct"):
        run(case, replay, strategy=strategy, shards=1)


def test_kinds_that_always_output_rows_by_time_alone_must_expire(watcher: Watcher) -> None:
    """Joins do so only where they mix kinds of edges or retract: `must_expire` of the node, not of its kind."""
    expiring = {node for node in watcher.active if any(map(expires_silently, node.inputs))}
    passive = {node.name for node in expiring - set(watcher.by_time)}
    must = {node.name for node in expiring if facts_of(node).must_expire}
    assert {node.name for node in expiring} - passive <= must <= {node.name for node in watcher.by_time}


def test_no_other_operator_outputs_rows_by_time_alone(watcher: Watcher) -> None:
    assert not {node.name for node in watcher.by_time if not must_expire(node)}


def test_stateless_operators_keep_nothing(watcher: Watcher) -> None:
    stateful = {node.name for node in watcher.stateful}
    assert stateful == {node.name for node in watcher.built if not facts_of(node).stateless}
