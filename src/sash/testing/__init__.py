"""Tests of queries: `replay` runs a query over given rows and returns its answer at every instant."""

from sash.testing.replay import replay
from sash.testing.result import Change, Result

__all__ = ["Change", "Result", "replay"]
