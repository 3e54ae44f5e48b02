"""HTML and SVG as text in which every value is escaped: only `tag` makes markup, and it escapes all other text."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from sash.console.pages.formats import visible


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "object | Iterable[Child]"


def tag(name: str, *children: Child, **attributes: object) -> Markup:
    """Return an element. A trailing underscore of an attribute is dropped, other underscores become hyphens; None leaves it out.

    >>> tag("td", "<script>", class_="late", data_row=3)
    '<td class="late" data-row="3">&lt;script&gt;</td>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{given}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Return the children one after the other; text is escaped, None is left out, and lists are flattened."""
    return Markup("".join(_text(child) for child in children))


def _text(child: Child) -> str:
    if isinstance(child, Markup):
        return child
    if child is None:
        return ""
    if isinstance(child, str):
        return escape(visible(child))
    if isinstance(child, Iterable):
        return join(child)
    return escape(visible(str(child)))
