"""EXPLAIN: the logical plan with every edge's update pattern and estimates, and the stages, buffers and legs that run it.

EXPLAIN ALL adds the alternatives that cost more, EXPLAIN ANALYZE (`runtime/analyze.py`) what each operator did in a run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sash.operators.base import Edge
from sash.optimizer.optimizer import UNCOUNTED, AppliedRule, Optimized
from sash.optimizer.plan_cost import PlanCosts
from sash.physical import nodes
from sash.physical.explain_aggregates import aggregate_costs, over_costs
from sash.physical.facts import facts_of
from sash.physical.join_plan import describe_join, describe_order
from sash.physical.nodes import Leaf, Leg, Operation, Physical, PhysicalPlan, Stage, StageInput
from sash.physical.strategies.paths import describe_strategy
from sash.plan.describe import describe, describe_aggregate
from sash.plan.expressions import Call
from sash.plan.nodes import Node, SortKey, Stream, walk
from sash.plan.patterns import pattern
from sash.plan.rates import DEFAULT_RATE
from sash.plan.tree import (
    MOST_LISTS,
    RANKS,
    assignment_text,
    describe_over,
    duration_text,
    label,
    lifetime_text,
    more_lists,
    sort_direction,
    tree,
)
from sash.plan.types import BOOLEAN, Schema
from sash.plan.unbounded import endless_state

INDENT = "  "
_SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_ARROW = "->"
_ENDS = {
    "mono": "never",
    "fifo": "stamped fifo",
    "calendar": "stamped",
    "strict": "stamped or explicit",
    "explicit": "explicit",
}

Line = tuple[str, str]
"""The left part of a line, and the description of the output edge on the right."""


def explain(
    sql: str,
    optimized: Optimized,
    physical: PhysicalPlan,
    order: Sequence[SortKey] = (),
    *,
    alternatives: bool = False,
    remarks: Mapping[int, Sequence[str]] = MappingProxyType({}),
) -> str:
    """The plan of a query as text; with `alternatives`, also the plans that it was chosen from.

    `order` is that in which its rows are shown.
    `remarks` are lines to add to the plan, its stages and its operators, by identity.
    """
    count = len(physical.stages)
    sections = [
        ["Query", *indented(sql.strip().splitlines())],
        *(
            [["Order of rows, where the answer is shown (its changes have none)", *_order(order, physical.schema)]]
            if order
            else []
        ),
        [
            "Logical plan (-> update pattern; estimates: rows per second out, rows kept, cost per second)",
            *edge_columns(_logical(optimized.plan, PlanCosts(), 1)),
        ],
        [f"Rules that changed it, and its cost: {rounded(optimized.cost)} in the end", *_steps(optimized)],
        *([["Alternatives that cost more", *_alternatives(optimized)]] if alternatives else []),
        [
            f"Physical plan: {count} stage{'' if count == 1 else 's'} (-> how rows end, update pattern)",
            *indented(remarks.get(id(physical), ())),
            *edge_columns([line for stage in physical.stages for line in stage_lines(stage, physical, remarks)]),
        ],
        *(
            [["State that grows without end", *indented(_growth(optimized.plan))]]
            if endless_state(optimized.plan)
            else []
        ),
        ["Strategy: " + physical.strategy, *indented(describe_strategy(physical))],
        ["Legs, straight above the sources", *leg_lines(physical)],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _growth(plan: Node) -> list[str]:
    """What every operator keeps for ever, and by how many rows that grows."""
    rates: dict[str, float] = {}
    for node in walk(plan):
        if isinstance(node, Stream):
            rates[node.name] = DEFAULT_RATE if node.statistics.rate is None else node.statistics.rate
    return [
        f"{operator} keeps every row of stream {stream}: up to {rounded(rates[stream])} more per second"
        for operator, stream in endless_state(plan)
    ]


def _order(order: Sequence[SortKey], schema: Schema) -> list[str]:
    return [INDENT + ", ".join(f"{schema[key.column].name}{sort_direction(key)}" for key in order)]


def _steps(optimized: Optimized) -> list[str]:
    width = max((len(step.rule) for step in optimized.steps), default=0)
    lines = [
        f"{INDENT}{step.rule:<{width}}  {rounded(step.before)} {_ARROW} {rounded(step.after)}{_dearer(step)}"
        for step in optimized.steps
    ]
    return lines or [INDENT + "none"]


def _dearer(step: AppliedRule) -> str:
    """Why a rule is applied although the plan costs more after it."""
    return f" ({UNCOUNTED[step.rule]})" if step.is_dearer else ""


def _alternatives(optimized: Optimized) -> list[str]:
    lines = []
    for one in optimized.rejected:
        lines.append(f"{INDENT}{one.rule}: {rounded(one.cost)} instead of {rounded(one.instead)}")
        lines += indented(indented(tree(one.plan).splitlines()))
    return lines or [INDENT + "none"]


def rounded(value: float) -> str:
    """The value with three significant digits.

    >>> [rounded(value) for value in (0.0, 0.0333, 12.34, 1234.0, 86_400_000.0)]
    ['0', '0.0333', '12.3', '1,230', '86,400,000']
    """
    if not value:
        return "0"
    digits = 2 - math.floor(math.log10(abs(value)))
    text = f"{round(value, digits):,.{max(digits, 0)}f}"
    return text.rstrip("0").rstrip(".") if digits > 0 else text


def indented(lines: Sequence[str]) -> list[str]:
    """The lines, one step further to the right."""
    return [INDENT + line for line in lines]


def edge_columns(lines: Sequence[Line]) -> list[str]:
    """The left parts, with the edges in a column of their own."""
    width = max(len(left) for left, right in lines if right)
    return [f"{left:<{width}}  {_ARROW} {right}" if right else left for left, right in lines]


def _logical(node: Node, costs: PlanCosts, depth: int) -> list[Line]:
    below = [line for child in node.children for line in _logical(child, costs, depth + 1)]
    kept, cost = costs.state(node), costs.of(node)
    details = [f"{pattern(node).label}; {rounded(costs.estimates(node).rate)}/s"]
    details += [f"{rounded(kept)} kept"] if kept else []
    details += [f"cost {rounded(cost)}"] if cost else []
    return [(INDENT * depth + label(node), ", ".join(details)), *below]


def stage_lines(stage: Stage, plan: PhysicalPlan, remarks: Mapping[int, Sequence[str]]) -> list[Line]:
    """A stage: its partitioning, lines to add, and its operators."""
    inputs = {id(given.leaf): given for given in stage.inputs}
    added = [(f"{INDENT * 3}{remark}", "") for remark in remarks.get(id(stage), ())]
    below = _operators(stage.root, 2, inputs, plan, set(), remarks)
    return [(f"{INDENT}Stage {stage.index}, {_partitioning(stage)}", ""), *added, *below]


def _partitioning(stage: Stage) -> str:
    """The key columns of the first input that has any; the others' stand at their leaves."""
    if stage.single:
        return "one shard"
    given = max(stage.inputs, key=lambda given: len(given.keys))
    return f"partitioned by {_names(given.leaf.schema, given.keys)}" if given.keys else "partitioned as its input"


def _operators(
    node: Physical,
    depth: int,
    inputs: Mapping[int, StageInput],
    plan: PhysicalPlan,
    seen: set[int],
    remarks: Mapping[int, Sequence[str]],
) -> list[Line]:
    indent = INDENT * depth
    if isinstance(node, Leaf):
        given = inputs[id(node)]
        by = f" by {_names(node.schema, given.keys)}" if given.keys else ""
        origin = ", same shard" if given.local else ", rows kept by the channel" if given.common else ""
        ends = f"{_ENDS['explicit']}, {node.pattern.label}" if given.common else _edge(node)
        return [(f"{indent}{_origin(node, plan)}{by}{origin}", ends)]
    text = f"{indent}{operation_text(node)}{_state(node)}"
    reasons = [(f"{indent}{INDENT * 2}{reason}", "") for reason in (*_reasons(node), *remarks.get(id(node), ()))]
    if id(node) in seen:
        return [(f"{text} (the one above)", _edge(node))]
    seen.add(id(node))
    below = [line for child in node.inputs for line in _operators(child, depth + 1, inputs, plan, seen, remarks)]
    return [(text, _edge(node)), *reasons, *below]


def _reasons(node: Operation) -> list[str]:
    """Why the operator runs as it does, where it may run otherwise."""
    match node:
        case nodes.MultiJoin():
            return [f"order {describe_order(node.plan)}"]
        case nodes.ExceptAll() | nodes.SemiJoin() if node.ends is not None:
            return [node.ends.reason]
        case _:
            return []


def _origin(leaf: Leaf, plan: PhysicalPlan) -> str:
    if leaf.leg is None:
        return f"Stage {leaf.stage}"
    leg = plan.legs[leaf.leg]
    return f"Leg {leaf.leg}: {leg.stream if isinstance(leg, nodes.StreamLeg) else leg.relation.name}"


def _edge(node: Physical) -> str:
    return f"{_ENDS[node.expiry]}, {node.pattern.label}"


def _state(node: Operation) -> str:
    """The buffer that keeps the rows of each input, for operators with state."""
    if facts_of(node).stateless:
        return ""
    buffers = [_buffer(node, index, edge) for index, edge in enumerate(node.buffers)]
    if isinstance(node, nodes.NrrJoin) and node.expiry != "explicit":
        buffers = buffers[1:]
    return f" [{', '.join(buffers)}]"


def _buffer(node: Operation, index: int, edge: Edge) -> str:
    calendar = f"calendar of {edge.partitions:,}"
    match node:
        case nodes.CountWindow():
            return "fifo"
        case nodes.Distinct():
            return calendar
        case nodes.Join() if node.shared[index]:
            return "rows of DISTINCT"
    match edge.expiry:
        case "fifo":
            return "fifo"
        case "calendar":
            return calendar
        case "strict":
            return f"{calendar} or hash"
        case "explicit":
            return "hash"


def operation_text(node: Operation) -> str:
    """The operator's name and parameters."""
    name = "AntiJoin" if isinstance(node, nodes.SemiJoin) and node.anti else node.name
    return " ".join(part for part in (name, *_parameters(node)) if part)


def _parameters(node: Operation) -> tuple[str, ...]:
    """The operator's parameters, with columns by name; empty ones are not printed."""
    schema = node.inputs[0].schema
    match node:
        case nodes.Filter():
            return (describe(node.predicate),)
        case nodes.Project():
            return (", ".join(map(describe, node.expressions)),)
        case nodes.Expand():
            shown = ["; ".join(", ".join(map(describe, made)) for made in node.lists[:MOST_LISTS])]
            return (f"{shown[0]}{more_lists(node.lists)}",)
        case nodes.Generate():
            return f"{'OUTER ' if node.outer else ''}{describe(node.array)}", ""
        case nodes.AssignWindows():
            return f"BY {schema[node.time].name}", assignment_text(node.windows)
        case nodes.Final():
            return ()
        case nodes.Sessions():
            emitted = " EMIT ON CLOSE" if node.emits else ""
            gap = duration_text(node.gap) if node.gaps is None else "OF EACH ROW"
            return _by(schema, node.keys), f"GAP {gap}{emitted}"
        case nodes.Lifetime():
            start, end = (None if e is None else describe(e) for e in (node.start, node.end))
            return (lifetime_text(start, end),)
        case nodes.Aggregate():
            costs = aggregate_costs(node.aggregates, node.inputs[0].expiry)
            return ", ".join(map(describe_aggregate, node.aggregates)), _by(schema, node.keys), costs
        case nodes.Combine():
            return (", ".join(map(describe_aggregate, node.aggregates)),)
        case nodes.CountWindow():
            by = _names(schema, node.window.partition)
            return f"PARTITION BY {by}" if by else "", f"ROWS {node.window.count}"
        case nodes.Join():
            lazily = _purged(node.purge)
            lives = _lives_text(node.lives) if isinstance(node, nodes.IntervalJoin) else ""
            return _on(node.keys, schema, node.inputs[1].schema), lives, lazily
        case nodes.ScalarComparison():
            return (f"{describe(Call(node.function, (node.value, node.scalar), BOOLEAN))} BY ORDER",)
        case nodes.SemiJoin():
            return (_on(node.keys, schema, node.inputs[1].schema),)
        case nodes.MultiJoin():
            return describe_join(node.plan, [child.schema for child in node.inputs]), _purged(node.purge_interval)
        case nodes.NrrJoin():
            return node.kind, _on(node.keys, schema, node.inputs[1].schema)
        case nodes.Updates():
            return (_by(schema, node.key or ()),)
        case nodes.Lookup():
            return node.kind, label(node.relation), _on(node.keys, schema, node.relation.schema)
        case nodes.SetOperation():
            return (node.mode,)
        case nodes.Alike():
            return (alike_text(node),)
        case nodes.Over():
            return describe_over(node.partition, node.ties, node.calls, schema), over_costs(node.calls)
        case nodes.TopK():
            order = ", ".join(f"{schema[key.column].name}{sort_direction(key)}" for key in node.order)
            offset = f"OFFSET {node.offset}" if node.offset else ""
            each = "OF EACH " + ", ".join(schema[column].name for column in node.by) if node.by else ""
            return str(node.limit), RANKS[node.ranked], offset, each, f"BY {order}" if order else ""
        case nodes.Sample():
            return (f"EVERY {duration_text(node.slide)}",)
        case nodes.Distinct() | nodes.ExceptAll() | nodes.Expire() | nodes.Union():
            return ()


def _purged(interval: int | None) -> str:
    return "" if interval is None else f"PURGED EVERY {duration_text(interval)}"


def _lives_text(lives: tuple[int | None, int | None]) -> str:
    """How long an interval join keeps the rows of its inputs."""
    kept = zip(("LEFT", "RIGHT"), lives, strict=True)
    return ", ".join(f"{side} KEPT FOR {duration_text(life)}" for side, life in kept if life is not None)


def alike_text(node: nodes.Alike) -> str:
    """The predicate of alike queries, with the names of their constants."""
    left, right = (child.schema for child in node.inputs)
    parts = [f"{left[a].name} = {right[b].name}" for a, b in node.keys]
    if node.comparison is not None:
        value, function, constant = node.comparison
        parts.append(f"{left[value].name} {_SIGNS[function]} {right[constant].name}")
    if node.condition is not None:
        parts.append(describe(node.condition))
    return " AND ".join(parts)


def _on(keys: Sequence[tuple[int, int]], left: Schema, right: Schema) -> str:
    pairs = [f"{left[a].name} = {right[b].name}" for a, b in keys]
    return f"ON {' AND '.join(pairs)}" if pairs else ""


def _by(schema: Schema, columns: Sequence[int]) -> str:
    return f"BY {_names(schema, columns)}" if columns else ""


def _names(schema: Schema, columns: Sequence[int]) -> str:
    return ", ".join(schema[column].name for column in columns)


def leg_lines(plan: PhysicalPlan) -> list[str]:
    """The legs and what each computes."""
    lines = []
    for index, leg in enumerate(plan.legs):
        lines += [f"{INDENT}Leg {index}, a {_leg_kind(leg)}", *indented(indented(tree(leg.node).splitlines()))]
    return lines


def _leg_kind(leg: Leg) -> str:
    match leg:
        case nodes.StreamLeg():
            return "stream"
        case nodes.RelationLeg():
            return "relation"
        case nodes.UpdateLeg():
            return "relation's updates"
