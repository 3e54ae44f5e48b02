from __future__ import annotations

import pytest

from sash.errors import CatalogError, StatisticsError
from sash.plan.catalog import Catalog, update_columns
from sash.plan.statistics import Statistics
from sash.rows import parse_schema

SALES = parse_schema("TS BIGINT, item INT, sold_at TIMESTAMP, price DOUBLE")
ITEMS = parse_schema("item INT, name STRING")


def test_a_stream_is_found_by_its_name_in_any_case() -> None:
    catalog = Catalog()
    entry = catalog.add_stream("Sales", SALES, "ts", rate=7, distinct={"Item": 3}, statistics=Statistics(rate=1))
    assert catalog.find("SALES") is entry
    assert (entry.name, entry.time) == ("Sales", "TS")
    assert (entry.statistics.rate, entry.statistics.of_column("item")) == (7, 3)


def test_time_column_by_default() -> None:
    assert Catalog().add_stream("s", SALES).time == "TS"
    assert Catalog().add_stream("s", SALES[1:]).time == "sold_at"
    with pytest.raises(CatalogError, match="stream s needs a time column"):
        Catalog().add_stream("s", ITEMS)


def test_a_relation_has_its_key_by_position() -> None:
    catalog = Catalog()
    entry = catalog.add_relation("items", ITEMS, key=["NAME", "item", "Item"], rows=50, changes=True, waits=False)
    assert (entry.key, entry.changes, entry.waits, entry.timed) == ((1, 0), True, False, True)
    assert entry.statistics.rows == 50
    assert catalog.add_relation("names", ITEMS, key="name").key == (1,)


@pytest.mark.parametrize(
    ("name", "time", "message"),
    [
        ("two words", None, "cannot be written in SQL"),
        ("Taken", None, "Taken is already registered"),
        ("s", "at", "stream s has no column 'at'"),
        ("s", "price", "'price' of stream s is DOUBLE: make it TIMESTAMP"),
    ],
)
def test_streams_that_are_refused(name: str, time: str | None, message: str) -> None:
    catalog = Catalog()
    catalog.add_relation("taken", ITEMS)
    with pytest.raises(CatalogError, match=message):
        catalog.add_stream(name, SALES, time)
    assert not catalog.streams


@pytest.mark.parametrize(
    ("key", "message"), [("colour", "no column 'colour' to be its key; its columns are item, name"), ([], "empty key")]
)
def test_keys_that_are_refused(key: str | list[str], message: str) -> None:
    catalog = Catalog()
    with pytest.raises(CatalogError, match=message):
        catalog.add_relation("items", ITEMS, key=key)
    with pytest.raises(StatisticsError, match="items has no column 'colour'"):
        catalog.add_relation("items", ITEMS, distinct={"colour": 3})
    assert not catalog.relations


def test_a_dropped_name_is_free() -> None:
    catalog = Catalog()
    catalog.add_stream("s", SALES)
    catalog.drop("S")
    catalog.add_relation("s", ITEMS)
    catalog.drop("s")
    with pytest.raises(CatalogError, match="there is no stream or relation s"):
        catalog.drop("s")


def test_updates_have_a_time_and_an_operation_or_a_key() -> None:
    columns = parse_schema("ts BIGINT, _op STRING, item INT, name STRING")
    assert update_columns("items", columns, None, None) == ("ts", ITEMS)
    assert update_columns("items", columns[:1] + ITEMS, "TS", "item") == ("ts", ITEMS)
    with pytest.raises(CatalogError, match="no column _op"):
        update_columns("items", columns[:1] + ITEMS, None, None)
