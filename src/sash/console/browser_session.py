"""The secret of browsers' cookies, kept when the console starts again: pages that are open go on."""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Iterable
from pathlib import Path

from sash.job_index import runtime_folder

_AGE_SECONDS = 24 * 3600
_LENGTH = 43


def session_secret(port: int, jobs: Iterable[str], *, allow_changes: bool) -> str:
    """Return the secret of a console: that of one for the same jobs, port and rights that was begun within a day, or another.

    It is in a file that only the user can read. A console with other rights has another secret, so that a cookie never
    gives more than the token for which it was given.
    """
    identity = "\n".join([str(port), str(allow_changes), *sorted(jobs)])
    file = runtime_folder() / f"console-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
    kept = _kept(file)
    if kept is not None:
        return kept
    secret = secrets.token_urlsafe(32)
    draft = file.with_suffix(f".{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="ascii") as out:
        out.write(secret)
    draft.replace(file)
    return secret


def _kept(file: Path) -> str | None:
    try:
        found = file.read_text(encoding="ascii")
        young = time.time() - file.stat().st_mtime < _AGE_SECONDS
    except (OSError, ValueError):
        return None
    return found if young and len(found) == _LENGTH else None
