"""References to secrets in the values of options: `${NAME}`, a variable of the environment, and `${file:PATH}`.

They are resolved where a value is used, and nowhere else: what is shown, logged or written to a checkpoint has the reference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from sash.errors import OptionError
from sash.masking import remember

_REFERENCE = re.compile(r"\$(\$\{)|\$\{([^}]*)\}|\$\{")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILE = "file:"
_LARGEST = 65_536


def has_references(value: object) -> bool:
    """Whether a value refers to a secret.

    >>> has_references("postgresql://me:${PASSWORD}@host/shop"), has_references("a $${ is text"), has_references(7)
    (True, False, False)
    """
    return isinstance(value, str) and any(found[1] is None for found in _REFERENCE.finditer(value))


def check_references(name: str, value: object) -> None:
    """Raise OptionError if a reference in the value of an option cannot be read; whether it exists is seen when it is used."""
    for found in _REFERENCE.finditer(value) if isinstance(value, str) else ():
        given = found[2]
        if found[1] is None and not (
            given and (_VARIABLE.fullmatch(given) or given.removeprefix(_FILE) not in ("", given))
        ):
            raise OptionError(
                f"the option {name}: {found[0]} is not a reference: write ${{NAME}} for a variable of the environment, "
                "${file:PATH} for the content of a file, or $${ for the text ${"
            )


def resolve(value: str) -> str:
    """The value with the secrets that it refers to. These are masked in messages from then on."""
    return _REFERENCE.sub(_resolved, value)


def _resolved(found: re.Match[str]) -> str:
    if found[1] is not None:
        return found[1]
    given = found[2] or ""
    secret = _content(given.removeprefix(_FILE)) if given.startswith(_FILE) else os.environ.get(given)
    if secret is None:
        raise OptionError(f"the environment has no variable {given}: set it for this process, or write ${{file:PATH}}")
    remember(secret)
    return secret


def _content(path: str) -> str:
    """The content of a file, without the end of its last line."""
    try:
        with Path(path).expanduser().open("rb") as file:
            content = file.read(_LARGEST + 1)
        if len(content) > _LARGEST:
            raise OptionError(f"the file {path} has more than {_LARGEST} bytes: name a file that holds only the secret")
        return content.decode().removesuffix("\n").removesuffix("\r")
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or "it is not text"
        raise OptionError(f"the secret in {path} cannot be read: {reason}") from None
