"""Generators: functions that make several rows of one, in SELECT, after LATERAL VIEW and in FROM.

All are an array whose elements become rows. Where the array is written out, such as `explode(array(a, b))` or `stack`, each
element is a row of an Expand, which runs where projections run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sash.errors import TypeMismatchError, UnsupportedSqlError
from sash.plan.expressions import Call, Column, Expression, Lambda, Literal, Variable
from sash.plan.nodes import ONE_ROW, Expand, Filter, Generate, Node, Project
from sash.plan.types import BIGINT, BOOLEAN, INT, NULL, is_array, is_map, is_struct, type_name
from sash.plan.types import array_of as array_type
from sash.sql.coercion import unify
from sash.sql.expressions import ExpressionBinder
from sash.sql.nested_rules import array as array_of
from sash.sql.nested_rules import field_of, map_part, struct_of
from sash.sql.scope import Entry
from sash.sql.signatures.json import json_tuple
from sash.sql.source import SqlText

GENERATORS = frozenset({"explode", "posexplode", "inline", "stack", "json_tuple"})
_MOST_ROWS = 10_000


@dataclass(frozen=True)
class Generator:
    """The array, whether a row without elements stays, and the output columns: names, and the element or parts of it."""

    array: Expression
    outer: bool
    positions: bool
    names: tuple[str, ...]
    fields: tuple[str, ...] | None
    paired: bool = False
    """Whether the elements are structs of a position and the element proper."""

    def where(self, condition: Callable[[Sequence[Expression]], Expression]) -> Generator:
        """The generator of the elements for which a condition on the output columns holds; a row without one stays."""
        element = self.array.dtype.value_type
        index, value = (
            Variable(-2, "pos", INT),
            Variable(-1, "col", element),
        )  # apart from those of lambdas in the condition
        pair = struct_of(["pos", "col"], [index, value])
        paired = Call("transform", (self.array, Lambda((value, index), pair)), array_type(pair.dtype))
        kept = Variable(-1, "kept", pair.dtype)
        holds = condition(self.outputs(field_of(kept, "pos"), field_of(kept, "col")))
        chosen = Call("filter", (paired, Lambda((kept,), holds)), paired.dtype)
        return replace(self, array=chosen, outer=True, paired=True)

    def outputs(self, position: Expression, element: Expression) -> list[Expression]:
        """The output columns, given the position and the element."""
        parts = [element] if self.fields is None else [field_of(element, name) for name in self.fields]
        return [position, *parts] if self.positions else parts

    def over(self, child: Node) -> tuple[Node, list[Expression]]:
        """The rows of the generator, with the columns of the child first, and the expressions of its output columns."""
        own = [Column(place, field.name, field.dtype) for place, field in enumerate(child.schema)]
        node: Node
        if isinstance(self.array, Call) and self.array.function == "array" and self.array.arguments:
            names = (*(field.name for field in child.schema), "pos", "col")
            rows = enumerate(self.array.arguments)
            node = Expand(child, names, tuple((*own, Literal(place, INT), element) for place, element in rows))
        else:
            node = Generate(child, tuple(range(len(own))), self.array, self.outer)
        position: Expression
        element: Expression
        position, element = (Column(n, f.name, f.dtype) for n, f in list(enumerate(node.schema))[-2:])
        if self.paired:
            position, element = field_of(element, "pos"), field_of(element, "col")
        return node, self.outputs(position, element)


def generator_name(node: exp.Expr) -> str | None:
    """The name of the generator that the node calls, without _outer; None if it calls none."""
    name = node.name.lower().removesuffix("_outer") if isinstance(node, exp.Anonymous) else None
    return name if name in GENERATORS else None


def bind_generator(binder: ExpressionBinder, call: exp.Expr, outer: bool = False) -> Generator:
    """The generator that a call denotes."""
    name = generator_name(call)
    assert name is not None
    outer = outer or call.name.lower().endswith("_outer")
    arguments = [binder.bind(argument) for argument in call.expressions]
    try:
        return _generator(name, arguments, outer)
    except TypeMismatchError as error:
        raise binder.source.error(TypeMismatchError, str(error), call) from None


def _generator(name: str, arguments: list[Expression], outer: bool) -> Generator:
    if name == "stack":
        return _stack(arguments, outer)
    if name == "json_tuple":
        row = json_tuple(arguments)
        names = tuple(field.name for field in row.dtype)
        return Generator(array_of("array", [row]), outer, False, names, names)
    if len(arguments) != 1:
        raise TypeMismatchError(f"{name} takes 1 argument, not {len(arguments)}")
    (value,) = arguments
    positions = name == "posexplode"
    before = ("pos",) if positions else ()
    if name == "inline":
        if not is_array(value.dtype) or not is_struct(value.dtype.value_type):
            raise TypeMismatchError(f"inline takes an array of structs, not {type_name(value.dtype)}")
        names = tuple(field.name for field in value.dtype.value_type)
        return Generator(value, outer, False, names, names)
    if is_map(value.dtype):
        entries = map_part("map_entries", [value])
        return Generator(entries, outer, positions, (*before, "key", "value"), ("key", "value"))
    if not is_array(value.dtype):
        raise TypeMismatchError(f"{name} takes an array or a map, not {type_name(value.dtype)}")
    return Generator(value, outer, positions, (*before, "col"), None)


def _stack(arguments: list[Expression], outer: bool) -> Generator:
    """STACK(n, v1, v2, ...): the values in n rows."""
    count = arguments[0].value if arguments and isinstance(arguments[0], Literal) else None
    values = arguments[1:]
    if not isinstance(count, int) or count < 1 or count > _MOST_ROWS or not values:
        raise TypeMismatchError("stack takes a constant number of rows, of at least 1, and values")
    width = -(-len(values) // count)
    padded = [*values, *[Literal(None, NULL)] * (width * count - len(values))]
    columns = [unify(padded[place::width], f"column {place} of stack") for place in range(width)]
    names = tuple(f"col{place}" for place in range(width))
    rows = [struct_of(list(names), list(row)) for row in zip(*columns, strict=True)]
    return Generator(array_of("array", rows), outer, False, names, names)


def named_outputs(source: SqlText, generator: Generator, given: Sequence[exp.Expr], node: exp.Expr) -> tuple[str, ...]:
    """The names of the output columns: those given, or the generator's own."""
    if given and len(given) != len(generator.names):
        raise source.error(
            TypeMismatchError, f"{len(given)} names for {len(generator.names)} columns: name all of them", node
        )
    return tuple(name.name for name in given) or generator.names


def entries_of(
    source: SqlText, generator: Generator, outputs: Sequence[Expression], alias: exp.Expr | None, node: exp.Expr
) -> tuple[Entry, ...]:
    """The output columns as names of a FROM clause."""
    columns = [] if alias is None else alias.args.get("columns") or []
    qualifier = None if alias is None else alias.name or None
    names = named_outputs(source, generator, columns, node)
    return tuple(Entry(qualifier, name, made) for name, made in zip(names, outputs, strict=True))


def bind_range(binder: ExpressionBinder, call: exp.Expr) -> Node:
    """RANGE([start,] end [, step]): constants, as the column `id`."""
    values = [binder.bind(argument) for argument in call.expressions]
    numbers = [value.value if isinstance(value, Literal) else None for value in values]
    if not 1 <= len(numbers) <= 4 or not all(isinstance(number, int) for number in numbers) or 0 in numbers[2:3]:
        raise binder.source.error(
            UnsupportedSqlError,
            "range takes constant whole numbers: range([start,] end [, step]) with a step other than 0",
            call,
        )
    bounds = [int(number) for number in numbers if number is not None][:3]
    rows = range(*bounds)
    if len(rows) > _MOST_ROWS:
        raise binder.source.error(
            UnsupportedSqlError, f"range may have {_MOST_ROWS:,} rows: register a relation instead", call
        )
    lists = tuple((Literal(number, BIGINT),) for number in rows)
    if not lists:
        return Filter(Project(ONE_ROW, ("id",), (Literal(0, BIGINT),)), Literal(False, BOOLEAN))
    return Project(ONE_ROW, ("id",), lists[0]) if len(lists) == 1 else Expand(ONE_ROW, ("id",), lists)
