"""A plan that was written as text and read again is the same plan: same operators, same state, same answers."""

from __future__ import annotations

import base64
import json
import pickle
from dataclasses import fields, is_dataclass
from typing import Any

import pytest

from sash.errors import CatalogError, CheckpointError
from sash.physical.nodes import PhysicalPlan, walk
from sash.physical.plan_channels import channels_of
from sash.physical.stored_plan import decode_plan, encode_plan
from sash.plan.catalog import Catalog, StreamEntry
from sash.plan.user_code import UserCode
from sash.planning import plan_query, plan_together
from sash.rows import parse_schema
from sash.runtime.local import LocalRun
from sash.testing import replay
from sash.user_library import add_function
from tests.oracle.case import Case
from tests.oracle.cases import CASES, CHANGING
from tests.oracle.check import run
from tests.runtime.test_local_jobs import CATALOG, QUERIES


class Prepared(Exception):  # noqa: N818  (not an error)
    """The plan has been compared: the case does not run."""


def store_plans(monkeypatch: pytest.MonkeyPatch, runs: bool) -> None:
    """Let plans be written and read before they run."""
    prepare = LocalRun.__post_init__

    def prepare_stored(self: LocalRun) -> None:
        stored = encode_plan(self.plan)
        plan = decode_plan(stored)
        assert encode_plan(plan) == stored
        assert identities(plan) == identities(self.plan)
        if not runs:
            raise Prepared
        self.plan = plan
        prepare(self)

    monkeypatch.setattr(LocalRun, "__post_init__", prepare_stored)


@pytest.mark.parametrize("case", [*CASES, *CHANGING], ids=lambda case: case.name)
def test_a_plan_that_is_read_again_has_the_same_state(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    store_plans(monkeypatch, runs=False)
    with pytest.raises(Prepared):
        run(case, replay, shards=2)


@pytest.mark.parametrize("case", [*CASES[::12], *CHANGING[::4]], ids=lambda case: case.name)
def test_a_plan_that_is_read_again_gives_the_same_changes(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = run(case, replay, shards=2)
    store_plans(monkeypatch, runs=True)
    assert run(case, replay, shards=2).changes == expected.changes


def identities(plan: PhysicalPlan) -> list[Any]:
    return [(channel.identity, channel.description) for channel in channels_of(plan, share=True).channels]


def plan_of_job() -> PhysicalPlan:
    planned = {name: plan_query(sql, CATALOG, shards=2) for name, sql in QUERIES.items()}
    return plan_together(planned, 2).physical


def test_nodes_that_are_shared_stay_shared() -> None:
    plan = plan_of_job()
    again = decode_plan(encode_plan(plan))
    nodes, nodes_again = (
        [len(list(walk(stage.root, seen))) for stage in given.stages] for given, seen in ((plan, set()), (again, set()))
    )
    assert nodes == nodes_again
    leaves = {id(given.leaf) for stage in again.stages for given in stage.inputs}
    assert leaves <= {id(node) for stage in again.stages for node in walk(stage.root)}


def test_fields_that_an_earlier_version_did_not_have_get_their_defaults() -> None:
    stored = json.loads(encode_plan(plan_of_job()))
    for name, given in stored["objects"]:
        if name == "physical.nodes.Stage":
            del given["tau"]
    assert {stage.tau for stage in decode_plan(json.dumps(stored)).stages} == {None}


@pytest.mark.parametrize(
    "name", ["os.system", "testing.replay.replay", "physical.nodes.walk", "physical.nodes.Nothing"]
)
def test_only_parts_of_plans_are_made(name: str) -> None:
    text = json.dumps({"objects": [[name, {}]], "root": {"object": 0}})
    with pytest.raises(CheckpointError, match=f"unknown kind: {name}"):
        decode_plan(text)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"objects": [["physical.nodes.Stage", {"later": 1}]], "root": {"object": 0}}']
)
def test_a_text_that_cannot_be_read_is_an_error_of_the_checkpoint(text: str) -> None:
    with pytest.raises(CheckpointError, match="cannot be read by this version"):
        decode_plan(text)


def user_plan(catalog: Catalog) -> PhysicalPlan:
    return plan_query(
        "SELECT stored_plan_f(v) AS f, COUNT(*) AS n FROM s [RANGE 1 MINUTE] GROUP BY v", catalog, shards=2
    ).physical


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog({"s": StreamEntry("s", parse_schema("ts TIMESTAMP, v INT"), "ts")})
    for version in ("1", "2"):
        add_function(made, "stored_plan_f", abs, "INT", version, lambda _: b"code")
    return made


def user_codes(value: Any) -> list[UserCode]:
    """The code of users in a plan."""
    if isinstance(value, UserCode):
        return [value]
    if is_dataclass(value):
        value = [getattr(value, field.name) for field in fields(value) if field.init]
    return [code for part in value for code in user_codes(part)] if isinstance(value, list | tuple) else []


def test_code_of_users_is_named_and_not_stored(catalog: Catalog) -> None:
    text = encode_plan(user_plan(catalog))
    assert base64.b64encode(b"code").decode() not in text
    codes = user_codes(decode_plan(text))
    assert {(code.name, code.version) for code in codes} == {("stored_plan_f", "2")}
    assert all(code.code is abs for code in codes)
    earlier = user_codes(decode_plan(text.replace('"version":"2"', '"version":"1"')))
    assert {code.version for code in earlier} == {"1"}
    assert all(code.code is abs for code in earlier)


def test_code_in_a_checkpoint_is_never_executed(catalog: Catalog) -> None:
    class Executed:
        def __reduce__(self) -> Any:
            return pytest.fail, ("executed",)

    stored = json.loads(encode_plan(user_plan(catalog)))
    for name, given in stored["objects"]:
        if name == "plan.user_code.UserCode":
            given["version"] = "7"
            given["packed"] = {"bytes": base64.b64encode(pickle.dumps(Executed())).decode()}
    codes = user_codes(decode_plan(json.dumps(stored)))
    assert codes
    for use in (lambda code: code.code, pickle.dumps):
        with pytest.raises(CatalogError, match="the checkpoint needs version 7 of stored_plan_f: register it"):
            use(codes[0])
