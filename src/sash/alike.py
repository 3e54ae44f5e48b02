"""Alike queries of a job: those that differ in constants are found, and planned as one."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sash.errors import SashError
from sash.operators.scalar import evaluate
from sash.physical.strategies.registry import strategy_of
from sash.plan.alike import AlikeQueries, Template, filled_name, filled_plan, find_alike, make_template
from sash.plan.expressions import Expression
from sash.plan.options import Mode
from sash.plan.templates import Shape, shape_of
from sash.planning import AlikeQuery, Planned, PlannedTemplate, plan_template

Kept = Mapping[str, Sequence[int]]
"""The templates of a checkpoint by name, with the numbers of their parameters."""


@dataclass(frozen=True)
class Candidate:
    """A query that may run with others that differ in constants: its name and plan, and the mode and key of its output.

    `variant` is a text of everything else in which alike queries must agree.
    """

    name: str
    planned: Planned
    mode: Mode
    key: tuple[int, ...] | None
    variant: str = ""

    @property
    def agreed(self) -> str:
        """What alike queries must agree on, as text."""
        return f"{self.mode} {self.key if self.mode == 'upsert' else ''} {self.planned.options} {self.variant}"

    @property
    def nets(self) -> bool:
        """Whether only the answers at the end of each batch matter."""
        return self.mode != "changes"


def constant_values(constants: Sequence[Expression]) -> tuple[Any, ...]:
    """The values of constants, as Python objects."""
    return tuple(evaluate(constant, [], 1)[0].as_py() for constant in constants)


def number_of(name: str) -> int:
    """The number of a query among alike ones. It depends on the name only, so it is the same after a restart."""
    return int.from_bytes(hashlib.sha256(name.lower().encode()).digest()[:8], "big") >> 1


def plan_alike(
    candidates: Sequence[Candidate], shards: int | None = None, kept: Kept | None = None
) -> list[PlannedTemplate]:
    """The templates of the alike queries among these; others are in none.

    A template of the checkpoint is kept while any query fits it.
    """
    usable = [one for one in candidates if not strategy_of(one.planned.options.strategy).by_rows_alone]
    shapes = [shape_of(one.planned.written) for one in usable]
    found: list[AlikeQueries] = []
    left = list(range(len(usable)))
    for name, parameters in (kept or {}).items():
        fitting = [n for n in left if filled_name(shapes[n], parameters, usable[n].nets, usable[n].agreed) == name]
        if fitting:
            first = usable[fitting[0]]
            plan = filled_plan(shapes[fitting[0]], parameters)
            found.append(AlikeQueries(make_template(plan, net=first.nets, variant=first.agreed), tuple(fitting)))
            left = [n for n in left if n not in set(fitting)]
    groups = find_alike([(shapes[n], usable[n].nets, usable[n].agreed) for n in left])
    found += [replace(group, members=tuple(left[n] for n in group.members)) for group in groups]
    made = [_planned(group, usable, shapes, shards) for group in found]
    return [template for template in made if template.queries]


def alike_query(candidate: Candidate, template: Template) -> AlikeQuery | None:
    """The candidate as one of a template's queries; None if it is not one, or its constants cannot be computed."""
    shape = shape_of(candidate.planned.written)
    fits = template.variant == candidate.agreed and template.accepts(shape)
    return _query(candidate, shape, template) if fits else None


def _query(candidate: Candidate, shape: Shape, template: Template) -> AlikeQuery | None:
    try:
        values = constant_values(template.constants_in(shape))
    except SashError:
        return None
    return AlikeQuery(candidate.name, number_of(candidate.name), values, candidate.planned)


def _planned(
    group: AlikeQueries, candidates: Sequence[Candidate], shapes: Sequence[Shape], shards: int | None
) -> PlannedTemplate:
    template, first = group.template, candidates[group.members[0]]
    queries = [_query(candidates[n], shapes[n], template) for n in group.members]
    planned = plan_template(template, shards, first.planned.options)
    key = planned.key(None, needed=False)
    if first.mode == "upsert":
        assert first.key is not None
        key = (0, *(1 + column for column in first.key))
    return PlannedTemplate(template, planned, first.mode, key, tuple(query for query in queries if query is not None))
