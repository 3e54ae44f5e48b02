"""Trees of expressions of any shape: hashed, compared, pickled and folded without recursion, and bounded in depth and size.

`a + b + c + ...` is a tree as deep as it has terms, so a function that calls itself for every level would run out of
stack. Everything that descends an expression uses `fold`, `walk` or `rewrite` instead, and an expression that is too deep
or too large for this is refused when it is made.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from sash.errors import UnsupportedSqlError

if TYPE_CHECKING:
    from sash.plan.expressions import Expression

Result = TypeVar("Result")

MOST_LEVELS = 1_000
"""The deepest expression, in operators and functions; one that is evaluated on some rows only counts as `LAZY_LEVELS`."""
LAZY_LEVELS = 10
MOST_PARTS = 200_000
"""The largest expression, in operators, functions, columns and constants."""


class Compound(ABC):
    """An expression with subexpressions. A subclass is a frozen dataclass without its own equality."""

    levels: int
    parts: int
    known_hash: int | None = None

    @property
    def laziness(self) -> int:
        """The levels that the expression itself counts for."""
        return 1

    @property
    @abstractmethod
    def children(self) -> tuple[Expression, ...]:
        """The direct subexpressions."""

    @property
    @abstractmethod
    def own(self) -> tuple[Any, ...]:
        """Everything but the subexpressions; with them, it makes the expression (see `made`)."""

    @classmethod
    @abstractmethod
    def made(cls, own: tuple[Any, ...], children: tuple[Expression, ...]) -> Self:
        """The expression with these fields and subexpressions."""

    def over(self, children: tuple[Expression, ...]) -> Self:
        """The same expression over other subexpressions."""
        return self.made(self.own, children)

    def __post_init__(self) -> None:
        levels, parts = 0, 1
        for child in self.children:
            if isinstance(child, Compound):
                levels, parts = max(levels, child.levels), parts + child.parts
            else:
                parts += 1
        levels += self.laziness
        if levels > MOST_LEVELS:
            raise UnsupportedSqlError(
                f"an expression is nested more than {MOST_LEVELS:,} levels deep (CASE, COALESCE, AND and OR count as "
                f"{LAZY_LEVELS}): split it, with a subquery for each part"
            )
        if parts > MOST_PARTS:
            raise UnsupportedSqlError(f"an expression has more than {MOST_PARTS:,} parts: split the query")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "parts", parts)

    def __hash__(self) -> int:
        if self.known_hash is None:
            for part in postorder(self):
                if isinstance(part, Compound) and part.known_hash is None:
                    value = hash((type(part), part.own, tuple(map(hash, part.children))))
                    object.__setattr__(part, "known_hash", value)
        assert self.known_hash is not None
        return self.known_hash

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        pairs: list[tuple[Any, Any]] = [(self, other)]
        while pairs:
            one, two = pairs.pop()
            if one is two:
                continue
            if not isinstance(one, Compound) or not isinstance(two, Compound):
                if one != two:
                    return False
                continue
            if type(one) is not type(two) or one.parts != two.parts or one.own != two.own:
                return False
            if one.known_hash != two.known_hash and one.known_hash is not None and two.known_hash is not None:
                return False
            if len(one.children) != len(two.children):
                return False
            pairs.extend(zip(one.children, two.children, strict=True))
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        places: dict[int, int] = {}
        steps: list[Any] = []
        for part in postorder(self):
            if id(part) not in places:
                places[id(part)] = len(steps)
                if isinstance(part, Compound):
                    steps.append((type(part), part.own, tuple(places[id(child)] for child in part.children)))
                else:
                    steps.append(part)
        return _restored, (tuple(steps),)


def _restored(steps: Sequence[Any]) -> Expression:
    """The expression that was pickled as a list of its parts, each after its subexpressions."""
    made: list[Expression] = []
    for step in steps:
        if isinstance(step, tuple):
            kind, own, places = step
            made.append(kind.made(own, tuple(made[place] for place in places)))
        else:
            made.append(step)
    return made[-1]


def children(expression: Expression) -> tuple[Expression, ...]:
    """The direct subexpressions."""
    return expression.children if isinstance(expression, Compound) else ()


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything below it, top down, left to right."""
    pending = [expression]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(reversed(children(part)))


def postorder(expression: Any) -> list[Expression]:
    """The expression and everything below it, subexpressions first, left to right."""
    found: list[Expression] = []
    pending = [expression]
    while pending:
        part = pending.pop()
        found.append(part)
        pending.extend(children(part))
    found.reverse()
    return found


def fold(expression: Expression, combine: Callable[[Expression, list[Result]], Result]) -> Result:
    """What `combine` makes of the expression and of the results of its subexpressions."""
    results: list[Result] = []
    for part in postorder(expression):
        count = len(children(part))
        inner = results[len(results) - count :]
        del results[len(results) - count :]
        results.append(combine(part, inner))
    return results[-1]


def rewrite(expression: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with `change` applied top down; where it returns None, the subexpressions are rewritten."""
    results: list[Expression] = []
    pending: list[tuple[Expression, bool]] = [(expression, False)]
    while pending:
        part, below_is_done = pending.pop()
        inner = children(part)
        if below_is_done:
            made = tuple(results[len(results) - len(inner) :])
            del results[len(results) - len(inner) :]
            same = all(new is old for new, old in zip(made, inner, strict=True))
            assert isinstance(part, Compound)
            results.append(part if same else part.over(made))
            continue
        changed = change(part)
        if changed is not None or not inner:
            results.append(part if changed is None else changed)
        else:
            pending.append((part, True))
            pending.extend((child, False) for child in reversed(inner))
    return results[-1]


def balanced(parts: Sequence[Result], combine: Callable[[Result, Result], Result]) -> Result:
    """All parts combined in order by an associative function, as a tree of the least depth; there is at least one part."""
    if len(parts) == 1:
        return parts[0]
    middle = (len(parts) + 1) // 2
    return combine(balanced(parts[:middle], combine), balanced(parts[middle:], combine))
