"""Names of state: texts of expressions, parts of logical plans and operators, equal for things that compute the same, by the
same steps.

Logs and stages are named by digests of them (see `channels.py`), so they do not contain aliases, estimates, or positions
among other queries. Columns of a stream are written by name, so that a new column that nobody reads changes nothing; all
others by position. (Which subplans of a job are equal is another question: see `plan/canonical.py`.)
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pyarrow as pa

from sash.physical.join_plan import JoinPlan
from sash.physical.nodes import Leaf, Operation
from sash.plan.compound import fold
from sash.plan.expressions import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Lambda,
    Literal,
    SparkFunction,
    UserCall,
    Variable,
)
from sash.plan.nodes import Expand, Project, Relation, Stream

_ESTIMATES = frozenset({"expected", "statistics", "output", "inputs", "ends", "rows", "purge_interval"})
_ESTIMATES_OF_JOINS = frozenset({"names", "figures", "order", "orders", "cost", "considered", "bursts"})
_LAYOUT = "buffers"
_DETAIL = frozenset({"detail", "by", "gaps", "ranked"})
"""Fields that are written only where they have a value, since state is named by texts of times without them."""
_FLAGS = frozenset({"emits"})
"""Likewise, flags that are written only where they are set."""


def digest(text: str) -> str:
    """A short name for such a text.

    >>> digest("sales")
    'e04eb29020ea'
    """
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def expression_text(expression: Expression, names: Sequence[str] | None = None) -> str:
    """The text of an expression, with columns by these names, or by position.

    >>> from sash.plan.expressions import Call
    >>> expression_text(Call("gt", (Column(0, "p", pa.int32()), Literal(4, pa.int32())), pa.bool_()), ["price"])
    'gt(price:int32,4:int32):bool'
    """

    def written(part: Expression, inner: list[str]) -> str:
        match part:
            case Column():
                return f"{f'#{part.index}' if names is None else names[part.index]}:{part.dtype}"
            case Literal():
                return f"{part.value!r}:{part.dtype}"
            case UserCall():
                return f"{part.code}({','.join(inner)}):{part.dtype}"
            case Cast():
                return f"{'try_cast' if part.lenient else 'cast'}({inner[0]}):{part.dtype}"
            case Case():
                return f"case{len(part.branches)}({','.join(inner)}):{part.dtype}"
            case Variable():
                return f"@{part.number}:{part.dtype}"
            case Lambda():
                return f"lambda({','.join(f'@{each.number}:{each.dtype}' for each in part.variables)},{inner[0]})"
            case _:
                name, dtype = part.own
                return f"{name}({','.join(inner)}):{dtype}"

    return fold(expression, written)


def value_text(value: Any, *, layout: bool = False) -> str:
    """The text of a part of a plan: a dataclass, an expression, a sequence, or a plain value.

    With `layout`, the configuration of buffers is in it, on which the arrays of a snapshot depend.
    """
    match value:
        case Column() | Literal() | Call() | Cast() | Case() | SparkFunction() | Variable() | Lambda():
            return expression_text(value)
        case pa.DataType():
            return str(value)
        case Stream():
            return f"Stream({[str(field.dtype) for field in value.schema]})"
        case Relation():
            named = [f"{field.name}:{field.dtype}" for field in value.schema]
            flags = [value.retroactive, value.changes, value.waits, value.timed]
            return f"Relation({value.name.lower()},{named},{value.key},{flags})"
        case tuple() | list():
            return f"({','.join(value_text(part, layout=layout) for part in value)})"
        case set() | frozenset():
            return f"{{{','.join(sorted(value_text(part, layout=layout) for part in value))}}}"
        case dict():
            return f"{{{','.join(sorted(f'{k}:{value_text(v, layout=layout)}' for k, v in value.items()))}}}"
    if is_dataclass(value):
        skipped = _ESTIMATES if not isinstance(value, JoinPlan) else _ESTIMATES_OF_JOINS
        parts = [
            f"{part.name}={value_text(getattr(value, part.name), layout=layout)}"
            for part in fields(value)
            if part.compare
            and part.name not in skipped
            and not (isinstance(value, Project | Expand) and part.name == "names")
            and (layout or part.name != _LAYOUT)
            and not (part.name in _DETAIL and getattr(value, part.name) in (None, (), ""))
            and not (part.name in _FLAGS and not getattr(value, part.name))
        ]
        return f"{type(value).__name__}({','.join(parts)})"
    return repr(value)


def tree_text(root: Operation | Leaf, leaves: dict[int, str], *, layout: bool = False) -> str:
    """The text of a tree of operators over leaves with these texts (by identity). A shared operator is written once."""
    numbers: dict[int, int] = {}
    written: list[str] = []

    def number(node: Operation | Leaf) -> int:
        if id(node) not in numbers:
            below = [number(child) for child in node.inputs]
            own = leaves[id(node)] if isinstance(node, Leaf) else value_text(node, layout=layout)
            written.append(f"{own}{below}")
            numbers[id(node)] = len(written) - 1
        return numbers[id(node)]

    number(root)
    return ";".join(written)
