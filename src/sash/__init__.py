"""Sash: continuous SQL over sliding windows on Spark Structured Streaming, right at every instant."""

from typing import TYPE_CHECKING, Any

from sash.errors import SashError

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.query import Query

__version__ = "0.1.0"

__all__ = ["Engine", "Query", "SashError", "__version__"]


def __getattr__(name: str) -> Any:
    """The engine is imported when it is first asked for: workers, and users of the errors alone, do not need it."""
    if name == "Engine":
        from sash.engine import Engine

        return Engine
    if name == "Query":
        from sash.query import Query

        return Query
    raise AttributeError(f"module 'sash' has no attribute {name!r}")
