"""Functions outside Sash's library: Spark evaluates them directly above a source."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from sash.errors import UnknownNameError, UnsupportedSqlError
from sash.plan.catalog import SparkTyper, UserLibrary
from sash.plan.expressions import Expression, SparkFunction, substitute
from sash.plan.nodes import Filter, Node, Project, Relation, Rows, Stream
from sash.sql.aggregates import AGGREGATES
from sash.sql.dialect import UNITS
from sash.sql.functions import canonical_name
from sash.sql.render import quoted, to_spark_sql
from sash.sql.source import SqlText
from sash.sql.spark_library import calls, library, similar_function
from sash.sql.type_names import NO_TIME
from sash.sql.words import word_of

SKETCH = re.compile(r"sketch|^hll_|^kll_|^theta_|^tuple_|^approx_top_k_")
"""The names of aggregates that return sketches, or combine them."""

_OF_TIME = frozenset({"make_time", "time", "to_time", "try_to_time"}) | {
    f"time_{name}"
    for name in ("diff", "from_micros", "from_millis", "from_seconds", "to_micros", "to_millis", "to_seconds", "trunc")
}

REFUSED: dict[str, tuple[frozenset[str], str]] = {
    "Spark has the type TIME switched off": (
        _OF_TIME,
        f"since it does not support the type TIME: {NO_TIME}",
    ),
    "Spark has timestamps of nanoseconds switched off": (
        frozenset({"timestamp_nanos", "unix_nanos"}),
        "of nanoseconds, which Spark has switched off (spark.sql.timestampNanosTypes.enabled): use timestamp_micros, unix_micros",
    ),
    "intervals of months, days and times together": (
        frozenset({"make_interval", "try_make_interval"}),
        "whose result has months, days and times together: use make_ym_interval or make_dt_interval",
    ),
    "types of places, which cannot be columns": (
        frozenset({"st_asbinary", "st_geogfromwkb", "st_geomfromwkb", "st_setsrid", "st_srid"}),
        "since GEOMETRY and GEOGRAPHY cannot be columns: keep places as BINARY",
    ),
}
"""Functions that are refused wherever they are, by the reason in the list of functions, with that in messages."""


@dataclass(frozen=True)
class SparkFunctions:
    """Binds functions that only Spark can evaluate, over the FROM clause `below`, which is None for a join."""

    source: SqlText
    typer: SparkTyper | None
    below: Node | None
    user: UserLibrary = field(default_factory=UserLibrary)

    def bind(self, node: exp.Expr, column: Callable[[exp.Column], Expression]) -> Expression:
        """The whole node as an expression that Spark evaluates."""
        name = function_name(node)
        for part in node.find_all(exp.Func):
            self._check_kind(part)
        if self.typer is None:
            raise self._unknown(node)
        scan, inputs = self._scan()
        if scan is None or any(function_name(part) in AGGREGATES for part in calls(node)):
            hint = "" if library().knows(name) else similar_function(name)
            raise self.source.error(
                UnsupportedSqlError,
                f"{name} is not in Sash's library, so it only runs directly above a source: "
                f"move it into a subquery over the stream{hint}",
                node,
            )
        if isinstance(scan, Stream) and isinstance(scan.window, Rows):
            raise self.source.error(
                UnsupportedSqlError,
                f"{name} is not in Sash's library, so it only runs directly above a source, and the window of "
                f"{scan.name} counts rows first: compute it in the DataFrame that {scan.name} is registered with",
                node,
            )
        sql, arguments = _template(node, column)
        columns = [quoted(f.name) for f in scan.schema]
        over_scan = tuple(argument if inputs is None else substitute(argument, inputs) for argument in arguments)
        dtype = self.typer(scan.name, sql.format(*(to_spark_sql(argument, columns) for argument in over_scan)))
        if dtype is None:
            raise self._unknown(node)
        if isinstance(dtype, str):
            raise self.source.error(
                UnsupportedSqlError,
                f"{name} returns {dtype}, which is not a supported column type: extract a field of it",
                node,
            )
        return SparkFunction(sql, arguments, dtype)

    def _scan(self) -> tuple[Stream | Relation | None, tuple[Expression, ...] | None]:
        """The source directly below, and the expressions of the columns in between."""
        inputs: tuple[Expression, ...] | None = None
        node = self.below
        while isinstance(node, Filter | Project):
            if isinstance(node, Project):
                made = node.expressions
                inputs = made if inputs is None else tuple(substitute(part, made) for part in inputs)
            node = node.child
        return (node, inputs) if isinstance(node, Stream | Relation) else (None, None)

    def _check_kind(self, call: exp.Func) -> None:
        """Refuse functions that cannot be evaluated row by row, or not twice with the same result."""
        name = function_name(call)
        if name in AGGREGATES:
            return
        for names, reason in REFUSED.values():
            if name in names:
                raise self.source.error(UnsupportedSqlError, f"Sash does not run {name}, {reason}", call)
        match library().kind(name):
            case "varying":
                problem = f"{name} is not deterministic, so a continuous query cannot use it"
            case "aggregate" if SKETCH.search(name):
                problem = (
                    f"Sash does not run the aggregate {name}: its sketches merge at random or have no format that "
                    "others read; use COUNT(DISTINCT x), PERCENTILE or GROUP BY, which are exact"
                )
            case "aggregate":
                problem = f"Sash does not run the aggregate {name}; supported are {', '.join(AGGREGATES)}"
            case "window":
                problem = (
                    f"Sash does not run window functions such as {name}; for the first rows use ORDER BY and LIMIT"
                )
            case "generator":
                problem = (
                    f"{name} makes several rows of one: write it as an output column of its own, or in LATERAL VIEW"
                )
            case _:
                return
        raise self.source.error(UnsupportedSqlError, problem, call)

    def _unknown(self, node: exp.Expr) -> Exception:
        """Why Spark refuses the node: the first call of a function that does not exist, or not with these arguments."""
        for call in calls(node):
            name, known = function_name(call), library().functions.get(function_name(call))
            if name in AGGREGATES or canonical_name(name) is not None:
                continue
            if not library().knows(name):
                return self.source.error(UnknownNameError, f"there is no function {name}{similar_function(name)}", call)
            if known is not None and not known.takes(len(call.expressions)):
                problem = f"{name} takes {known.wanted}, not {len(call.expressions)}"
                return self.source.error(UnknownNameError, problem, call)
        name = function_name(node)
        if self.typer is None:
            problem = f"{name} is not in Sash's library: only Spark evaluates it, and there is none here"
            return self.source.error(UnsupportedSqlError, problem, node)
        return self.source.error(UnknownNameError, f"there is no function {name} of these arguments", node)


def function_name(node: exp.Expr) -> str:
    """The name of the node in messages."""
    return word_of(node)


def _template(node: exp.Expr, column: Callable[[exp.Column], Expression]) -> tuple[str, tuple[Expression, ...]]:
    """Spark SQL with {0}, {1} ... for the columns, and those columns."""
    arguments: list[Expression] = []
    root = node.copy()

    def replace(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column):
            return part
        if part.parent is root and not part.table and part.name.upper().removesuffix("S") in UNITS:
            return exp.Var(this=part.name)
        argument = column(part)
        if argument not in arguments:
            arguments.append(argument)
        return exp.Var(this=f"\0{arguments.index(argument)}\1")

    sql = root.transform(replace, copy=False).sql(dialect="spark", normalize_functions=False)
    return sql.replace("{", "{{").replace("}", "}}").replace("\0", "{").replace("\1", "}"), tuple(arguments)
