"""Sash: continuous SQL over sliding windows on Spark Structured Streaming, correct at every instant."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sash.errors import (
    BadRowError,
    CancelledError,
    CatalogError,
    CheckpointError,
    ControlError,
    EvaluationError,
    HistoryError,
    IsolationError,
    JavaError,
    JobChangedError,
    NotKeptError,
    OptionError,
    OverloadedError,
    QueryFailedError,
    QueryTimeoutError,
    SashError,
    SinkError,
    SourceError,
    SqlSyntaxError,
    StageError,
    StarvedError,
    StatisticsError,
    StoreError,
    StrategyError,
    TypeMismatchError,
    UnboundedStateError,
    UnknownNameError,
    UnsupportedSqlError,
    WindowError,
)

if TYPE_CHECKING:
    from sash.engine import Engine
    from sash.job import Job
    from sash.job_query import JobQuery
    from sash.live import LiveAnswer
    from sash.query import Query
    from sash.running import RunningQuery
    from sash.running_job import RunningJob
    from sash.window_store.snapshot import Snapshot

__version__ = "0.1.0"

__all__ = [
    "BadRowError",
    "CancelledError",
    "CatalogError",
    "CheckpointError",
    "ControlError",
    "Engine",
    "EvaluationError",
    "HistoryError",
    "IsolationError",
    "JavaError",
    "Job",
    "JobChangedError",
    "JobQuery",
    "LiveAnswer",
    "NotKeptError",
    "OptionError",
    "OverloadedError",
    "Query",
    "QueryFailedError",
    "QueryTimeoutError",
    "RunningJob",
    "RunningQuery",
    "SashError",
    "SinkError",
    "Snapshot",
    "SourceError",
    "SqlSyntaxError",
    "StageError",
    "StarvedError",
    "StatisticsError",
    "StoreError",
    "StrategyError",
    "TypeMismatchError",
    "UnboundedStateError",
    "UnknownNameError",
    "UnsupportedSqlError",
    "WindowError",
    "__version__",
]

_MODULES = {
    "Engine": "sash.engine",
    "Job": "sash.job",
    "JobQuery": "sash.job_query",
    "LiveAnswer": "sash.live",
    "Query": "sash.query",
    "RunningJob": "sash.running_job",
    "RunningQuery": "sash.running",
    "Snapshot": "sash.window_store.snapshot",
}


def __getattr__(name: str) -> Any:
    """Import a class on first use: workers, and users of the errors alone, need none of them."""
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module 'sash' has no attribute {name!r}")
