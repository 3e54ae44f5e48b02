"""Re-exports `read_script`, for callers that import it from here."""

from sash.script.reader import read_script

__all__ = ["read_script"]
