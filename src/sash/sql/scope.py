"""The names that an expression may use, and the columns that they refer to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sash.errors import UnknownNameError, UnsupportedSqlError
from sash.plan.expressions import Column, Expression, columns_of, remap
from sash.plan.nodes import Node, Project
from sash.sql.source import SqlText, did_you_mean, listed


@dataclass(frozen=True)
class Entry:
    """A named column of FROM; a hidden one (merged by USING) is only found by its qualified name."""

    qualifier: str | None
    name: str
    expression: Expression
    hidden: bool = False

    def answers_to(self, name: str, qualifier: str | None) -> bool:
        """Whether `qualifier.name` refers to the entry."""
        if self.name.lower() != name.lower():
            return False
        if qualifier is None:
            return not self.hidden
        return self.qualifier is not None and self.qualifier.lower() == qualifier.lower()


@dataclass(frozen=True)
class NotCarried:
    """A column of a source that no query can use, because of its type."""

    qualifier: str | None
    name: str
    dtype: str


@dataclass(frozen=True)
class Scope:
    """The columns of a FROM clause, left to right, and those of its sources that are not carried."""

    entries: tuple[Entry, ...]
    not_carried: tuple[NotCarried, ...] = ()

    @classmethod
    def of(cls, node: Node, qualifier: str | None, not_carried: Mapping[str, str] | None = None) -> Scope:
        """All columns of a node, under one qualifier; `not_carried` has the types of its source's other columns."""
        return cls(
            tuple(Entry(qualifier, f.name, column) for f, column in zip(node.schema, _columns(node), strict=True)),
            tuple(NotCarried(qualifier, name, dtype) for name, dtype in (not_carried or {}).items()),
        )

    def shifted(self, by: int) -> Scope:
        """The same names for columns shifted to the right."""
        moved = tuple(replace(entry, expression=shift(entry.expression, by)) for entry in self.entries)
        return Scope(moved, self.not_carried)

    def beside(self, right: Scope, by: int) -> Scope:
        """The names of a join, whose right side is shifted to the right."""
        return Scope(self.entries + right.shifted(by).entries, self.not_carried + right.not_carried)

    def find(self, name: str, qualifier: str | None) -> list[Entry]:
        """The entries that the name may refer to."""
        return [entry for entry in self._by_name.get(name.lower(), ()) if entry.answers_to(name, qualifier)]

    @cached_property
    def _by_name(self) -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {}
        for entry in self.entries:
            found.setdefault(entry.name.lower(), []).append(entry)
        return found

    def resolve(self, source: SqlText, node: exp.Column) -> Expression:
        """The column that the node names; unknown and ambiguous names are errors."""
        found = self.lookup(source, node)
        if found is not None:
            return found
        name, qualifier = node.name, node.table or None
        self._refuse_not_carried(source, qualifier, node, name)
        qualifiers = {entry.qualifier for entry in self.entries if entry.qualifier is not None}
        if qualifier is not None and qualifier.lower() not in {known.lower() for known in qualifiers}:
            self._refuse_not_carried(source, None, node, qualifier)  # the field of a struct
            hint = did_you_mean(qualifier, qualifiers)
            raise source.error(UnknownNameError, f"there is no {qualifier} in this FROM clause{hint}", node)
        within = [entry.name for entry in self.entries if qualifier is None or entry.answers_to(entry.name, qualifier)]
        hint = did_you_mean(name, within) or (f"; there are {listed(within)}" if within else ": there is no FROM")
        written = f"{qualifier}.{name}" if qualifier else name
        raise source.error(UnknownNameError, f"there is no column {written}{hint}", node)

    def lookup(self, source: SqlText, node: exp.Column) -> Expression | None:
        """The column that the node names, or None; an ambiguous name is an error."""
        if node.args.get("db") or node.args.get("catalog"):
            raise source.error(UnsupportedSqlError, f"a column is written name or table.name, not {node.sql()}", node)
        found = self.find(node.name, node.table or None)
        if len({entry.expression for entry in found}) > 1:
            owners = {f"{entry.qualifier}.{entry.name}": None for entry in found if entry.qualifier}
            raise source.error(
                UnknownNameError,
                f"the column {node.name} is ambiguous: "
                + (listed(owners) if len(owners) > 1 else "give the columns of this name different names with AS"),
                node,
            )
        return found[0].expression if found else None

    def has(self, qualifier: str) -> bool:
        """Whether there is a column with this qualifier."""
        return any(
            entry.qualifier is not None and entry.qualifier.lower() == qualifier.lower() for entry in self.entries
        )

    def star(self, source: SqlText, qualifier: str | None, node: exp.Expr) -> list[Entry]:
        """The columns that `*` or `qualifier.*` stands for; an error if one of them is not carried."""
        self._refuse_not_carried(source, qualifier, node)
        if qualifier is None:
            return [entry for entry in self.entries if not entry.hidden]
        found = [entry for entry in self.entries if entry.answers_to(entry.name, qualifier)]
        if not found:
            known = {entry.qualifier for entry in self.entries if entry.qualifier is not None}
            hint = did_you_mean(qualifier, known)
            raise source.error(UnknownNameError, f"there is no {qualifier} in this FROM clause{hint}", node)
        return found

    def _refuse_not_carried(
        self, source: SqlText, qualifier: str | None, node: exp.Expr, name: str | None = None
    ) -> None:
        """Raise an error for the first column of that name, or of any, that is not carried."""
        for column in self.not_carried:
            if qualifier is not None and (column.qualifier or "").lower() != qualifier.lower():
                continue
            if name is None or column.name.lower() == name.lower():
                what = "name the columns you need" if name is None else "select a part of it, or cast it, in the source"
                problem = f"the column {column.name} {column.dtype} is not carried; {what}"
                raise source.error(UnsupportedSqlError, problem, node)


def without(source: SqlText, excluded: Sequence[exp.Expr], entries: list[Entry]) -> list[Entry]:
    """The columns of `* EXCEPT (...)`, all of whose names must be among them."""
    for column in excluded:
        qualifier = column.text("table") or None
        found = [entry for entry in entries if entry.answers_to(column.name, qualifier)]
        if not found:
            hint = did_you_mean(column.name, [entry.name for entry in entries])
            raise source.error(UnknownNameError, f"* has no column {column.name} to leave out{hint}", column)
        entries = [entry for entry in entries if entry not in found]
    return entries


def _columns(node: Node) -> list[Column]:
    """The columns of a node; a column that it has twice under one name is not ambiguous, and means the first."""
    columns = [Column(i, field.name, field.dtype) for i, field in enumerate(node.schema)]
    if isinstance(node, Project):
        first: dict[tuple[str, Expression], int] = {}
        for position, (name, made) in enumerate(zip(node.names, node.expressions, strict=True)):
            if isinstance(made, Column):
                columns[position] = columns[first.setdefault((name.lower(), made), position)]
    return columns


def shift(expression: Expression, by: int) -> Expression:
    """The expression over columns that moved `by` positions to the right."""
    return remap(expression, {index: index + by for index in columns_of(expression)})
