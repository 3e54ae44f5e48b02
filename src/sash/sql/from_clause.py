"""FROM: streams with their windows, relations, subqueries, and the joins between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sash.errors import UnknownNameError, UnsupportedSqlError, WindowError
from sash.plan.catalog import Catalog
from sash.plan.expressions import Column, Expression, conjuncts
from sash.plan.nodes import (
    ONE_ROW,
    Filter,
    JoinKind,
    Node,
    Project,
    Range,
    Relation,
    Rows,
    Stream,
    Unbounded,
    Undeclared,
    Window,
)
from sash.plan.types import Schema
from sash.sql.constants import bind_values
from sash.sql.correlation import OuterScope, Scopes
from sash.sql.dialect import ASSIGNMENT, WindowClause
from sash.sql.expressions import ExpressionBinder
from sash.sql.functions import call
from sash.sql.generators import bind_generator, bind_range, entries_of, generator_name
from sash.sql.joins import Branch, Tree, build, width
from sash.sql.lateral import join_on, lateral_join
from sash.sql.pivot import bind_pivot, unpivot
from sash.sql.scope import Entry, Scope
from sash.sql.source import SqlText, did_you_mean
from sash.sql.spark_functions import SparkFunctions
from sash.sql.subqueries import Subqueries, has_subquery
from sash.sql.time_windows import bind_assignment
from sash.sql.words import word_of

_KINDS: dict[tuple[str, str], JoinKind] = {
    ("", ""): "inner",
    ("", "INNER"): "inner",
    ("", "CROSS"): "inner",
    ("LEFT", ""): "left",
    ("LEFT", "OUTER"): "left",
    ("RIGHT", ""): "right",
    ("RIGHT", "OUTER"): "right",
    ("FULL", ""): "full",
    ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi",
    ("", "SEMI"): "semi",
    ("LEFT", "ANTI"): "anti",
    ("", "ANTI"): "anti",
}

_CONSTRUCTS: dict[type[exp.Expr], str] = {
    exp.Lateral: "LATERAL",
    exp.Unnest: "UNNEST",
    exp.Anonymous: "table functions",
    exp.TableFromRows: "table functions",
}

Bound = tuple[Tree, Scope]


@dataclass(frozen=True)
class FromBinder:
    """Binds the FROM clause of one SELECT; `query` binds subqueries, `ctes` are the bound queries of WITH.

    `over` binds a query over other tables, too.
    """

    source: SqlText
    catalog: Catalog
    window: Window | None
    ctes: Mapping[str, Node]
    query: Callable[[exp.Expr], Node]
    nested: Callable[[exp.Expr, Scopes], Node]
    over: Callable[[Mapping[str, Node], exp.Expr], Node]
    around: Scopes = ()

    def subqueries(self, scope: Scope) -> Subqueries:
        """The collection of subqueries in expressions over these names."""
        return Subqueries(self.source, self.nested, self.around, OuterScope(len(self.around), scope))

    @property
    def nothing(self) -> Bound:
        """What a SELECT without FROM reads: one row without names."""
        return ONE_ROW, Scope(())

    def bind(self, first: exp.Expr, joins: list[exp.Expr]) -> Bound:
        """The join tree and the scope of its names."""
        tree, scope = self._factor(first)
        for join in joins:
            tree, scope = self._join(tree, scope, join)
        return tree, scope

    def _factor(self, node: exp.Expr) -> Bound:
        if isinstance(node, exp.Table):
            return self._table(node)
        if isinstance(node, exp.Subquery):
            joins = node.args.get("joins") or []
            if isinstance(node.this, exp.Table) or (
                isinstance(node.this, exp.Subquery) and node.this.args.get("joins")
            ):
                self.source.refuse_all_but(node, "this", "joins", "alias")
                return self._parenthesised(self.bind(node.this, joins), node)
            if joins:
                self.source.refuse_all_but(node, "this", "joins", "alias")
                return self.bind(exp.Subquery(this=node.this, alias=node.args.get("alias")), joins)
            return self._subquery(node)
        if isinstance(node, exp.Values):
            self.source.refuse_all_but(node, "expressions", "alias")
            return self._named(bind_values(self.source, self.catalog, node), node.args.get("alias"), None)
        if isinstance(node, exp.Lateral) and _is_table_function(node.this):
            return self._function(exp.Table(this=node.this, alias=node.args.get("alias")))
        if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            self.source.refuse_all_but(node, "this", "alias")
            return self._named(self.query(node.this), node.args.get("alias"), None)
        construct = next((name for kind, name in _CONSTRUCTS.items() if isinstance(node, kind)), word_of(node))
        raise self.source.error(UnsupportedSqlError, f"Sash does not run {construct}", node)

    def _parenthesised(self, bound: Bound, node: exp.Expr) -> Bound:
        """A join in parentheses; under an alias, its columns have that qualifier alone."""
        alias = node.args.get("alias")
        if alias is None:
            return bound
        tree, scope = bound
        entries = scope.star(self.source, None, node)
        names = tuple(entry.name for entry in entries)
        return self._named(Project(build(tree), names, tuple(entry.expression for entry in entries)), alias, None)

    def _table(self, node: exp.Table) -> Bound:
        self.source.refuse_all_but(node, "this", "alias", "db", "catalog", "joins", "pivots")
        if node.meta.get(ASSIGNMENT):
            return self._assigned(node)
        if _is_table_function(node.this):
            return self._function(node)
        if not isinstance(node.this, exp.Identifier):
            raise self.source.error(
                UnsupportedSqlError, f"Sash does not run {_CONSTRUCTS[exp.Anonymous]} in FROM", node
            )
        if node.args.get("db") or node.args.get("catalog"):
            raise self.source.error(
                UnknownNameError,
                f"the name of a stream or relation must be a single identifier, not {node.sql(dialect='spark')}",
                node,
            )
        alias = node.args.get("alias")
        clause = node.meta.get("window")
        if alias is not None and alias.meta.get("window") is not None:
            if clause is not None:
                raise self.source.error(WindowError, f"{node.name} has two windows", alias.meta["window"].start)
            clause = alias.meta["window"]
        hidden = {} if node.name.lower() in self.ctes else self.catalog.not_carried.get(node.name.lower(), {})
        bound: Bound = self._pivoted(node, self._named(self._leaf(node, clause), alias, node.name, hidden))
        joins = node.args.get("joins") or []
        for join in joins:
            bound = self._join(*bound, join)
        return bound

    def _function(self, node: exp.Table) -> Bound:
        """A generator of constants, or RANGE, as a table."""
        binder = self._binder(ONE_ROW, Scope(()))
        if node.this.name.lower() == "range":
            made = bind_range(binder, node.this)
        else:
            generator = bind_generator(binder, node.this)
            below, outputs = generator.over(ONE_ROW)
            made = Project(below, generator.names, tuple(outputs))
        bound: Bound = self._named(made, node.args.get("alias"), None)
        for join in node.args.get("joins") or []:
            bound = self._join(*bound, join)
        return bound

    def _binder(self, node: Node, scope: Scope) -> ExpressionBinder:
        """Binds the arguments of generators, over the columns of a node."""
        functions = SparkFunctions(self.source, self.catalog.spark_type, node, self.catalog.user)
        return ExpressionBinder(self.source, scope, functions, "a generator", around=self.around)

    def generated(self, tree: Tree, scope: Scope, lateral: exp.Expr, outer: bool = False) -> Bound:
        """LATERAL VIEW, or the join with a LATERAL generator: its columns after those of the tree."""
        self.source.refuse_all_but(lateral, "this", "alias", "view", "outer", "ordinality")
        self._refuse_other_functions(lateral)
        below = build(tree)
        generator = bind_generator(self._binder(below, scope), lateral.this, outer or bool(lateral.args.get("outer")))
        node, outputs = generator.over(below)
        entries = entries_of(self.source, generator, outputs, lateral.args.get("alias"), lateral)
        return node, replace(scope, entries=(*scope.entries, *entries))

    def _refuse_other_functions(self, lateral: exp.Expr) -> None:
        if generator_name(lateral.this) is None:
            raise self.source.error(
                UnsupportedSqlError, f"Sash does not run LATERAL with {lateral.this.sql(dialect='spark')}", lateral
            )

    def _assigned(self, node: exp.Table) -> Bound:
        """TUMBLE, HOP or CUMULATE: the rows of a table once per window, with the windows' bounds as columns."""
        tree, scope = self._factor(node.this.expressions[0])
        bound: Bound = self._named(
            bind_assignment(self.source, node.this, build(tree), scope), node.args.get("alias"), None
        )
        for join in node.args.get("joins") or []:
            bound = self._join(*bound, join)
        return bound

    def _leaf(self, node: exp.Table, clause: WindowClause | None) -> Node:
        name = node.name.lower()
        if name in self.ctes:
            self._no_window(clause, f"{node.name} is a subquery")
            return self.ctes[name]
        if entry := self.catalog.streams.get(name):
            names = [f.name.lower() for f in entry.schema]
            window = self._window(clause, entry.schema) if clause else self.window or Undeclared()
            return Stream(
                entry.name, entry.schema, names.index(entry.time.lower()), window, entry.statistics, entry.endless
            )
        if relation := self.catalog.relations.get(name):
            self._no_window(clause, f"{node.name} is a relation")
            return Relation(**vars(relation))
        known = [*self.catalog.streams, *self.catalog.relations, *self.ctes]
        hint = did_you_mean(name, known) or (f"; there are {', '.join(known)}" if known else "; none is registered")
        raise self.source.error(UnknownNameError, f"there is no stream or relation {node.name}{hint}", node)

    def _no_window(self, clause: WindowClause | None, why: str) -> None:
        if clause is not None:
            raise self.source.error(WindowError, f"only a stream has a window, but {why}", clause.start)

    def _window(self, clause: WindowClause, schema: Schema) -> Window:
        names = [f.name.lower() for f in schema]
        for column in clause.partition:
            if column.name.lower() not in names:
                hint = did_you_mean(column.name, names)
                raise self.source.error(UnknownNameError, f"there is no column {column.name}{hint}", column)
        return window_of(clause, tuple(names.index(column.name.lower()) for column in clause.partition))

    def _subquery(self, node: exp.Subquery) -> Bound:
        self.source.refuse_all_but(node, "this", "alias", "pivots")
        alias = node.args.get("alias")
        if alias is not None:
            self._no_window(alias.meta.get("window"), f"{alias.name} is a subquery")
        return self._pivoted(node, self._named(self.query(node.this), alias, None))

    def _pivoted(self, table: exp.Expr, bound: tuple[Node, Scope]) -> tuple[Node, Scope]:
        """The table under its PIVOT and UNPIVOT clauses."""
        node, scope = bound
        for pivot in table.args.get("pivots") or []:
            if pivot.args.get("unpivot"):
                made = unpivot(self.source, node, scope, pivot)
            else:
                made = bind_pivot(self.source, node, pivot, self.over)
            node, scope = self._named(made, pivot.args.get("alias"), None)
        return node, scope

    def _named(
        self, node: Node, alias: exp.Expr | None, name: str | None, not_carried: Mapping[str, str] | None = None
    ) -> tuple[Node, Scope]:
        """The node under its alias, including the column names of `AS t(a, b)`."""
        if alias is None:
            return node, Scope.of(node, name, not_carried)
        self.source.refuse_all_but(alias, "this", "columns")
        columns = alias.args.get("columns") or []
        if columns:
            self._refuse_not_carried(
                not_carried or {}, "select the columns you need in a subquery, and name them there", columns[0]
            )
            node = renamed(self.source, node, columns)
        return node, Scope.of(node, alias.name or name, not_carried)

    def _join(self, left: Tree, scope: Scope, join: exp.Expr) -> Bound:
        self.source.refuse_all_but(join, "this", "side", "kind", "method", "on", "using", "global_")
        method = str(join.args.get("method") or "").upper()
        side, word = str(join.args.get("side") or "").upper(), str(join.args.get("kind") or "").upper()
        kind = _KINDS.get((side, word))
        if kind is None or method not in ("", "NATURAL"):
            written = " ".join(part for part in (method, side, word, "JOIN") if part)
            raise self.source.error(UnsupportedSqlError, f"Sash does not run {written}", join)
        border = width(left)
        generated = _lateral_generator(join.this)
        if generated is not None:
            return self._join_generator(left, scope, join, generated, kind)
        if isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Subquery):
            branch, right_scope = self._lateral(left, scope, join, kind)
            both, placed = Scope(scope.entries + right_scope.entries, scope.not_carried), right_scope
        else:
            right, right_scope = self._factor(join.this)
            both, placed = scope.beside(right_scope, border), right_scope.shifted(border)
            branch = Branch(left, right, kind)
        merged: list[str] = [column.name for column in join.args.get("using") or []]
        if method == "NATURAL":
            self._refuse_not_carried(_shared_not_carried(scope, right_scope), "join with ON or USING", join)
            merged = _shared(scope, right_scope)
        elif join.args.get("on") is not None:
            tree = self._on(branch, both, join.args["on"])
            return tree, scope if kind in ("semi", "anti") else both
        if merged:
            both = self._merge(branch, scope, placed, merged, join)
        if kind in ("semi", "anti"):
            return branch, scope
        return branch, both

    def _join_generator(self, left: Tree, scope: Scope, join: exp.Expr, lateral: exp.Lateral, kind: JoinKind) -> Bound:
        """JOIN LATERAL explode(...), inner or left."""
        on = join.args.get("on")
        if kind not in ("inner", "left") or join.args.get("using") or join.args.get("method"):
            raise self.source.error(
                UnsupportedSqlError,
                "LATERAL with a function takes a comma, CROSS JOIN, INNER JOIN or LEFT JOIN, and ON",
                join,
            )
        if on is None or (isinstance(on, exp.Boolean) and on.this):
            return self.generated(left, scope, lateral, outer=kind == "left")
        if kind == "inner":
            node, both = self.generated(left, scope, lateral)
            return Filter(build(node), self._binder(build(node), both).predicate(on)), both
        below = build(left)
        self._refuse_other_functions(lateral)
        generator = bind_generator(self._binder(below, scope), lateral.this)
        alias = lateral.args.get("alias")

        def condition(outputs: Sequence[Expression]) -> Expression:
            entries = entries_of(self.source, generator, outputs, alias, lateral)
            return self._binder(below, replace(scope, entries=(*scope.entries, *entries))).predicate(on)

        node, outputs = generator.where(condition).over(below)
        return node, replace(
            scope, entries=(*scope.entries, *entries_of(self.source, generator, outputs, alias, lateral))
        )

    def _on(self, branch: Branch, both: Scope, on: exp.Expr) -> Tree:
        """The join on a condition over the columns of both sides."""
        spark_functions = SparkFunctions(self.source, self.catalog.spark_type, None, self.catalog.user)
        subqueries = replace(self.subqueries(both), knows_null=branch.kind != "inner")
        binder = ExpressionBinder(self.source, both, spark_functions, "ON", around=self.around, subqueries=subqueries)
        parts = conjuncts(binder.predicate(on))
        branch.conditions.extend(part for part in parts if not has_subquery(part))
        nested = [part for part in parts if has_subquery(part)]
        return join_on(branch, subqueries, nested, on) if nested else branch

    def _lateral(self, left: Tree, scope: Scope, join: exp.Expr, kind: JoinKind) -> tuple[Branch, Scope]:
        """The join with a LATERAL subquery, and the scope of its columns in the join."""
        node, on = join.this, join.args.get("on")
        self.source.refuse_all_but(node, "this", "alias")
        own = OuterScope(len(self.around), scope)
        plan = self.nested(node.this, (*self.around, own))
        _, named = self._named(plan, node.args.get("alias"), None)
        always = on is None or (isinstance(on, exp.Boolean) and on.this)
        always = always and not join.args.get("using") and not join.args.get("method")
        branch, outputs = lateral_join(self.source, left, plan, own, kind, not always, node)
        entries = tuple(replace(e, expression=made) for e, made in zip(named.entries, outputs, strict=True))
        return branch, Scope(entries)

    def _refuse_not_carried(self, columns: Mapping[str, str], instead: str, node: exp.Expr) -> None:
        """Raise an error if there are columns that no query can use."""
        for name, dtype in columns.items():
            raise self.source.error(UnsupportedSqlError, f"the column {name} {dtype} is not carried; {instead}", node)

    def _merge(self, branch: Branch, left: Scope, right: Scope, names: list[str], join: exp.Expr) -> Scope:
        """USING: equal columns of both sides, which appear once in the output."""
        merged: list[Entry] = []
        for name in names:
            node = next((c for c in join.args.get("using") or [] if c.name == name), exp.to_identifier(name))
            column = exp.Column(this=node.copy())
            column.this.meta.update(node.meta)
            sides = [left.resolve(self.source, column), right.resolve(self.source, column)]
            branch.conditions.append(call("eq", sides))
            merged.append(Entry(None, name, _merged(branch.kind, sides)))
        lowered = {name.lower() for name in names}
        rest = [
            replace(entry, hidden=True) if entry.name.lower() in lowered and not entry.hidden else entry
            for entry in left.entries + right.entries
        ]
        return Scope((*merged, *rest), left.not_carried + right.not_carried)


def _is_table_function(node: exp.Expr) -> bool:
    """Whether the node calls a generator, or RANGE."""
    return isinstance(node, exp.Anonymous) and (generator_name(node) is not None or node.name.lower() == "range")


def _lateral_generator(node: exp.Expr) -> exp.Lateral | None:
    """LATERAL explode(...), also written as a LATERAL subquery that selects nothing but a generator; None for others."""
    if not isinstance(node, exp.Lateral):
        return None
    if isinstance(node.this, exp.Anonymous):
        return None if node.this.name.lower() == "range" else node
    select = node.this.this if isinstance(node.this, exp.Subquery) else None
    if not isinstance(select, exp.Select) or [name for name, value in select.args.items() if value] != ["expressions"]:
        return None
    (item, *others) = select.expressions
    call = item.this if isinstance(item, exp.Alias) else item
    if others or generator_name(call) is None:
        return None
    alias = node.args.get("alias")
    if isinstance(item, exp.Alias) and not (alias is not None and alias.args.get("columns")):
        alias = exp.TableAlias(this=None if alias is None else alias.this, columns=[item.args["alias"]])
    made = exp.Lateral(this=call, alias=alias)
    made.meta.update(node.meta)
    return made


def _merged(kind: JoinKind, sides: list[Expression]) -> Expression:
    if kind == "full":
        return call("coalesce", sides)
    return sides[1] if kind == "right" else sides[0]


def _shared(left: Scope, right: Scope) -> list[str]:
    names = {entry.name.lower() for entry in right.entries if not entry.hidden}
    shared = (entry.name for entry in left.entries if not entry.hidden and entry.name.lower() in names)
    return list(dict.fromkeys(shared))


def _shared_not_carried(left: Scope, right: Scope) -> dict[str, str]:
    """The columns that both sides have, and of which one is not carried, with their types."""
    sides = [
        {*(e.name.lower() for e in side.entries), *(c.name.lower() for c in side.not_carried)} for side in (left, right)
    ]
    both = sides[0] & sides[1]
    return {c.name: c.dtype for c in left.not_carried + right.not_carried if c.name.lower() in both}


def window_of(clause: WindowClause, partition: tuple[int, ...] = ()) -> Window:
    """The window of a clause."""
    if clause.count is not None:
        return Rows(clause.count, partition)
    return Unbounded() if clause.length is None else Range(clause.length, clause.slide)


def renamed(source: SqlText, node: Node, columns: list[exp.Expr]) -> Node:
    """The node with the column names of `AS t(a, b)`."""
    if len(columns) != len(node.schema):
        raise source.error(
            UnknownNameError, f"{len(columns)} names for {len(node.schema)} columns: name all of them", columns[0]
        )
    expressions = tuple(Column(i, f.name, f.dtype) for i, f in enumerate(node.schema))
    return Project(node, tuple(column.name for column in columns), expressions)
