"""Tests of queries: `replay` runs a query over given rows and returns its answer at every instant, `replay_job` several."""

from sash.testing.job_file import read_queries
from sash.testing.replay import replay
from sash.testing.replay_job import replay_job
from sash.testing.result import Change, Result

__all__ = ["Change", "Result", "read_queries", "replay", "replay_job"]
