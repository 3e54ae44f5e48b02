"""The generator source: made-up sales at a steady rate, and the items that are sold."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from sash.errors import CatalogError
from sash.script.sources import option
from sash.script.statements import Value
from sash.sql.source import did_you_mean

_SALES = {"rate": 100, "items": 50, "stores": 10}


def sales_frame(spark: SparkSession, options: dict[str, Value]) -> DataFrame:
    """A stream of sales. Every column is a function of the sale's number, so a batch can be recomputed."""
    rate, items, stores = (_count(options, name, default) for name, default in _SALES.items())
    _refuse_unknown(options, _SALES)
    rows = spark.readStream.format("rate").option("rowsPerSecond", rate).load()

    def uniform(salt: int) -> str:
        return f"(pmod(xxhash64(value, {salt}), 1000003) / 1000003D)"

    return rows.selectExpr(
        "timestamp AS ts",
        f"CAST({stores} * {uniform(1)} AS INT) AS store_id",
        f"CAST({items} * {uniform(2)} * {uniform(2)} AS INT) AS item_id",  # some items sell better than others
        f"ROUND(1 + 19 * {uniform(3)}, 2) AS price",
        f"CAST(1 + 5 * {uniform(4)} AS INT) AS quantity",
    )


def items_frame(spark: SparkSession, options: dict[str, Value]) -> DataFrame:
    """The relation of items; every tenth is a favourite."""
    items = _count(options, "items", _SALES["items"])
    _refuse_unknown(options, {"items": 0})
    return spark.range(items).selectExpr(
        "CAST(id AS INT) AS item_id", "concat('item ', id) AS name", "CAST(id % 10 = 0 AS INT) AS favourite"
    )


def _count(options: dict[str, Value], name: str, default: int) -> int:
    value = option(options, name, default)
    if not str(value).isdigit() or int(str(value)) < 1:
        raise CatalogError(f"the generator's option {name} must be a whole number from 1, not {value!r}")
    return int(str(value))


def _refuse_unknown(options: Mapping[str, Value], known: Mapping[str, int]) -> None:
    for name in options:
        hint = did_you_mean(name, known)
        raise CatalogError(f"generator has no option {name}; its options are {', '.join(known)}{hint}")
