"""Registers functions and aggregates that users write in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from sash.arguments import check_function, check_mapping, check_text, shown
from sash.errors import CatalogError
from sash.plan.catalog import Catalog, check_identifier
from sash.plan.types import is_supported, type_name
from sash.plan.user_code import UserCode
from sash.rows import parse_schema
from sash.sql.aggregates import AGGREGATES
from sash.sql.functions import canonical_name
from sash.sql.spark_library import library

Packer = Callable[[Any], bytes]
"""Makes bytes of code, for other processes."""

_NEEDED = ("init", "add", "result")


def add_function(
    catalog: Catalog, name: str, function: Any, returns: str | pa.DataType, version: str, pack: Packer | None = None
) -> None:
    """Register a function of Arrow arrays that returns one of the same length."""
    check_function(f"the function {name}", function)
    catalog.user.functions[name.lower()] = _made(catalog, name, function, returns, version, pack)
    catalog.user.aggregates.pop(name.lower(), None)


def add_aggregate(
    catalog: Catalog, name: str, code: Any, returns: str | pa.DataType, version: str, pack: Packer | None = None
) -> None:
    """Register a class with the methods of an aggregate."""
    missing = [method for method in _NEEDED if not callable(getattr(code, method, None))]
    if not isinstance(code, type) or missing:
        raise CatalogError(
            f"the aggregate {name} must be a class with the methods init(), add(state, *arrays) and result(state)"
            + (f": {', '.join(missing)} is missing" if isinstance(code, type) else "")
        )
    catalog.user.aggregates[name.lower()] = _made(catalog, name, code, returns, version, pack)
    catalog.user.functions.pop(name.lower(), None)


def add_given(
    catalog: Catalog,
    functions: Mapping[str, tuple[Any, ...]] | None,
    aggregates: Mapping[str, tuple[Any, ...]] | None,
    pack: Packer | None = None,
) -> None:
    """Register functions and aggregates that are given as name -> (code, type) or (code, type, version)."""
    for what, given, add in (("functions", functions, add_function), ("aggregates", aggregates, add_aggregate)):
        for name, entry in check_mapping(what, given, CatalogError).items():
            if not isinstance(entry, tuple) or not 2 <= len(entry) <= 3:
                raise CatalogError(f"{what} must be name: (code, type) or (code, type, version), not {shown(entry)}")
            add(catalog, name, entry[0], entry[1], entry[2] if len(entry) == 3 else "1", pack)


def _made(
    catalog: Catalog, name: str, code: Any, returns: str | pa.DataType, version: str, pack: Packer | None
) -> UserCode:
    lower = check_identifier(name).lower()
    if lower in AGGREGATES or canonical_name(lower) is not None or library().knows(lower):
        raise CatalogError(f"{name} is a function of Spark's: choose another name")
    known = catalog.user.functions.get(lower) or catalog.user.aggregates.get(lower)
    if known is not None and known.version == check_text("version", version):
        raise CatalogError(f"{name} is already registered: choose another name, or another version")
    dtype = (
        returns
        if isinstance(returns, pa.DataType)
        else parse_schema(f"{name} {check_text('returns', returns)}")[0].dtype
    )
    if not is_supported(dtype):
        raise CatalogError(f"{name} cannot return {type_name(dtype)}: no column can have this type")
    return UserCode.of(name, check_text("version", version), dtype, code, b"" if pack is None else pack(code))
