"""Which class runs each operator of a physical plan."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sash.operators.aggregate import Aggregate
from sash.operators.base import Edge, Expiry, Operator
from sash.operators.combine import Combine
from sash.operators.count_window import CountWindow
from sash.operators.distinct import Distinct
from sash.operators.except_all import ExceptAll
from sash.operators.expire import Expire
from sash.operators.filter import Filter
from sash.operators.join import Join
from sash.operators.lookup import Lookup
from sash.operators.multi_join import MultiJoin
from sash.operators.nrr_join import NrrJoin
from sash.operators.project import Project
from sash.operators.sample import Sample
from sash.operators.semi_join import SemiJoin
from sash.operators.set_operation import SetOperation
from sash.operators.top_k import TopK
from sash.operators.union import Union
from sash.operators.updates import Updates
from sash.physical.nodes import Operation, calendar_of, edge, partitions_of
from sash.plan.nodes import Node
from sash.state.memory import Memory
from sash.state.rows import RowStore

OPERATORS: Mapping[str, Any] = {
    "Aggregate": Aggregate,
    "Combine": Combine,
    "CountWindow": CountWindow,
    "Distinct": Distinct,
    "ExceptAll": ExceptAll,
    "Expire": Expire,
    "Filter": Filter,
    "Join": Join,
    "Lookup": Lookup,
    "MultiJoin": MultiJoin,
    "NrrJoin": NrrJoin,
    "Project": Project,
    "Sample": Sample,
    "SemiJoin": SemiJoin,
    "SetOperation": SetOperation,
    "TopK": TopK,
    "Union": Union,
    "Updates": Updates,
}

_NEVER: Mapping[str, Expiry] = {
    "Distinct": "fifo",
    "Expire": "fifo",
    "Join": "fifo",
    "MultiJoin": "fifo",
    "NrrJoin": "fifo",
    "Union": "calendar",
}
"""How an operator takes rows that never expire, where not as an explicit edge that says no `-`."""

Relations = Mapping[Node, pa.Table]
"""The contents of the relations that a plan looks up."""


def build(
    node: Operation,
    memory: Memory,
    relations: Relations,
    partitions: int | None,
    shared: tuple[RowStore | None, ...] = (),
) -> Operator:
    """The operator, attached to its state; `partitions` is how many calendars have, if that was said, `shared` are rows of
    its inputs that it may read where they are kept."""
    never = _NEVER.get(node.operator, "explicit")
    inputs: tuple[Edge, ...] = tuple(
        edge(child, never, partitions_of(calendar_of(node, child), partitions)) for child in node.inputs
    )
    arguments = dict(node.arguments["plan"].arguments if node.operator == "MultiJoin" else node.arguments)
    if node.operator == "Lookup":
        arguments["table"] = relations[arguments.pop("relation")]
    if any(store is not None for store in shared):
        arguments["shared"] = shared
    operator: Operator = OPERATORS[node.operator](memory, inputs, **arguments)
    return operator
