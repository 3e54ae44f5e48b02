"""Facts about every kind of operator, each a match over all of them without a default: mypy names what a new one forgot."""

from __future__ import annotations

from sash.operators.base import Expiry
from sash.physical.nodes import (
    Aggregate,
    Combine,
    CountWindow,
    Distinct,
    ExceptAll,
    Expire,
    Filter,
    Join,
    Leaf,
    Lookup,
    MultiJoin,
    NrrJoin,
    Operation,
    Physical,
    Project,
    Sample,
    SemiJoin,
    SetOperation,
    TopK,
    Union,
    Updates,
)


def is_stateless(node: Operation) -> bool:
    """Whether the operator keeps nothing from one batch to the next."""
    match node:
        case Combine() | Filter() | Lookup() | Project() | Union():
            return True
        case (
            Aggregate() | CountWindow() | Distinct() | ExceptAll() | Expire() | Join() | MultiJoin() | NrrJoin()
            | Sample() | SemiJoin() | SetOperation() | TopK() | Updates()
        ):  # fmt: skip
            return False


def passes_rows(node: Operation) -> bool:
    """Whether every output row is made of one input row and lives as long as that row."""
    match node:
        case Filter() | Lookup() | Project() | Union():
            return True
        case (
            Aggregate() | Combine() | CountWindow() | Distinct() | ExceptAll() | Expire() | Join() | MultiJoin()
            | NrrJoin() | Sample() | SemiJoin() | SetOperation() | TopK() | Updates()
        ):  # fmt: skip
            return False


def must_expire(node: Operation) -> bool:
    """Whether the expiration of an input row may change the operator's output at that instant (paper 3).

    The output of aggregates, DISTINCT, EXCEPT, INTERSECT, semi and anti joins, top-k, Expire and Sample changes with time
    alone. Results of selections, projections, unions and joins carry an expiration time of their own; but a join of a
    stamped and an explicit input is explicit and retracts its results itself.
    """
    match node:
        case (
            Aggregate() | Distinct() | ExceptAll() | Expire() | Sample() | SemiJoin() | SetOperation() | TopK()
        ):  # fmt: skip
            return True
        case (
            Combine() | CountWindow() | Filter() | Join() | Lookup() | MultiJoin() | NrrJoin() | Project() | Union()
            | Updates()
        ):  # fmt: skip
            return node.expiry == "explicit" and any(expires_silently(child) for child in node.inputs)


def expires_silently(node: Physical) -> bool:
    """Whether rows of the edge may expire without a retraction."""
    return node.expiry in ("fifo", "calendar", "strict")


def retracts_early(node: Operation) -> bool:
    """Whether premature expirations begin here: output rows may end before the rows that they are made of."""
    match node:
        case CountWindow() | ExceptAll() | SemiJoin() | SetOperation():
            return True
        case (
            Aggregate() | Combine() | Distinct() | Expire() | Filter() | Join() | Lookup() | MultiJoin() | NrrJoin()
            | Project() | Sample() | TopK() | Union() | Updates()
        ):  # fmt: skip
            return False


def is_join(node: Operation) -> bool:
    """Whether the operator joins its input with another or with a table."""
    match node:
        case Join() | Lookup() | MultiJoin() | NrrJoin() | SemiJoin():
            return True
        case (
            Aggregate() | Combine() | CountWindow() | Distinct() | ExceptAll() | Expire() | Filter() | Project()
            | Sample() | SetOperation() | TopK() | Union() | Updates()
        ):  # fmt: skip
            return False


def is_repeatable(node: Physical) -> bool:
    """Whether the times at which rows leave the node follow from its live input rows alone.

    What a row gets from a non-retroactive relation depends on when it arrives. A GROUP BY's row, or a DISTINCT's, may have
    been output when a row that is gone since arrived or expired: a stage rebuilt from its live rows would output it at
    another time.
    """
    match node:
        case Leaf():
            return True
        case (
            Combine() | Expire() | Filter() | Join() | Lookup() | NrrJoin() | Project() | Sample() | Union()
        ):  # fmt: skip
            return all(map(is_repeatable, node.inputs))
        case (
            Aggregate() | CountWindow() | Distinct() | ExceptAll() | MultiJoin() | SemiJoin() | SetOperation() | TopK()
            | Updates()
        ):  # fmt: skip
            return False


def is_light(node: Operation) -> bool:
    """Whether one shard can run the operator at the rate of many: millions of rows a second."""
    match node:
        case Distinct() | Expire() | Updates():
            return True
        case (
            Aggregate() | Combine() | CountWindow() | ExceptAll() | Filter() | Join() | Lookup() | MultiJoin()
            | NrrJoin() | Project() | Sample() | SemiJoin() | SetOperation() | TopK() | Union()
        ):  # fmt: skip
            return is_stateless(node)


def endless_input(node: Operation) -> Expiry:
    """The kind of edge as which the operator takes an input whose rows never expire."""
    match node:
        case Distinct() | Expire() | Join() | MultiJoin() | NrrJoin():
            return "fifo"
        case Union():
            return "calendar"
        case (
            Aggregate() | Combine() | CountWindow() | ExceptAll() | Filter() | Lookup() | Project() | Sample()
            | SemiJoin() | SetOperation() | TopK() | Updates()
        ):  # fmt: skip
            return "explicit"
