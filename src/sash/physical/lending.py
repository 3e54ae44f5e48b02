"""Where a join needs no copy of its input: DISTINCT keeps every value that it gives, and lets the join read it there.

Paper 5, 5.4.2: the state of a DISTINCT below a join is the join's input. A value stands in one place from when it comes
until the whole stage has heard that it is gone, so the place is all that the join keeps of it.
"""

from __future__ import annotations

from sash.physical.nodes import Operation, Physical
from sash.physical.strategies.base import Strategy


def lends(strategy: Strategy, node: Operation, child: Physical) -> bool:
    """Whether the operator reads the rows of this input where they are kept below it; both must run at one clock."""
    return (
        strategy.speaking
        and node.operator == "Join"
        and isinstance(child, Operation)
        and child.operator == "Distinct"
        and bool(child.arguments.get("retracting"))
    )
