"""Writes src/sash/sql/spark_library.json: the functions and data sources of the installed Spark, as it describes them.

`sash validate` and `sash explain` read the file to check what only Spark evaluates, without starting it. Run this script
after an upgrade of Spark: `python scripts/spark_library.py`. It takes some minutes, because it asks Spark for the type of
every function over many types of arguments. `tests/spark/test_spark_library.py` compares the file with the installed Spark.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sash.spark.session import embedded_session
from sash.sql.spark_library import FILE, Kind

_MANY = 40
"""More arguments than any function takes that does not take any number of them."""
_TYPES = (
    *(
        "STRING",
        "INT",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(10,2)",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMP_NTZ",
        "BINARY",
    ),
    *("ARRAY<STRING>", "ARRAY<INT>", "MAP<STRING,INT>", "STRUCT<a:INT>", "VARIANT"),
)
_MIXED = {2: ("STRING", "INT", "TIMESTAMP", "ARRAY<STRING>"), 3: ("STRING", "INT")}
"""The types that are also combined with each other, by the number of arguments."""
_BY_VALUE = frozenset({"date_part", "datepart", "extract", "to_number", "try_to_number", "named_struct", "if", "cast"})
"""Functions whose type depends on the values of constant arguments, or on arguments that are of one type together."""
_EXPRESSIONS = "org.apache.spark.sql.catalyst.expressions"
_GROUPS: dict[str, Kind] = {"agg_funcs": "aggregate", "window_funcs": "window", "generator_funcs": "generator"}
_PROVIDER = "org.apache.spark.sql.sources.DataSourceRegister"


class SparkLibrary:
    """Asks a Spark session for its functions and data sources."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jvm: Any = spark._jvm  # noqa: SLF001  (only the JVM has the lists)
        self._state = state = spark._jsparkSession.sessionState()  # type: ignore[attr-defined]  # noqa: SLF001
        self._registry = state.functionRegistry()
        self._null = state.sqlParser().parseExpression("NULL")
        listed = self._registry.listFunction().iterator()
        self._identifiers: dict[str, Any] = {}
        while listed.hasNext():
            identifier = listed.next()
            self._identifiers[identifier.funcName()] = identifier

    def names(self) -> list[str]:
        """The names of all functions that are not written as operators."""
        return sorted(name for name in self._identifiers if name.isidentifier())

    def kind(self, name: str) -> Kind:
        """What the function is: only those of kind `scalar` may be evaluated row by row."""
        least, most = self.arguments(name)
        built = self._build(name, least if most is None else most)
        if isinstance(built, dict):
            built = self._build(name, least)
        group = self._registry.lookupFunction(self._identifiers[name]).get().getGroup()
        if isinstance(built, dict):  # no such call of NULLs
            return _GROUPS.get(group, "scalar")
        kinds: dict[str, Kind] = {
            f"{_EXPRESSIONS}.WindowFunction": "window",
            f"{_EXPRESSIONS}.aggregate.AggregateFunction": "aggregate",
            f"{_EXPRESSIONS}.Generator": "generator",
        }
        for parent, kind in kinds.items():
            if self._class(parent).isInstance(built):
                return kind
        current = self._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()
        if not built.deterministic() or built.containsPattern(current):
            return "varying"
        return _GROUPS.get(group, "scalar")

    def arguments(self, name: str) -> tuple[int, int | None]:
        """The smallest and the largest number of arguments; None if there is no largest."""
        expected = _expected(self._build(name, _MANY))
        if expected:
            return expected[0], expected[-1]
        least = next(n for n in range(_MANY + 1) if _expected(self._build(name, n)) is None)
        return least, None

    def result(self, name: str, least: int, most: int | None) -> str | None:
        """The type of the function's result; None if it depends on the arguments, or Spark accepts none that are tried."""
        if name in _BY_VALUE:
            return None
        accepted = self._accepted(name, list(_tried(least, most)))
        if len(set(accepted.values())) != 1:
            return None
        bases = {
            len(types): types for types in accepted if len(types) > 1
        }  # of every length the last: a mixture, if any
        varied = {types for base in bases.values() for types in _variations(base)} - accepted.keys()
        found = {*accepted.values(), *self._accepted(name, sorted(varied)).values()}
        return found.pop() if len(found) == 1 else None

    def _accepted(self, name: str, tried: list[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
        """The types of the results by those of the arguments, of those tried that Spark accepts."""
        calls = [f"{name}({', '.join(f'CAST(NULL AS {dtype})' for dtype in types)})" for types in tried]
        return {types: dtype for types, dtype in zip(tried, self._types(calls), strict=True) if dtype is not None}

    def _types(self, calls: list[str]) -> list[str | None]:
        """The types of calls; None where Spark refuses one."""
        if not calls:
            return []
        try:  # the analyzer alone leaves what is wrong as it is
            analyzed = self._state.analyzer().execute(self._state.sqlParser().parsePlan(f"SELECT {', '.join(calls)}"))
        except (PySparkException, Py4JJavaError):
            half = len(calls) // 2
            return [*self._types(calls[:half]), *self._types(calls[half:])] if half else [None]
        found = analyzed.expressions()
        return [_type(found.apply(position)) for position in range(len(calls))]

    def sources(self) -> dict[str, str]:
        """The classes of the data sources by their short names."""
        providers = self._jvm.java.util.ServiceLoader.load(self._class(_PROVIDER)).iterator()
        found = {}
        while providers.hasNext():
            provider = providers.next()
            found[provider.shortName().lower()] = provider.getClass().getName()
        return dict(sorted(found.items()))

    def is_sink(self, source: str) -> bool:
        """Whether changes can be written to the data source: a stream of one row is written."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "row").write_text("a")
            rows = self._spark.readStream.text(f"{folder}/row*").selectExpr(
                "'+' AS _op", "timestamp'2026-01-01' AS _ts", "value"
            )
            writer = (
                rows.writeStream.format(source).queryName("probe").option("checkpointLocation", f"{folder}/checkpoint")
            )
            try:
                writer.options(path=f"{folder}/rows", rowTag="row").trigger(
                    availableNow=True
                ).start().awaitTermination()
            except (PySparkException, Py4JJavaError):
                return False
        return True

    def is_stream(self, source: str) -> bool:
        """Whether a stream with declared columns can be read from the data source."""
        reader = self._spark.readStream.format(source).schema("value STRING")
        with tempfile.TemporaryDirectory() as folder:
            try:
                reader.load(folder)
            except (PySparkException, Py4JJavaError):
                return False
        return True

    def _build(self, name: str, count: int) -> Any:
        """The function's expression over NULLs, or the parameters of the error that refuses that number of arguments."""
        arguments = self._jvm.java.util.ArrayList()
        for _ in range(count):
            arguments.add(self._null)
        sequence = self._jvm.org.apache.spark.api.python.PythonUtils.toSeq(arguments)
        try:
            return self._registry.lookupFunction(self._identifiers[name], sequence)
        except PySparkException as problem:
            return {"condition": problem.getCondition(), **problem.getMessageParameters()}
        except Py4JJavaError:
            return {"condition": None}

    def _class(self, name: str) -> Any:
        return self._jvm.org.apache.spark.util.Utils.classForName(name, True, False)


def _type(expression: Any) -> str | None:
    """The type of an expression in SQL; None if it is wrong."""
    try:
        return str(expression.dataType().sql()) if expression.resolved() else None
    except (PySparkException, Py4JJavaError):  # a function of a package that is not loaded
        return None


def _expected(built: Any) -> list[int] | None:
    """The numbers of arguments that the error names; an empty list if it names none, None if it is not such an error."""
    if not isinstance(built, dict) or not str(built["condition"]).startswith("WRONG_NUM_ARGS"):
        return None
    text = built.get("expectedNum", "").strip("[]")
    return sorted(int(part) for part in text.split(",")) if text.replace(",", "").replace(" ", "").isdigit() else []


def _tried(least: int, most: int | None) -> Iterator[tuple[str, ...]]:
    """Types of the arguments to try: equal ones, and mixtures of a few."""
    for count in range(least, min(3 if most is None else most, max(3, least)) + 1):
        yield from ((dtype,) * count for dtype in (_TYPES if count else _TYPES[:1]))
        yield from (types for types in product(_MIXED.get(count, ()), repeat=count) if len(set(types)) > 1)


def _variations(types: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The same types, but one of them, or all that are equal to it, replaced by each of the others."""
    for at, before in enumerate(types):
        for after in _TYPES:
            yield (*types[:at], after, *types[at + 1 :])
        if types.count(before) > 1 and types.index(before) == at and len(set(types)) > 1:
            for after in _TYPES:
                yield tuple(after if dtype == before else dtype for dtype in types)


def described(library: SparkLibrary) -> Iterator[tuple[str, list[Any]]]:
    """What the file says of every function: kind, numbers of arguments, type of the result."""
    names = library.names()
    for number, name in enumerate(names):
        if number % 50 == 0:
            print(f"{number} of {len(names)} functions", file=sys.stderr)
        kind, (least, most) = library.kind(name), library.arguments(name)
        yield name, [kind, least, most, library.result(name, least, most) if kind == "scalar" else None]


def main() -> None:
    """Write the file."""
    spark = embedded_session()
    spark.sparkContext.setLogLevel("OFF")
    logging.disable()
    library = SparkLibrary(spark)
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in described(library)]
    sources = {name: (library.is_stream(name), library.is_sink(name)) for name in library.sources()}
    functions = ",\n".join(lines)
    text = f'{{"spark": {json.dumps(spark.version)},\n"sources": {json.dumps(sources)},\n"functions": {{\n{functions}\n}}}}\n'
    json.loads(text)
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
