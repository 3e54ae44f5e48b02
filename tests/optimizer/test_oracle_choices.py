"""Rules that choose by cost, executed: the plan as written and every alternative against the oracle, instant by instant."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

from sash.optimizer.optimizer import RULES, ByCost, Optimized, optimize
from sash.optimizer.rewriting import named
from sash.physical.planner import plan_physical
from sash.plan.catalog import Catalog
from sash.plan.nodes import Node
from sash.plan.options import DEFAULT, Options
from sash.planning import Planned
from sash.sql import parse
from tests.oracle.case import Case, case
from tests.oracle.check import assert_oracle

VIEWS = {"s": 5, "r": 3, "q": 4}
ANTI = "SELECT s.k, s.v FROM {s} AS s LEFT ANTI JOIN {r} AS r ON s.k = r.k"
ANTI_DUCK = "SELECT s.k, s.v FROM {s} AS s ANTI JOIN {r} AS r ON s.k = r.k"
SEMI = "SELECT s.k, s.v FROM {s} AS s LEFT SEMI JOIN {r} AS r ON s.k = r.k AND r.v >= s.v"
SEMI_DUCK = "SELECT s.k, s.v FROM {s} AS s SEMI JOIN {r} AS r ON s.k = r.k AND r.v >= s.v"
JOINED = "SELECT s.k, s.v, q.g FROM {s} AS s JOIN {q} AS q ON s.k = q.k"
UNDER = "SELECT t.k AS k, t.v AS v, q.g AS g FROM ({below}) AS t JOIN {{q}} AS q ON t.k = q.k"


def written(rule: str, name: str, sash_text: str, duck: str | None = None) -> Any:
    made = case(name, sash_text, VIEWS, duck=duck)
    return pytest.param(rule, made, id=f"{rule}-{name}")


CASES = [
    written(
        "pull_up_negation",
        "query_5",
        "SELECT t.k AS k, q.v AS v FROM (SELECT k FROM {s} EXCEPT ALL SELECT k FROM {r}) AS t JOIN {q} AS q ON t.k = q.k",
    ),
    written(
        "pull_up_negation",
        "set_difference_with_a_set",
        "SELECT t.k AS k, q.v AS v FROM (SELECT k FROM {s} EXCEPT SELECT k FROM {r}) AS t "
        "JOIN (SELECT DISTINCT k, v FROM {q}) AS q ON t.k = q.k",
    ),
    written("pull_up_negation", "anti_join", UNDER.format(below=ANTI), UNDER.format(below=ANTI_DUCK)),
    written("pull_up_negation", "semi_join", UNDER.format(below=SEMI), UNDER.format(below=SEMI_DUCK)),
    written(
        "pull_up_negation",
        "distinct",
        "SELECT DISTINCT s.k FROM {s} AS s LEFT ANTI JOIN {r} AS r ON s.k = r.k",
        "SELECT DISTINCT s.k FROM {s} AS s ANTI JOIN {r} AS r ON s.k = r.k",
    ),
    written(
        "push_down_negation",
        "anti_join",
        f"SELECT t.k AS k, t.g AS g FROM ({JOINED}) AS t LEFT ANTI JOIN {{r}} AS r ON t.k = r.k",
        f"SELECT t.k AS k, t.g AS g FROM ({JOINED}) AS t ANTI JOIN {{r}} AS r ON t.k = r.k",
    ),
    written(
        "push_down_negation",
        "semi_join_with_the_other_side",
        f"SELECT t.k AS k, t.g AS g FROM ({JOINED}) AS t LEFT SEMI JOIN {{r}} AS r ON t.g = r.g",
        f"SELECT t.k AS k, t.g AS g FROM ({JOINED}) AS t SEMI JOIN {{r}} AS r ON t.g = r.g",
    ),
    written(
        "push_down_negation",
        "difference_of_joins",
        "SELECT s.k, q.v FROM {s} AS s JOIN {q} AS q ON s.k = q.k EXCEPT ALL "
        "SELECT r.k, q.v FROM {r} AS r JOIN {q} AS q ON r.k = q.k",
    ),
    written(
        "push_distinct_below_join",
        "keys",
        "SELECT DISTINCT s.k FROM {s} AS s JOIN {r} AS r ON s.k = r.k AND s.v >= r.v",
    ),
    written(
        "order_joins",
        "common_attribute",
        "SELECT s.v AS a, r.v AS b, q.v AS c FROM {s} AS s JOIN {r} AS r ON s.k = r.k JOIN {q} AS q ON r.k = q.k",
    ),
    written(
        "order_joins",
        "join_graph",
        "SELECT s.v AS a, r.v AS b, q.v AS c FROM {s} AS s JOIN {r} AS r ON s.k = r.k JOIN {q} AS q "
        "ON r.g = q.g AND q.v >= s.v",
    ),
]
TIDY = tuple((name, rule) for name, rule in RULES if not isinstance(rule, ByCost))


def alternatives(rule: str, plan: Node) -> list[Node]:
    chooser = dict(RULES)[rule]
    assert isinstance(chooser, ByCost)
    return [named(optimize(made, TIDY).plan, plan.schema) for made in chooser.alternatives(plan)]


@pytest.mark.parametrize(("rule", "checked"), CASES)
def test_oracle_both_ways(rule: str, checked: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    proposed: list[Node] = []
    taken: list[Node] = []

    def planned(sql: str, catalog: Catalog, shards: int | None = None, options: Options = DEFAULT) -> Planned:
        plan = optimize(parse(sql, catalog), TIDY).plan
        proposed[:] = alternatives(rule, plan)
        chosen = taken[0] if taken else plan
        return Planned(sql, plan, Optimized(chosen, (), (), 0.0), plan_physical(chosen, shards), options)

    monkeypatch.setattr(import_module("sash.testing.replay"), "plan_query", planned)
    assert_oracle(checked, batch=3)
    assert proposed, "the rule has nothing to propose"
    others = tuple(proposed)
    for other in others:
        taken[:] = [other]
        assert_oracle(checked, batch=3)
        assert_oracle(checked, shards=1)
