"""From SQL text to the bound logical plan; the only package that uses the parser."""

from sash.sql.binder import parse

__all__ = ["parse"]
