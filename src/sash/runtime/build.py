"""Builds the operator of every physical node, attached to its state."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from sash.operators.aggregate import Aggregate
from sash.operators.alike import Alike
from sash.operators.assign_windows import AssignWindows
from sash.operators.base import Edge, Operator
from sash.operators.combine import Combine
from sash.operators.count_window import CountWindow
from sash.operators.distinct import Distinct
from sash.operators.except_all import ExceptAll
from sash.operators.expand import Expand
from sash.operators.expire import Expire
from sash.operators.filter import Filter
from sash.operators.final import Final
from sash.operators.generate import Generate
from sash.operators.join import Join
from sash.operators.lifetime import Lifetime
from sash.operators.lookup import Lookup
from sash.operators.multi_join import MultiJoin
from sash.operators.nrr_join import NrrJoin
from sash.operators.over import Over
from sash.operators.project import Project
from sash.operators.sample import Sample
from sash.operators.scalar_comparison import ScalarComparison
from sash.operators.semi_join import SemiJoin
from sash.operators.sessions import Sessions
from sash.operators.set_operation import SetOperation
from sash.operators.top_k import TopK
from sash.operators.union import Union
from sash.operators.updates import Updates
from sash.physical import nodes
from sash.plan.nodes import Node
from sash.state.memory import Memory
from sash.state.rows import RowStore

Relations = Mapping[Node, pa.Table]
"""The contents of the relations that a plan looks up."""

SharedRows = tuple[RowStore | None, RowStore | None]
"""Per input of a join, the rows that it reads where the operator below keeps them."""


def build(node: nodes.Operation, memory: Memory, relations: Relations, shared: SharedRows = (None, None)) -> Operator:
    """The operator of a node."""
    match node:
        case nodes.Aggregate():
            edge = _one(node)
            return Aggregate(memory, edge, node.keys, node.aggregates, timed=node.timed, time=node.time)
        case nodes.Alike():
            return Alike(
                memory, _two(node), node.keys, node.comparison, node.condition, node.otherwise, net_batches=node.net
            )
        case nodes.AssignWindows():
            return AssignWindows(memory, _one(node), node.time, node.windows)
        case nodes.Combine():
            return Combine(memory, _one(node), node.aggregates)
        case nodes.CountWindow():
            return CountWindow(memory, _one(node), node.window)
        case nodes.Distinct():
            return Distinct(memory, _one(node), node.retracting)
        case nodes.ExceptAll():
            return ExceptAll(memory, _two(node), node.ends)
        case nodes.Expand():
            return Expand(memory, _one(node), node.lists)
        case nodes.Expire():
            return Expire(memory, _one(node), node.with_expiration)
        case nodes.Filter():
            return Filter(memory, _one(node), node.predicate)
        case nodes.Generate():
            return Generate(memory, _one(node), node.columns, node.array, node.outer)
        case nodes.Join():
            columns = node.left_columns, node.right_columns
            lives = node.lives if isinstance(node, nodes.IntervalJoin) else (None, None)
            return Join(memory, _two(node), node.keys, *columns, node.retracting, shared, node.purge, lives)
        case nodes.Lifetime():
            return Lifetime(memory, _one(node), node.start, node.end)
        case nodes.Lookup():
            return Lookup(memory, _one(node), relations[node.relation], node.kind, node.keys, node.condition)
        case nodes.MultiJoin():
            plan = node.plan
            lazily, purge = (plan.tau, plan.buckets), node.purge_interval
            edges = memory, node.buffers
            return MultiJoin(*edges, plan.graph, plan.columns, plan.orders, *lazily, plan.figures, plan, purge)
        case nodes.NrrJoin():
            return NrrJoin(memory, _two(node), node.kind, node.keys, node.condition)
        case nodes.Over():
            return Over(memory, _one(node), node.partition, node.ties, node.calls)
        case nodes.Project():
            return Project(memory, _one(node), node.expressions)
        case nodes.Sample():
            return Sample(memory, _one(node), node.slide)
        case nodes.ScalarComparison():
            return ScalarComparison(memory, _two(node), node.function, node.value, node.scalar)
        case nodes.SemiJoin():
            return SemiJoin(memory, _two(node), node.keys, node.anti, node.ends)
        case nodes.Final():
            return Final(memory, _one(node))
        case nodes.Sessions():
            return Sessions(memory, _one(node), node.keys, node.time, node.gap, node.closes, node.emits, node.gaps)
        case nodes.SetOperation():
            return SetOperation(memory, node.buffers, node.mode)
        case nodes.TopK():
            return TopK(memory, _one(node), node.order, node.limit, node.offset, node.by, node.ranked)
        case nodes.Union():
            return Union(memory, node.buffers)
        case nodes.Updates():
            return Updates(memory, _one(node), node.key)


def _one(node: nodes.Operation) -> tuple[Edge]:
    (edge,) = node.buffers
    return (edge,)


def _two(node: nodes.Operation) -> tuple[Edge, Edge]:
    left, right = node.buffers
    return left, right
