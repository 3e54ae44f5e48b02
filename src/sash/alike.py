"""Alike queries of a job: planned as one, with the constants of each as a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sash.operators.scalar import evaluate
from sash.optimizer.optimizer import optimize
from sash.physical.planner import plan_physical
from sash.plan.alike import Template
from sash.plan.expressions import Expression
from sash.plan.options import DEFAULT, Options
from sash.plan.tree import tree
from sash.planning import Planned


def plan_template(template: Template, shards: int | None = None, options: Options = DEFAULT) -> Planned:
    """The plan of all queries of a template; its answers have the number of the query as their first column."""
    optimization = optimize(template.plan)
    physical = plan_physical(optimization.plan, shards, options)
    return Planned(tree(template.shape), template.plan, optimization, physical, options)


def constant_values(constants: Sequence[Expression]) -> tuple[Any, ...]:
    """The values of constants, as Python objects."""
    return tuple(evaluate(constant, [], 1)[0].as_py() for constant in constants)
