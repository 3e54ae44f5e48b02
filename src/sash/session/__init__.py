"""A session: statements, one after the other, on an engine; what the shell and jobs share."""

from sash.session.session import Asked, Listed, Reply, Said, Session

__all__ = ["Asked", "Listed", "Reply", "Said", "Session"]
