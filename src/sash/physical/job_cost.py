"""Estimated cost of the plan of a job, with what its stages send to each other, in steps per second (`plan_cost.py`).

Operators of one stage hand rows over in memory. A stage that reads another one has a log of its own of the rows that it
gets, and those for other shards go through Spark's shuffle as well.
"""

from __future__ import annotations

from sash.physical.channels import StageRows
from sash.physical.nodes import Leaf, PhysicalPlan, operations
from sash.physical.plan_channels import channels_of

_LOGGED, _SENT = 10.0, 30.0
"""Steps to write a row to a log and, with that, to send it to another shard.

A step is about 30 ns. Encoding, compressing, storing and later decoding a row of three columns takes some 0.3 microseconds;
a shuffle between two Python workers about twice as long again.
"""


def job_cost(plan: PhysicalPlan) -> float:
    """The cost of all operators, and of the rows that pass between stages."""
    cost = 0.0
    for stage in plan.stages:
        cost += sum(one.expected.cost for one in operations(stage.root) if one.expected is not None)
    for channel in channels_of(plan, share=True).channels:
        if isinstance(channel.source, StageRows):
            root = plan.stages[channel.source.stage].root
            changes = 2 if channel.kind == "explicit" else 1
            rate = 0.0 if isinstance(root, Leaf) or root.expected is None else root.expected.rate
            cost += changes * rate * (_LOGGED if channel.source.local else _SENT)
    return cost
