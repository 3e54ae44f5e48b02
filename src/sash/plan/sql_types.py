"""Types of SQL that Arrow lacks, or has without all their parameters: intervals, TIME and VARIANT.

A plan is bound with these types. Then every column and value gets the type of its storage instead (`sql/storage.py`), so
that operators and state only know plain types of Arrow: the order and the equality of the stored values are those of
SQL. An answer's columns keep their types, which decide how sinks write them. No array has such a type.
"""

from __future__ import annotations

from typing import Self

import pyarrow as pa

DAY_TIME_FIELDS = ("DAY", "HOUR", "MINUTE", "SECOND")
YEAR_MONTH_FIELDS = ("YEAR", "MONTH")


class SqlType(pa.ExtensionType):  # type: ignore[misc]  # Arrow has no types
    """A type by its name in SQL; `storage_type` is the type of the values in columns."""

    def __init__(self, name: str, storage: pa.DataType) -> None:
        self.name = name
        super().__init__(storage, f"sash.{name}")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.name.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls(serialized.decode(), storage_type)

    def __hash__(self) -> int:
        return hash((type(self), self.name))


class DayTimeInterval(SqlType):
    """INTERVAL DAY TO SECOND, or fewer fields; stored as microseconds."""

    def __init__(self, name: str, storage: pa.DataType | None = None) -> None:
        super().__init__(name, pa.int64())

    @property
    def fields(self) -> tuple[int, int]:
        """The first and the last field, as positions in DAY_TIME_FIELDS."""
        return _fields(self.name, DAY_TIME_FIELDS)


class YearMonthInterval(SqlType):
    """INTERVAL YEAR TO MONTH, or one of both; stored as months."""

    def __init__(self, name: str, storage: pa.DataType | None = None) -> None:
        super().__init__(name, pa.int32())

    @property
    def fields(self) -> tuple[int, int]:
        """The first and the last field, as positions in YEAR_MONTH_FIELDS."""
        return _fields(self.name, YEAR_MONTH_FIELDS)


def _fields(name: str, known: tuple[str, ...]) -> tuple[int, int]:
    words = name.removeprefix("INTERVAL ").split()
    return known.index(words[0]), known.index(words[-1])


def _named(first: str, last: str) -> str:
    return f"INTERVAL {first}" if first == last else f"INTERVAL {first} TO {last}"


def day_time(first: int, last: int) -> DayTimeInterval:
    """The interval from one field to another, both positions in DAY_TIME_FIELDS.

    >>> day_time(0, 3).name
    'INTERVAL DAY TO SECOND'
    """
    return DayTimeInterval(_named(DAY_TIME_FIELDS[first], DAY_TIME_FIELDS[last]))


def year_month(first: int, last: int) -> YearMonthInterval:
    """The interval from one field to another, both positions in YEAR_MONTH_FIELDS."""
    return YearMonthInterval(_named(YEAR_MONTH_FIELDS[first], YEAR_MONTH_FIELDS[last]))


class Variant(SqlType):
    """VARIANT: JSON with types, stored as text (see `variants.py`)."""

    def __init__(self, name: str = "VARIANT", storage: pa.DataType | None = None) -> None:
        super().__init__(name, pa.string())


VARIANT = Variant()
DAY_TO_SECOND = day_time(0, 3)
YEAR_TO_MONTH = year_month(0, 1)
INTERVALS: dict[str, SqlType] = {
    made.name: made
    for made in (
        *(day_time(first, last) for first in range(4) for last in range(first, 4)),
        *(year_month(first, last) for first in range(2) for last in range(first, 2)),
    )
}
"""All interval types by name."""


def exported(dtype: pa.DataType) -> pa.DataType:
    """The Arrow type of a column in a table outside of plans: a duration for days and times, an integer for months."""
    if isinstance(dtype, DayTimeInterval):
        return pa.duration("us")
    if isinstance(dtype, SqlType):
        return dtype.storage_type
    if pa.types.is_struct(dtype):
        return pa.struct([pa.field(field.name, exported(field.type)) for field in dtype])
    if pa.types.is_map(dtype):
        return pa.map_(exported(dtype.key_type), exported(dtype.item_type))
    return pa.list_(exported(dtype.value_type)) if pa.types.is_list(dtype) else dtype


def export(column: pa.Array, dtype: pa.DataType) -> pa.Array:
    """A stored column of a type without variants as it is outside of plans."""
    wanted = exported(dtype)
    return column if column.type == wanted else column.cast(wanted)


def is_interval(dtype: pa.DataType) -> bool:
    """Whether the type is an interval."""
    return isinstance(dtype, DayTimeInterval | YearMonthInterval)


def common_interval(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """The interval type with the fields of both; None if one is of years and months, and the other of days and times."""
    for kind, make in ((DayTimeInterval, day_time), (YearMonthInterval, year_month)):
        if isinstance(left, kind) and isinstance(right, kind):
            (first, last), (other_first, other_last) = left.fields, right.fields
            return make(min(first, other_first), max(last, other_last))
    return None
