"""Streams and relations declared on the command line, such as `sales(ts TIMESTAMP, item_id INT)`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from sash.errors import CatalogError
from sash.plan.catalog import Catalog
from sash.plan.types import Schema
from sash.rows import parse_schema
from sash.sql.spark_library import LibraryTyper

_DECLARATION = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)


def declared_catalog(streams: Iterable[str], relations: Iterable[str]) -> Catalog:
    """A catalog of the declared streams and relations.

    >>> declared_catalog(["Sales(ts TIMESTAMP, price DOUBLE)"], []).streams["sales"].time
    'ts'
    """
    catalog = Catalog(spark_type=LibraryTyper())
    for text in streams:
        catalog.add_stream(*_declaration(text))
    for text in relations:
        catalog.add_relation(*_declaration(text))
    return catalog


def _declaration(text: str) -> tuple[str, Schema]:
    found = _DECLARATION.fullmatch(text)
    if found is None:
        raise CatalogError(f"cannot read {text!r}: write it as 'sales(ts TIMESTAMP, item_id INT, price DOUBLE)'")
    return found[1], parse_schema(found[2])
