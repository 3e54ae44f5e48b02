"""For tests of queries: `replay` runs one over given rows and returns its answer at every instant."""

from sash.testing.replay import Change, Result, replay

__all__ = ["Change", "Result", "replay"]
