"""What all pages have: the header, light and dark, and a part of a page that reads again every second."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from nicegui import ui

from sash.console.pages.markup import Child, Markup, join, tag
from sash.console.pages.model import View
from sash.errors import SashError

_STYLE = Path(__file__).with_name("console.css").read_text(encoding="utf-8")
_PAGES = (("", "Job"), ("plan", "Plan"), ("windows", "Windows"), ("sql", "SQL"))
_EVERY = 1.0


def address(job: str, *parts: str) -> str:
    """Return the path of a page of a job."""
    return "/".join(["/job", quote(job, safe=""), *(quote(part, safe="") for part in parts)])


class Fragment(ui.html):
    """Markup on a page. `tag` has escaped it, so that it is not sanitized again; it is sent only if it has changed."""

    def __init__(self, content: Child = "") -> None:
        super().__init__(join([content]), sanitize=False)

    def show(self, *children: Child) -> None:
        """Show other markup."""
        text = join(children)
        if text != self.content:
            self.content = text


@contextmanager
def page(title: str, job: str | None = None, here: str = "", view: View | None = None) -> Iterator[None]:
    """Lay out a page."""
    ui.page_title(f"{title} · Sash")
    ui.add_css(_STYLE)
    ui.colors(primary="#1a6fd6")
    dark = ui.dark_mode(None)
    with ui.header(elevated=False), ui.element("div").classes("top"):
        parts: list[Markup] = [tag("a", "Sash", href="/", class_="brand")]
        if job is not None and view is not None:
            parts.append(tag("span", view.name, class_="job", title=view.checkpoint))
            parts += [
                tag(
                    "a",
                    text,
                    href=address(job, name) if name else address(job),
                    class_="here" if name == here else None,
                )
                for name, text in _PAGES
            ]
        Fragment(parts).style("display: contents")
        ui.space()
        toggle = ui.button(icon="contrast", on_click=lambda: _turn(dark)).props("flat round dense color=inherit")
        toggle.tooltip("Light or dark").props('aria-label="Light or dark"')
    yield


def _turn(dark: ui.dark_mode) -> None:
    """From the system's choice to dark, to light, and back."""
    dark.value = {None: True, True: False, False: None}[dark.value]


@contextmanager
def card(title: str | None = None) -> Iterator[ui.element]:
    """A box with a title."""
    with ui.element("section").classes("card") as box:
        if title is not None:
            Fragment(tag("h2", title))
        yield box


def every_second(read: Callable[[], Awaitable[None]]) -> None:
    """Call a function now and every second, while the page is open. What goes wrong stands on the page until it is mended."""
    trouble = Fragment().classes("error")

    async def tick() -> None:
        try:
            await read()
        except (SashError, OSError) as problem:
            trouble.show(str(problem))
        else:
            trouble.show()

    ui.timer(_EVERY, tick)


def fact(what: str, value: Child, more: Child = None, picture: Child = None) -> Markup:
    """A figure with its name."""
    return tag(
        "div",
        tag("div", what, class_="what"),
        tag("div", value, class_="value"),
        None if more is None else tag("div", more, class_="more"),
        picture,
        class_="fact",
    )


def facts(*given: Markup) -> Markup:
    """Figures side by side."""
    return tag("div", given, class_="facts")


def state(text: str) -> Markup:
    """The state of a job or a query as a badge; the reason, after the first word, is its tooltip."""
    word = text.split(maxsplit=1)[0].strip(":,") if text else "unknown"
    return tag("span", word, class_=f"state {word}", title=text)


def listing(heads: list[tuple[str, bool]], rows: list[list[Child]], empty: str) -> Markup:
    """A table; the heads tell which columns are numbers."""
    if not rows:
        return tag("div", empty, class_="empty")
    kinds = ["number" if number else None for _, number in heads]
    head = tag("tr", [tag("th", name, class_=kind) for (name, _), kind in zip(heads, kinds, strict=True)])
    body = [tag("tr", [tag("td", value, class_=kind) for value, kind in zip(row, kinds, strict=True)]) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", body), class_="list"), class_="scroll")
