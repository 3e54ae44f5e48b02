"""EXPLAIN JOB: the plan of queries that run together, which stages they share, and what that saves."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sash.display import counted
from sash.optimizer.widen_joins import WideJoin
from sash.physical.common_rows import common_rows, rows_apart, rows_once
from sash.physical.explain import INDENT, edge_columns, indented, leg_lines, rounded, stage_lines
from sash.physical.explain_channels import channel_lines
from sash.physical.nodes import PhysicalPlan, Stage, operations
from sash.physical.plan_channels import channels_of
from sash.plan.tree import duration_text


@dataclass(frozen=True)
class Amounts:
    """How much a plan runs and keeps: legs, logs, operators, estimated rows kept, and estimated cost per second."""

    legs: int
    logs: int
    operators: int
    kept: float
    cost: float

    @staticmethod
    def of(plans: Collection[PhysicalPlan], *, share: bool) -> Amounts:
        """The sum over the plans; with `share`, stages of a plan read channels together."""
        found = [node for plan in plans for stage in plan.stages for node in operations(stage.root)]
        expected = [node.expected for node in found if node.expected is not None]
        channels = [(plan, channels_of(plan, share)) for plan in plans]
        # Operators are estimated as if each kept its rows.
        saved = sum(
            rows_apart(plan, common) - rows_once(plan, common)
            for plan, made in channels
            for common in common_rows(plan, made).values()
        )
        return Amounts(
            sum(len(plan.legs) for plan in plans),
            sum(len(made.channels) for _, made in channels),
            len(found),
            sum(one.kept for one in expected) - saved,
            sum(one.cost for one in expected),
        )


def explain_job(
    texts: Mapping[str, str], alone: Mapping[str, PhysicalPlan], plan: PhysicalPlan, joins: Collection[WideJoin] = ()
) -> str:
    """The plan of a job as text, given the text of every query, its plan if it ran alone, and joins that were compared."""
    queries, stages = len(plan.outputs), len(plan.stages)
    channels = channels_of(plan, share=True)
    sections = [
        [f"Job of {counted(queries, 'query', 'queries')}", *_queries(texts, plan)],
        [
            f"Physical plan: {counted(stages, 'stage', 'stages')} (-> how rows end, update pattern)",
            *edge_columns(
                [line for stage in plan.stages for line in stage_lines(stage, plan, {id(stage): _uses(stage, plan)})]
            ),
        ],
        ["Legs, straight above the sources", *leg_lines(plan)],
        ["Scans, and channels that bring rows to shards once", *indented(channel_lines(plan, channels))],
        *([["Joins that differ in columns only", *indented([_join_line(join) for join in joins])]] if joins else []),
        ["Saved by sharing (alone -> together)", *indented(_savings(alone.values(), plan))],
    ]
    return "\n\n".join("\n".join(section) for section in sections) + "\n"


def _queries(texts: Mapping[str, str], plan: PhysicalPlan) -> list[str]:
    """Every query with the stages that compute it."""
    lines = []
    for output in plan.outputs:
        needed = ", ".join(str(stage.index) for stage in plan.stages_of(output))
        lines.append(f"{INDENT}{output.query}: output of stage {output.stage}, computed by {_plural(needed)} {needed}")
        lines += indented(indented(texts[output.query].strip().splitlines()))
    return lines


def _join_line(join: WideJoin) -> str:
    """What was chosen for a join that several queries could share, and the costs compared."""
    costs = f"cost per second {rounded(join.together)} with one join, {rounded(join.apart)} with separate ones"
    chosen = f"share a join with columns {', '.join(join.columns)}" if join.pays else "have separate joins"
    return f"{', '.join(join.queries)} {chosen}: {costs}"


def _plural(listed: str) -> str:
    return "stages" if "," in listed else "stage"


def _uses(stage: Stage, plan: PhysicalPlan) -> list[str]:
    """The queries and stages that read a stage, and its own strategy and tau."""
    queries = plan.queries_of(stage)
    lines = [f"for {', '.join(queries)}"]
    outputs = [plan.outputs[number].query for number in plan.outputs_of(stage)]
    readers = [
        f"stage {reader.index} ({'in the same shard' if given.local else 'sent by key'})"
        for reader in plan.stages
        for given in reader.inputs
        if given.leaf.stage == stage.index
    ]
    if len(queries) > 1:
        lines.append("shared; read by " + ", ".join([*(f"the output of {name}" for name in outputs), *readers]))
    settings = (("tau", stage.tau), ("probe", stage.probe), ("patience", stage.patience))
    given = [f"{name} {duration_text(length)}" for name, length in settings if length is not None]
    lines.append(", ".join([f"strategy {stage.strategy}", *given]))
    return lines


def _savings(plans: Collection[PhysicalPlan], plan: PhysicalPlan) -> list[str]:
    alone, together = Amounts.of(plans, share=False), Amounts.of([plan], share=True)
    return [
        f"legs {alone.legs:,} -> {together.legs:,}",
        f"logs {alone.logs:,} -> {together.logs:,}",
        f"operators {alone.operators:,} -> {together.operators:,}",
        f"rows kept (estimate) {rounded(alone.kept)} -> {rounded(together.kept)}",
        f"cost per second (estimate) {rounded(alone.cost)} -> {rounded(together.cost)}",
    ]
