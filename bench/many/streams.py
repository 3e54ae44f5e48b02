"""The two streams and the tables that many queries share: payments, clicks, and what is known of their values.

The streams come from Spark's rate source, and every column is computed from the number of the row. The source costs a few
milliseconds per second of events, so that what is measured is the queries: a generator process would need one of two
cores, and files would have to be written and listed. Every query that runs on its own reads a source of its own, as it
would with Kafka. The source hands out whole seconds, and more of them at once to a query that has fallen behind; so rows
are up to a second old when a batch starts, and that second is part of every lag.

Accounts, merchants, pages, countries and devices are skewed (the share of the first n of N values is the square root of
n / N), amounts and durations are exponential. The time of an event is the time at which it was generated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from sash.time import SECOND

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from sash.engine import Engine

ACCOUNTS, MERCHANTS, PAGES, COUNTRIES, DEVICES = 50_000, 200, 500, 50, 8
MEAN_AMOUNT, MEAN_MILLIS = 50, 400

SCHEMAS = {
    "payments": "ts TIMESTAMP, account INT, merchant INT, country INT, amount DOUBLE, items INT",
    "clicks": "ts TIMESTAMP, account INT, page INT, country INT, device INT, millis INT",
}

TABLES = {
    "merchants": pa.table(
        {
            "merchant": pa.array(range(MERCHANTS), pa.int32()),
            "category": pa.array([number % 12 for number in range(MERCHANTS)], pa.int32()),
            "risk": pa.array([number % 7 for number in range(MERCHANTS)], pa.int32()),
        }
    ),
    "pages": pa.table(
        {
            "page": pa.array(range(PAGES), pa.int32()),
            "section": pa.array([number % 15 for number in range(PAGES)], pa.int32()),
        }
    ),
    "countries": pa.table(
        {
            "country": pa.array(range(COUNTRIES), pa.int32()),
            "region": pa.array([number % 6 for number in range(COUNTRIES)], pa.int32()),
        }
    ),
    "watched": pa.table({"account": pa.array(range(25, ACCOUNTS, 50), pa.int32())}),
}
"""The tables by name; the first column of each is its key."""

TABLE_SCHEMAS = {name: ", ".join(f"{column} INT" for column in table.column_names) for name, table in TABLES.items()}


def _uniform(stream: int, column: int) -> str:
    """A number in [0, 1) that is determined by the row, the stream and the column."""
    return f"(pmod(xxhash64(value, {stream}, {column}), 1073741824) / 1073741824D)"


def _skewed(values: int, stream: int, column: int) -> str:
    made = _uniform(stream, column)
    return f"CAST({values} * {made} * {made} AS INT)"


def _exponential(mean: float, stream: int, column: int) -> str:
    return f"(-{mean} * ln(1 - {_uniform(stream, column)}))"


_COLUMNS = {
    "payments": {
        "account": _skewed(ACCOUNTS, 1, 1),
        "merchant": _skewed(MERCHANTS, 1, 2),
        "country": _skewed(COUNTRIES, 1, 3),
        "amount": f"floor(100 * {_exponential(MEAN_AMOUNT, 1, 4)}) / 100D",
        "items": f"CAST(1 + floor(9 * {_uniform(1, 5)}) AS INT)",
    },
    "clicks": {
        "account": _skewed(ACCOUNTS, 2, 1),
        "page": _skewed(PAGES, 2, 2),
        "country": _skewed(COUNTRIES, 2, 3),
        "device": _skewed(DEVICES, 2, 4),
        "millis": f"CAST({_exponential(MEAN_MILLIS, 2, 5)} AS INT)",
    },
}


def time_expression(rate: int) -> str:
    """The time of a row in microseconds, in the order of the rows, where the source rounds it to milliseconds.

    The source rounds up, too: the last rows of a second would have the time of the next one. So the rounded part is
    replaced by the exact one, with a random part below the distance of two rows.
    """
    number = f"pmod(value, {rate})"
    rounded, exact = f"floor({number} * 1000 / {rate} + 0.5D) * 1000", f"floor({number} * {SECOND} / {rate})"
    jitter = f"pmod(xxhash64(value), {max(1, SECOND // rate)})"
    return f"timestamp_micros(CAST(unix_micros(timestamp) - {rounded} + {exact} + {jitter} AS BIGINT))"


def rows_of(name: str, numbered: DataFrame, rate: int) -> DataFrame:
    """The rows of a stream for rows that have a `timestamp` and a `value`, their number."""
    made = (f"{expression} AS {column}" for column, expression in _COLUMNS[name].items())
    return numbered.selectExpr(f"{time_expression(rate)} AS ts", *made)


def register(engine: Engine, rate: int) -> None:
    """Register both streams, with so many events per second each, and the tables."""
    spark: SparkSession = engine.spark
    distinct = {
        "payments": {"account": ACCOUNTS, "merchant": MERCHANTS, "country": COUNTRIES},
        "clicks": {"account": ACCOUNTS, "page": PAGES, "country": COUNTRIES, "device": DEVICES},
    }
    for name in SCHEMAS:
        source = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
        engine.stream(name, rows_of(name, source, rate), rate=rate, distinct=distinct[name])
    for name, table in TABLES.items():
        engine.relation(name, spark.createDataFrame(table), key=table.column_names[0], rows=table.num_rows)
