"""What all pages have: the header, light and dark, and a part of a page that reads again every second."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from nicegui import ui
from nicegui.element import Element

from sash.console.pages.markup import Child, Markup, join, tag
from sash.console.pages.model import View
from sash.errors import SashError

_STYLE = Path(__file__).with_name("console.css").read_text(encoding="utf-8")
_PAGES = (("", "Job"), ("plan", "Plan"), ("windows", "Windows"), ("sql", "SQL"))
_EVERY = 1.0
_LONG = 14
_RUNNING = ("running", "paused")
_LOG = logging.getLogger(__name__)


def address(job: str, *parts: str) -> str:
    """Return the path of a page of a job."""
    return "/".join(["/job", quote(job, safe=""), *(quote(part, safe="") for part in parts)])


class Fragment(ui.html):
    """Markup on a page. `tag` has escaped it, so that it is not sanitized again; it is sent only if it has changed."""

    def __init__(self, content: Child = "") -> None:
        super().__init__(join([content]), sanitize=False)

    @classmethod
    def waiting(cls) -> Fragment:
        """A part of a page whose content has not been read yet."""
        return cls(tag("div", "Reading …", class_="empty"))

    def show(self, *children: Child) -> None:
        """Show other markup."""
        text = join(children)
        if text != self.content:
            self.content = text


class ThemeButton(Element, component="theme_button.js"):
    """Turns the pages from the system's choice to dark, to light, and back; the browser keeps the choice."""


@contextmanager
def page(title: str, job: str | None = None, here: str = "", view: View | None = None) -> Iterator[None]:
    """Lay out a page."""
    ui.page_title(f"{title} · Sash")
    ui.add_css(_STYLE)
    ui.colors(primary="#1a6fd6")
    with ui.header(elevated=False), ui.element("nav").classes("top").props('aria-label="Pages of the job"'):
        parts: list[Markup] = [tag("a", "Sash", href="/", class_="brand")]
        if job is not None and view is not None:
            parts.append(tag("span", view.name, class_="job", title=view.checkpoint))
            parts += [
                tag(
                    "a",
                    text,
                    href=address(job, name) if name else address(job),
                    class_="here" if name == here else None,
                    aria_current="page" if name == here else None,
                )
                for name, text in _PAGES
            ]
        Fragment(parts).style("display: contents")
        ui.space()
        Fragment(tag("span", "UTC", class_="soft", title="Instants are shown in UTC"))
        ThemeButton()
    yield


@contextmanager
def card(title: str | None = None) -> Iterator[ui.element]:
    """A box with a title."""
    with ui.element("section").classes("card") as box:
        if title is not None:
            Fragment(tag("h2", title))
        yield box


def every_second(read: Callable[[], Awaitable[None]]) -> None:
    """Call a function now and every second, while the page is open. An error is shown above the page until a call succeeds."""
    trouble = Fragment().classes("error trouble").props("role=alert")
    trouble.move(target_index=0)

    async def tick() -> None:
        try:
            await read()
        except Exception as problem:  # noqa: BLE001  (the page goes on, and says so)
            trouble.show(tag("div", problem_text(problem)))
        else:
            trouble.show()

    ui.timer(_EVERY, tick)


def problem_text(problem: Exception) -> str:
    """Return what a user is told of an error; one that is not for users is also logged."""
    if isinstance(problem, (SashError, OSError)):
        return str(problem)
    _LOG.error("the console met an error", exc_info=problem)
    return f"{type(problem).__name__}: {problem}"


def fact(what: str, value: Child, more: Child = None, picture: Child = None) -> Markup:
    """A figure with its name."""
    return tag(
        "div",
        tag("div", what, class_="what"),
        tag("div", value, class_="value words" if isinstance(value, str) and len(value) > _LONG else "value"),
        None if more is None else tag("div", more, class_="more"),
        picture,
        class_="fact",
    )


def known(value: object, text: str) -> str | None:
    """A text about a value, or nothing if the value is not known.

    >>> known(3, "rows"), known(None, "rows")
    ('rows', None)
    """
    return None if value is None else text


def while_it_runs(state: str, what: str, none: str) -> str:
    """Why a page has nothing to show: `none`, if the job runs, or else that it does not.

    >>> while_it_runs("crashed", "plan", "The job has no plan"), while_it_runs("running", "plan", "The job has no plan")
    ('The job does not run (crashed): its plan can be seen while it runs.', 'The job has no plan')
    """
    return none if state in _RUNNING else f"The job does not run ({state}): its {what} can be seen while it runs."


def facts(*given: Markup, class_: str = "facts") -> Markup:
    """Figures side by side."""
    return tag("div", given, class_=class_)


def state(text: str) -> Markup:
    """The state of a job or a query as a badge; the reason, after the first word, is its tooltip.

    >>> state("parked since batch 12: the sink refused a connection")
    '<span class="state parked" title="parked since batch 12: the sink refused a connection">parked</span>'
    >>> state("not running")
    '<span class="state not-running" title="not running">not running</span>'
    """
    words = text.split()
    word = " ".join(words[: 2 if words[:1] == ["not"] else 1]).strip(":,") or "unknown"
    return tag("span", word, class_=f"state {word.replace(' ', '-')}", title=text)


def listing(heads: list[tuple[str, bool]], rows: list[list[Child]], empty: str, *, stacked: bool = True) -> Markup:
    """A table; the heads tell which columns are numbers. On narrow screens, the cells of a `stacked` one have their heads."""
    if not rows:
        return tag("div", empty, class_="empty")
    kinds = [(name, "number" if number else None) for name, number in heads]
    head = tag("tr", [tag("th", name, class_=kind, scope="col") for name, kind in kinds])
    body = [
        tag(
            "tr",
            [
                tag("td", value, class_=kind, data_label=name if stacked else None)
                for value, (name, kind) in zip(row, kinds, strict=True)
            ],
        )
        for row in rows
    ]
    table = tag("table", tag("thead", head), tag("tbody", body), class_="list stacked" if stacked else "list")
    label = f"Table: {', '.join(name for name, _ in heads[:5] if name)}"
    return tag("div", table, class_="scroll", tabindex=0, role="region", aria_label=label)
