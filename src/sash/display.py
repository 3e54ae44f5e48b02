"""Small tables of rows as plain text, for `print`, and as HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from typing import Any

_MOST_ROWS = 12
_MOST_CHARACTERS = 40


@dataclass(frozen=True)
class TextTable:
    """Rows to be shown under the names of their columns: at most `most` of them, the first, or with `ends` also the last."""

    names: Sequence[str]
    rows: Sequence[Sequence[Any]]
    most: int = _MOST_ROWS
    ends: bool = True
    width: int = _MOST_CHARACTERS

    def plain(self) -> str:
        """The table as aligned text; numbers are on the right."""
        lines = [list(map(_clean, self.names)), *([cell(value, self.width) for value in row] for row in self._shown())]
        widths = [max(len(line[at]) for line in lines) for at in range(len(self.names))]
        right = [self._numeric(at) for at in range(len(self.names))]
        aligned = [
            "  ".join(
                text.rjust(width) if at_right else text.ljust(width)
                for text, width, at_right in zip(line, widths, right, strict=True)
            ).rstrip()
            for line in lines
        ]
        if self._hidden:
            aligned.insert(1 + self._first, f"... {self._hidden:,} more ...")
        return "\n".join(aligned)

    def html(self) -> str:
        """The table as HTML; every name and value is escaped."""
        head = "".join(f"<th>{escape(_clean(name))}</th>" for name in self.names)
        body = [
            f"<tr>{''.join(f'<td>{_html_cell(value, self.width)}</td>' for value in row)}</tr>" for row in self._shown()
        ]
        if self._hidden:
            body.insert(self._first, f'<tr><td colspan="{len(self.names)}"><i>{self._hidden:,} more</i></td></tr>')
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"

    @property
    def _hidden(self) -> int:
        return max(0, len(self.rows) - self.most)

    @property
    def _first(self) -> int:
        """The number of rows that are shown before those that are not."""
        return self.most // 2 if self.ends else self.most

    def _shown(self) -> list[Sequence[Any]]:
        if not self._hidden:
            return list(self.rows)
        return [*self.rows[: self._first], *self.rows[self._first + self._hidden :]]

    def _numeric(self, at: int) -> bool:
        values = [row[at] for row in self.rows if row[at] is not None]
        return bool(values) and all(isinstance(value, int | float | Decimal) for value in values)


def facts(given: Mapping[str, Any]) -> str:
    """Names and values as a small HTML table without a header."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{_html_cell(value)}</td></tr>" for name, value in given.items())
    return f"<table><tbody>{rows}</tbody></table>"


def section(title: str, *parts: str) -> str:
    """HTML under a title; the parts are HTML already."""
    return f"<div><strong>{escape(title)}</strong>{''.join(parts)}</div>"


def code(text: str) -> str:
    """Text in HTML as it is written, such as SQL or a plan."""
    return f"<pre>{escape(text)}</pre>"


def folded(title: str, text: str) -> str:
    """Text in HTML that a click on the title unfolds."""
    return f"<details><summary>{escape(title)}</summary>{code(text)}</details>"


def counted(number: int, one: str, more: str) -> str:
    """A number with its noun.

    >>> counted(1, "batch", "batches"), counted(2_000, "batch", "batches")
    ('1 batch', '2,000 batches')
    """
    return f"{number:,} {one if number == 1 else more}"


def cell(value: Any, width: int = _MOST_CHARACTERS) -> str:
    """A value on one line, cut if it is long."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes | bytearray):
        return _clean(f"0x{value.hex()}", width)
    return _clean(str(value), width)


def _html_cell(value: Any, width: int = _MOST_CHARACTERS) -> str:
    return "<i>NULL</i>" if value is None else escape(cell(value, width))


def _clean(text: str, width: int = _MOST_CHARACTERS) -> str:
    line = "".join(character if character.isprintable() else "\N{SYMBOL FOR SUBSTITUTE}" for character in text)
    return line if len(line) <= width else f"{line[: width - 3]}..."
