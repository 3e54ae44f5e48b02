"""Streams and relations as they are written on the command line: `sales(ts TIMESTAMP, item_id INT)`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sash.errors import CatalogError
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry
from sash.plan.types import TIMESTAMP, TIMESTAMP_NTZ, Schema
from sash.rows import parse_schema

TIME = "ts"
_DECLARATION = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


def declared(streams: Iterable[str], relations: Iterable[str]) -> Catalog:
    """The catalog that the declarations make.

    >>> catalog = declared(["Sales(ts TIMESTAMP, price DOUBLE)"], [])
    >>> catalog.streams["sales"].time
    'ts'
    """
    catalog = Catalog()
    for text in streams:
        name, schema = _declaration(text)
        catalog.streams[name.lower()] = StreamEntry(name, schema, _time_column(name, schema))
    for text in relations:
        name, schema = _declaration(text)
        catalog.relations[name.lower()] = RelationEntry(name, schema)
    return catalog


def _declaration(text: str) -> tuple[str, Schema]:
    found = _DECLARATION.fullmatch(text)
    if found is None:
        raise CatalogError(f"cannot read {text!r}: write it as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'")
    return found[1], parse_schema(found[2])


def _time_column(name: str, schema: Schema) -> str:
    """The column called `ts`, or the only timestamp."""
    if any(field.name.lower() == TIME for field in schema):
        return next(field.name for field in schema if field.name.lower() == TIME)
    times = [field.name for field in schema if field.dtype in (TIMESTAMP, TIMESTAMP_NTZ)]
    if len(times) == 1:
        return times[0]
    raise CatalogError(f"stream {name} needs a time column: call it {TIME}, or give the stream exactly one TIMESTAMP")
