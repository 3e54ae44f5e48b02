"""What names mean: variables of lambdas, output columns, columns of FROM and of the queries around, aliases, and fields.

Where a name can mean several things, the first one that has the fields or elements asked of it is taken, as in Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial, reduce
from typing import TYPE_CHECKING

from sqlglot import exp

from sash.errors import TypeMismatchError
from sash.plan.expressions import Expression
from sash.sql.correlation import OuterScope
from sash.sql.nested_rules import field_of, item_of
from sash.sql.scope import Scope

if TYPE_CHECKING:
    from sash.sql.expressions import ExpressionBinder


def bind_column(binder: ExpressionBinder, node: exp.Column) -> Expression:
    """A name, with qualifiers before it or fields after it."""
    if isinstance(node.this, exp.Star):
        raise binder.unsupported(f"{node.table}.* in {binder.clause}", node)
    path = [node.args[part] for part in ("catalog", "db", "table", "this") if node.args.get(part) is not None]
    if path[0].name.lower() in binder.variables:
        value: Expression = binder.variables[path[0].name.lower()]
        return reduce(field_of, (part.name for part in path[1:]), value)
    scopes: list[Scope | OuterScope] = [binder.scope, *reversed(binder.around)]
    for scope in scopes:
        for used in (2, 1):
            if len(path) < used:
                continue
            names = tuple(part.name for part in path[used:])
            found = _first_that_fits(_meanings(binder, path[:used], scope), partial(reduce, field_of, names))
            if found is not None:
                return found
    return binder.scope.resolve(binder.source, node)


def bind_item(binder: ExpressionBinder, node: exp.Expr) -> Expression:
    """`array[index]` or `map[key]`."""
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        raise binder.unsupported(f"{node.sql(dialect='spark')}; write array[index] or map[key]", node)
    key, value = binder.bind(node.expressions[0]), node.this
    is_name = isinstance(value, exp.Column) and not value.table and value.name.lower() not in binder.variables
    meanings = _meanings(binder, [value.this], binder.scope) if is_name else iter(())
    found = _first_that_fits(meanings, lambda each: item_of(each, key))
    return item_of(binder.bind(value), key) if found is None else found


def _meanings(binder: ExpressionBinder, path: list[exp.Expr], scope: Scope | OuterScope) -> Iterator[Expression]:
    """What a name, which may be qualified, can mean: an output column, a column of FROM, an alias."""
    name, own = path[-1].name.lower(), scope is binder.scope and len(path) == 1
    if own and name in binder.first:
        yield binder.first[name]
    node = exp.Column(this=path[-1].copy(), table=path[0].copy() if len(path) > 1 else None)
    node.this.meta.update(path[-1].meta)
    found = scope.lookup(binder.source, node)
    if found is not None:
        yield found
    if own and name in binder.aliases:
        yield binder.aliases[name]


def _first_that_fits(candidates: Iterator[Expression], use: Callable[[Expression], Expression]) -> Expression | None:
    """The first use of a candidate that has the types for it; None if there are no candidates."""
    problem: TypeMismatchError | None = None
    for candidate in candidates:
        try:
            return use(candidate)
        except TypeMismatchError as error:
            problem = problem or error
    if problem is not None:
        raise problem
    return None
