"""Streams and relations as they are written on the command line: `sales(ts TIMESTAMP, item_id INT)`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sash.errors import CatalogError
from sash.plan.catalog import Catalog, RelationEntry, StreamEntry, time_column
from sash.plan.types import Schema
from sash.rows import parse_schema

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
        catalog.streams[name.lower()] = StreamEntry(name, schema, time_column(name, schema))
    for text in relations:
        name, schema = _declaration(text)
        catalog.relations[name.lower()] = RelationEntry(name, schema)
    return catalog


def _declaration(text: str) -> tuple[str, Schema]:
    found = _DECLARATION.fullmatch(text)
    if found is None:
        raise CatalogError(f"cannot read {text!r}: write it as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'")
    return found[1], parse_schema(found[2])
