"""From SQL text to the bound logical plan; the only package that uses the parser."""

from sash.sql.binder import parse, parse_query
from sash.sql.ordering import Query

__all__ = ["Query", "parse", "parse_query"]
