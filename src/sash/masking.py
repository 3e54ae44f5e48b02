"""Keeps secret values out of messages: what `remember` has been given, `mask` replaces in every text that leaves the process."""

from __future__ import annotations

import json
import logging
import re
from urllib.parse import unquote

SHORTEST = 4
"""Values of fewer characters are not replaced: they stand in texts by chance."""

_MASK = "..."
_PASSWORDS = (re.compile(r"://[^:/@\s]*:([^@\s]*)@"), re.compile(r"\bpassword\s*=\s*'?([^\s'&]+)", re.IGNORECASE))
"""The passwords in a URL or in the words of a connection."""

_values: set[str] = set()


def remember(value: str) -> None:
    """Mask the value from now on, in the forms in which it may appear, and the passwords in it if it is a URL."""
    parts = [found for pattern in _PASSWORDS for found in pattern.findall(value)]
    forms = {form for part in (value, *parts) for form in (part, unquote(part), json.dumps(part)[1:-1])}
    added = {form for form in forms if len(form) >= SHORTEST}
    if added - _values:
        _values.update(added)
        logging.getLogger("sash").addFilter(_masked_record)  # a filter is added once


def mask(text: str) -> str:
    """The text without the values that are remembered; the longest are replaced first.

    >>> mask("nothing is secret yet")
    'nothing is secret yet'
    """
    for value in sorted(_values, key=len, reverse=True):
        text = text.replace(value, _MASK)
    return text


def _masked_record(record: logging.LogRecord) -> bool:
    record.msg, record.args = mask(record.getMessage()), ()
    return True
